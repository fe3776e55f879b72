//! Bodies of `application/vnd.kubernetes.protobuf`, as kubectl sends them, into JSON.
//!
//! ```text
//!   "k8s\0" · envelope (apiVersion, kind, raw) ──▶ message of the kind ──▶ JSON
//! ```
//! Driven by a table of facts: one decoder for all kinds. What a Go client writes although it is empty is left out
//! again, as that client's JSON would leave it out.

mod facts;
mod special;
mod wire;

use facts::{Field, Kind, Many, Message};
use serde_json::{Map, Value};
use std::cell::Cell;
use wire::{Reader, Wire};

/// Most messages inside of each other: a schema of a CRD is the deepest that is real.
const DEPTH_MOST: usize = 128;
/// The most that a body may take when it is read, in bytes; a message takes some 700, however short it is written.
const MADE_MOST: usize = 40 << 20;
const MESSAGE: usize = 700;
const FIELD: usize = 64;

/// How deep a part is, and how much may still be made.
#[derive(Clone, Copy)]
struct At<'a> {
    depth: usize,
    left: &'a Cell<usize>,
}

impl At<'_> {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn make(self, bytes: usize) -> Result<(), DecodeError> {
        self.left.set(self.left.get().checked_sub(bytes).ok_or(DecodeError::TooMuch)?);
        Ok(())
    }
}

/// A body that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Does not begin with the four bytes that all such bodies begin with.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NotProtobuf,
    /// The bytes are not a message.
    #[error("the body is not a valid protobuf message: {0}")]
    Malformed(&'static str),
    /// It would take too much memory: very many small messages or fields.
    #[error("the body has too many fields and elements")]
    TooMuch,
    /// No facts about such a kind.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind {
        /// As the envelope says.
        api_version: String,
        /// As the envelope says.
        kind: String,
    },
}

/// Reads a body; its envelope says apiVersion and kind, which the object gets.
///
/// # Errors
/// It is malformed, or of a kind without a description.
pub fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    let envelope = bytes.strip_prefix(b"k8s\0").ok_or(DecodeError::NotProtobuf)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, value) in Reader::new(envelope).fields()? {
        match (number, value) {
            (1, Wire::Bytes(type_meta)) => {
                for (number, value) in Reader::new(type_meta).fields()? {
                    match (number, value) {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let Some(message) = facts::of_kind(&api_version, &kind) else {
        return Err(DecodeError::UnknownKind { api_version, kind });
    };
    let mut object = fields(raw, message, At { depth: 0, left: &Cell::new(MADE_MOST) })?;
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// The fields of a message as those of an object.
fn fields(bytes: &[u8], message: &Message, at: At<'_>) -> Result<Map<String, Value>, DecodeError> {
    if at.depth > DEPTH_MOST {
        return Err(DecodeError::Malformed("it is nested too deeply"));
    }
    at.make(MESSAGE)?;
    let mut object = Map::new();
    for (number, value) in Reader::new(bytes).fields()? {
        at.make(FIELD)?;
        // Fields of a newer version are passed over.
        let Some(field) = message.field(number) else { continue };
        match field.many {
            Many::One if field.inline => {
                let Wire::Bytes(bytes) = value else { return Err(wrong_type()) };
                if let Kind::Message(inner) = &field.kind
                    && let Some(inner) = facts::message(inner)
                {
                    object.extend(fields(bytes, inner, at.deeper())?);
                }
            }
            Many::One => {
                let value = one(&value, &field.kind, at)?;
                object.insert(field.name.clone(), value);
            }
            Many::List => {
                // Numbers may come packed.
                if let (Wire::Bytes(packed), Kind::Whole | Kind::Bool) = (&value, &field.kind) {
                    for number in Reader::new(packed).numbers()? {
                        at.make(FIELD)?;
                        push(&mut object, field, one(&Wire::Number(number), &field.kind, at)?);
                    }
                } else {
                    push(&mut object, field, one(&value, &field.kind, at)?);
                }
            }
            Many::Map => {
                let Wire::Bytes(entry) = value else { return Err(wrong_type()) };
                let (key, value) = entry_of(entry, &field.kind, at)?;
                let map = object.entry(field.name.clone()).or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(map) = map {
                    map.insert(key, value);
                }
            }
        }
    }
    for field in message.fields() {
        if field.drop_empty && object.get(&field.name).is_some_and(empty) {
            object.remove(&field.name);
        }
    }
    Ok(object)
}

fn push(object: &mut Map<String, Value>, field: &Field, value: Value) {
    let list = object.entry(field.name.clone()).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.push(value);
    }
}

fn entry_of(bytes: &[u8], kind: &Kind, at: At<'_>) -> Result<(String, Value), DecodeError> {
    let (mut key, mut found) = (String::new(), None);
    for (number, value) in Reader::new(bytes).fields()? {
        match (number, value) {
            (1, Wire::Bytes(text)) => key = utf8(text)?,
            (2, value) => found = Some(one(&value, kind, at)?),
            _ => {}
        }
    }
    // A value that is not there is an empty one.
    let value = match found {
        Some(value) => value,
        None => one(&Wire::Bytes(&[]), kind, at).unwrap_or_default(),
    };
    Ok((key, value))
}

fn one(value: &Wire<'_>, kind: &Kind, at: At<'_>) -> Result<Value, DecodeError> {
    match (kind, value) {
        (Kind::Text, Wire::Bytes(bytes)) => utf8(bytes).map(Value::String),
        (Kind::Bytes, Wire::Bytes(bytes)) => Ok(special::base64(bytes)),
        (Kind::Whole, Wire::Number(number)) => Ok(number.cast_signed().into()),
        (Kind::Bool, Wire::Number(number)) => Ok((*number != 0).into()),
        (Kind::Float, Wire::Fixed(bits)) => Ok(f64::from_bits(*bits).into()),
        (Kind::Message(name), Wire::Bytes(bytes)) => {
            match at.make(special::weight(name, bytes)).map(|()| special::value(name, bytes))? {
                Some(value) => value,
                None => {
                    let message = facts::message(name)
                        .ok_or(DecodeError::Malformed("it has a part of unknown type"))?;
                    let object = fields(bytes, message, at.deeper())?;
                    Ok(special::reshaped(name, object))
                }
            }
        }
        _ => Err(wrong_type()),
    }
}

fn wrong_type() -> DecodeError {
    DecodeError::Malformed("a field has another type than it should")
}

fn utf8(bytes: &[u8]) -> Result<String, DecodeError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| DecodeError::Malformed("a string is not UTF-8"))
}

fn empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // A part without anything in it is still written.
        Value::Object(_) => false,
    }
}
