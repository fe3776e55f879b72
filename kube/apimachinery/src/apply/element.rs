//! One step of a path: a field by name, a list's item by its keys or by its value, or by its place.

use crate::go;
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt::{self, Write};

/// One step of a path. The order is that of field names, then keys, then values, then places.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Element {
    /// A field of an object, or a key of a map.
    Field(String),
    /// The item of a list whose fields have these values, in the order of their names.
    Key(Vec<(String, Item)>),
    /// The item of a set.
    Value(Item),
    /// The item at this place.
    Index(i64),
}

/// A value that tells items apart, with a total order: numbers, strings, booleans, lists, objects, null.
#[derive(Clone, Debug)]
pub(super) struct Item(pub(super) Value);

impl Element {
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.to_owned())
    }

    /// As a key of `fieldsV1`.
    pub(super) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let mut text = "k:{".to_owned();
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    let _ = write!(
                        text,
                        "{comma}{}:{}",
                        go::json(&Value::from(name.as_str())),
                        go::json(&value.0)
                    );
                }
                text.push('}');
                text
            }
            Self::Value(value) => format!("v:{}", go::json(&value.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// From a key of `fieldsV1`. `Ok(None)` is a kind of step that is not known, which a reader skips.
    pub(super) fn decode(key: &str) -> Result<Option<Self>, String> {
        let Some((kind, rest)) = key.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
            return Err(format!("missing colon: {key}"));
        };
        Ok(Some(match kind {
            "f" => Self::field(rest),
            "v" => Self::Value(Item(serde_json::from_str(rest).map_err(|error| error.to_string())?)),
            "k" => {
                let fields: serde_json::Map<String, Value> =
                    serde_json::from_str(rest).map_err(|error| error.to_string())?;
                Self::keyed(fields.into_iter().collect())
            }
            "i" => Self::Index(rest.parse().map_err(|_| format!("not an index: {rest}"))?),
            _ => return Ok(None),
        }))
    }

    pub(super) fn keyed(mut fields: Vec<(String, Value)>) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields.into_iter().map(|(name, value)| (name, Item(value))).collect())
    }
}

/// As in a path for people: `.spec`, `[name="web"]`, `[="finalizer"]`.
impl fmt::Display for Element {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(to, ".{name}"),
            Self::Key(fields) => {
                to.write_str("[")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(to, "{comma}{name}={}", value.0)?;
                }
                to.write_str("]")
            }
            Self::Value(value) => write!(to, "[={}]", value.0),
            Self::Index(index) => write!(to, "[{index}]"),
        }
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Item {}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0, &other.0)
    }
}

fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => x.as_f64().unwrap_or_default().total_cmp(&y.as_f64().unwrap_or_default()),
        },
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::Array(x), Value::Array(y)) => {
            let differing = x.iter().zip(y).map(|(x, y)| order(x, y)).find(|found| found.is_ne());
            differing.unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        (Value::Object(x), Value::Object(y)) => {
            let pairs = x.iter().zip(y);
            let differing =
                pairs.map(|((k, x), (l, y))| k.cmp(l).then_with(|| order(x, y))).find(|found| found.is_ne());
            differing.unwrap_or_else(|| x.len().cmp(&y.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Are two values the same, numbers by their amount?
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(name, x)| y.get(name).is_some_and(|y| same(x, y)))
        }
        _ => order(a, b) == Ordering::Equal,
    }
}
