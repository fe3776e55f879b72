//! An object, asked for its fields by path.

use crate::selector::labels;
use crate::table::age;
use jiff::Timestamp;
use serde_json::Value;

/// An object and the time at which it is printed.
pub(in crate::table) struct Object<'a> {
    value: &'a Value,
    now: Timestamp,
}

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";
pub(super) const UNKNOWN: &str = "<unknown>";

impl<'a> Object<'a> {
    pub(in crate::table) fn new(value: &'a Value, now: Timestamp) -> Self {
        Self { value, now }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// The field at a path such as `spec.type`; absent and null are the same.
    pub(super) fn field(&self, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(self.value, |value, step| value.get(step)).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, path: &str) -> &'a str {
        self.field(path).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn text_or(&self, path: &str, absent: &'a str) -> &'a str {
        let text = self.text(path);
        if text.is_empty() { absent } else { text }
    }

    pub(super) fn number(&self, path: &str) -> i64 {
        self.field(path).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn flag(&self, path: &str) -> bool {
        self.field(path).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn items(&self, path: &str) -> &'a [Value] {
        self.field(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// How many fields a map has.
    pub(super) fn size(&self, path: &str) -> i64 {
        let size = self.field(path).and_then(Value::as_object).map_or(0, serde_json::Map::len);
        i64::try_from(size).unwrap_or(i64::MAX)
    }

    pub(super) fn name(&self) -> Value {
        self.text("metadata.name").into()
    }

    pub(super) fn age(&self) -> Value {
        self.since("metadata.creationTimestamp").into()
    }

    pub(super) fn deleted(&self) -> bool {
        self.field("metadata.deletionTimestamp").is_some()
    }

    pub(super) fn time(&self, path: &str) -> Option<Timestamp> {
        self.text(path).parse().ok()
    }

    /// How long ago the time at this path was.
    pub(super) fn since(&self, path: &str) -> String {
        self.time(path).map_or_else(|| UNKNOWN.to_owned(), |then| age::human(then, self.now))
    }

    /// Is the condition of this type true?
    pub(super) fn condition(&self, kind: &str) -> bool {
        self.items("status.conditions").iter().any(|condition| {
            condition.get("type").and_then(Value::as_str) == Some(kind)
                && condition.get("status").and_then(Value::as_str) == Some("True")
        })
    }

    /// A map as `a=1,b=2`.
    pub(super) fn labels(&self, path: &str) -> String {
        let pairs = self.field(path).and_then(Value::as_object).into_iter().flatten();
        let pairs: Vec<String> =
            pairs.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
        if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
    }

    /// A `LabelSelector` in its text form.
    pub(super) fn selector(&self, path: &str) -> String {
        match self.field(path).map(labels::from_object) {
            None => NONE.to_owned(),
            Some(Ok(selector)) if selector.is_empty() => NONE.to_owned(),
            Some(Ok(selector)) => selector.to_string(),
            Some(Err(_)) => "<error>".to_owned(),
        }
    }

    /// Names and images of the containers at this path.
    pub(super) fn containers(&self, path: &str) -> [Value; 2] {
        let joined = |field: &str| {
            let all = self.items(path).iter().map(|container| text(container, field));
            all.collect::<Vec<_>>().join(",").into()
        };
        [joined("name"), joined("image")]
    }
}

/// A field of a value as text, or nothing.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The first three of a list, and how many more there are.
pub(super) fn first_three(all: &[String]) -> String {
    match all.len() {
        0 => UNSET.to_owned(),
        1..=3 => all.join(","),
        more => format!("{} + {} more...", all[..3].join(","), more - 3),
    }
}
