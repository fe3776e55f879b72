//! Messages that are no objects in JSON: times, quantities, raw values.

use super::DecodeError;
use super::wire::{Reader, Wire};
use base64::Engine;
use jiff::Timestamp;
use serde_json::{Map, Value};

pub(super) fn base64(bytes: &[u8]) -> Value {
    base64::engine::general_purpose::STANDARD.encode(bytes).into()
}

/// What the JSON in such a message takes when it is read; nothing for the others.
pub(super) fn weight(name: &str, bytes: &[u8]) -> usize {
    match name.rsplit('.').next().unwrap_or(name) {
        "RawExtension" | "FieldsV1" | "JSON" => bytes
            .iter()
            .map(|byte| match byte {
                b'{' => super::MESSAGE,
                b'[' | b',' => super::FIELD,
                _ => 1,
            })
            .sum(),
        _ => 0,
    }
}

/// The value of a message that is not decoded field by field.
pub(super) fn value(name: &str, bytes: &[u8]) -> Option<Result<Value, DecodeError>> {
    let name = name.rsplit('.').next().unwrap_or(name);
    Some(match name {
        "Time" | "Timestamp" => time(bytes, 0),
        "MicroTime" => time(bytes, 6),
        "Duration" => first(bytes).map(|duration| match duration {
            Some(Wire::Number(nanos)) => go_duration(nanos.cast_signed()).into(),
            _ => "0s".into(),
        }),
        "Quantity" => first(bytes).and_then(|text| match text {
            Some(Wire::Bytes(text)) => super::utf8(text).map(Value::String),
            _ => Ok("0".into()),
        }),
        "IntOrString" => int_or_string(bytes),
        "RawExtension" | "FieldsV1" | "JSON" => first(bytes).and_then(|raw| match raw {
            Some(Wire::Bytes(raw)) if !raw.is_empty() => crate::strict::parse(raw)
                .map(|(value, _)| value)
                .map_err(|_| DecodeError::Malformed("a raw value is not JSON")),
            _ => Ok(Value::Null),
        }),
        _ => return None,
    })
}

/// Messages that only wrap: lists with a name, and alternatives.
pub(super) fn reshaped(name: &str, mut object: Map<String, Value>) -> Value {
    match name.rsplit('.').next().unwrap_or(name) {
        "Verbs" | "ExtraValue" | "OptionalNames" => {
            object.remove("items").unwrap_or_else(|| Value::Array(Vec::new()))
        }
        "JSONSchemaPropsOrArray" => {
            object.remove("schema").or_else(|| object.remove("jSONSchemas")).unwrap_or_default()
        }
        "JSONSchemaPropsOrBool" => {
            object.remove("schema").or_else(|| object.remove("allows")).unwrap_or(Value::Bool(false))
        }
        "JSONSchemaPropsOrStringArray" => {
            object.remove("schema").or_else(|| object.remove("property")).unwrap_or_default()
        }
        _ => Value::Object(object),
    }
}

fn first(bytes: &[u8]) -> Result<Option<Wire<'_>>, DecodeError> {
    Ok(Reader::new(bytes).fields()?.into_iter().find(|(number, _)| *number == 1).map(|(_, value)| value))
}

fn time(bytes: &[u8], digits: usize) -> Result<Value, DecodeError> {
    let (mut seconds, mut nanos) = (0, 0);
    let fields = Reader::new(bytes).fields()?;
    for (number, value) in &fields {
        match (number, value) {
            (1, Wire::Number(number)) => seconds = number.cast_signed(),
            (2, Wire::Number(number)) => nanos = i32::try_from(*number).unwrap_or_default(),
            _ => {}
        }
    }
    // No time is written as an empty message.
    if fields.is_empty() {
        return Ok(Value::Null);
    }
    let time = Timestamp::new(seconds, if digits == 0 { 0 } else { nanos });
    let time = time.map_err(|_| DecodeError::Malformed("a time is out of range"))?;
    Ok(if digits == 0 { time.to_string() } else { format!("{time:.digits$}") }.into())
}

fn int_or_string(bytes: &[u8]) -> Result<Value, DecodeError> {
    let (mut text, mut number, mut is_text) = (String::new(), 0, false);
    for (field, value) in Reader::new(bytes).fields()? {
        match (field, value) {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(value)) => text = super::utf8(value)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

/// A duration as Go writes it: `1h30m0s`, `250ms`.
fn go_duration(nanos: i64) -> String {
    let (sign, size) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let fraction = |value: u64, unit: u64, name: &str| {
        let rest = format!("{:0>1$}", value % unit, unit.ilog10() as usize);
        let rest = rest.trim_end_matches('0');
        if rest.is_empty() {
            format!("{}{name}", value / unit)
        } else {
            format!("{}.{rest}{name}", value / unit)
        }
    };
    let text = match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{size}ns"),
        1_000..1_000_000 => fraction(size, 1_000, "µs"),
        1_000_000..1_000_000_000 => fraction(size, 1_000_000, "ms"),
        _ => {
            let minutes = size / 60_000_000_000;
            let seconds = fraction(size % 60_000_000_000, 1_000_000_000, "s");
            match (minutes / 60, minutes % 60) {
                (0, 0) => seconds,
                (0, minutes) => format!("{minutes}m{seconds}"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    };
    format!("{sign}{text}")
}
