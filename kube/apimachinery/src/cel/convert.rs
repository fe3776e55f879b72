//! Values of the API as CEL sees them.

use super::{Budget, Expression};
use crate::schema::{Kind, Schema};
use base64::Engine;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// A value whose schema says what its strings and numbers are.
pub(crate) fn typed(value: &Value, schema: &Schema) -> Cel {
    match value {
        Value::Number(number) if schema.kind == Kind::Number => number.as_f64().map_or(Cel::Null, Cel::Float),
        Value::Number(number) if schema.kind == Kind::Integer && number.is_f64() =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "the schema says that it is whole")]
            number.as_f64().map_or(Cel::Null, |float| Cel::Int(float as i64))
        }
        Value::String(text) if schema.kind == Kind::String => formatted(text, schema),
        Value::Array(items) => match schema.items.as_deref() {
            Some(inner) => Cel::List(Arc::new(items.iter().map(|item| typed(item, inner)).collect())),
            None => plain(value),
        },
        Value::Object(fields) => {
            // Keys of a map are data; names of fields are identifiers.
            let named = schema.additional.is_none();
            let entries = fields.iter().map(|(name, field)| {
                let key = if named { escaped(name) } else { name.clone() };
                let field = schema.field(name).map_or_else(|| plain(field), |inner| typed(field, inner));
                (Key::String(Arc::new(key)), field)
            });
            Cel::Map(Map { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
        }
        other => plain(other),
    }
}

/// A value of which nothing is known.
pub(crate) fn plain(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(float)) => Cel::Float(float),
            (None, None) => Cel::Null,
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(fields) => {
            let entries =
                fields.iter().map(|(name, field)| (Key::String(Arc::new(name.clone())), plain(field)));
            Cel::Map(Map { map: Arc::new(entries.collect::<HashMap<_, _>>()) })
        }
    }
}

fn formatted(text: &str, schema: &Schema) -> Cel {
    let string = || Cel::String(Arc::new(text.to_owned()));
    match schema.limits.format.as_deref() {
        Some("byte") => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            bytes.map_or_else(|_| string(), |bytes| Cel::Bytes(Arc::new(bytes)))
        }
        // CEL's own functions make these: its types of time are not ours to name.
        Some("date-time" | "datetime") => made(&TIMESTAMP, text).unwrap_or_else(string),
        Some("date") => made(&TIMESTAMP, &format!("{text}T00:00:00Z")).unwrap_or_else(string),
        Some("duration") => crate::duration::parse(text)
            .and_then(|nanos| made(&DURATION, &format!("{nanos}ns")))
            .unwrap_or_else(string),
        _ => string(),
    }
}

fn made(function: &LazyLock<Option<Expression>>, text: &str) -> Option<Cel> {
    let text = Cel::String(Arc::new(text.to_owned()));
    function.as_ref()?.value(&[("text", text)], &mut Budget::object()).ok()
}

static TIMESTAMP: LazyLock<Option<Expression>> =
    LazyLock::new(|| Expression::compile("timestamp(text)").ok());
static DURATION: LazyLock<Option<Expression>> = LazyLock::new(|| Expression::compile("duration(text)").ok());

/// A field's name as an identifier: what can't stand in one is spelled out.
pub(crate) fn escaped(name: &str) -> String {
    const RESERVED: &[&str] = &[
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
