//! Objects as bytes: apiVersion, kind and resourceVersion stand first, so that they can be changed without reading the rest.
//!
//! ```text
//!   {"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"7","name":…},…}
//!   └────────── type ───────────────────┘└────────── rest ─────────────────────────────┘
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What stands before an object's revision.
const REVISION: &[u8] = b",\"metadata\":{\"resourceVersion\":\"";

/// An object's bytes but for the revision that it gets when it is written.
pub(crate) struct Unrevised {
    head: Bytes,
    tail: Bytes,
}

impl Unrevised {
    /// Writes an object down. `resourceVersion` in it is ignored.
    pub(crate) fn new(object: &Value) -> Self {
        let (mut head, mut tail) = (Vec::with_capacity(128), Vec::with_capacity(512));
        put_type(
            &mut head,
            object["apiVersion"].as_str().unwrap_or_default(),
            object["kind"].as_str().unwrap_or_default(),
        );
        head.extend_from_slice(REVISION);
        tail.push(b'"');
        let none = Map::new();
        let metadata = object["metadata"].as_object().unwrap_or(&none);
        put_fields(&mut tail, metadata.iter().filter(|(key, _)| *key != "resourceVersion"));
        tail.push(b'}');
        let rest = object.as_object().unwrap_or(&none).iter();
        put_fields(
            &mut tail,
            rest.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata")),
        );
        tail.push(b'}');
        Self { head: head.into(), tail: tail.into() }
    }

    /// The same of an object that was written down before: all but its revision stays as it is.
    pub(crate) fn of(written: &Bytes) -> Self {
        let head = position(written, REVISION).map(|at| at + REVISION.len());
        let digits = head.and_then(|head| written[head..].iter().position(|byte| *byte == b'"'));
        match (head, digits) {
            (Some(head), Some(digits)) => {
                Self { head: written.slice(..head), tail: written.slice(head + digits..) }
            }
            _ => Self::new(&read(written)),
        }
    }

    /// The bytes at a revision.
    pub(crate) fn at(&self, revision: u64) -> Bytes {
        let revision = revision.to_string();
        let mut bytes = BytesMut::with_capacity(self.head.len() + revision.len() + self.tail.len());
        bytes.put_slice(&self.head);
        bytes.put_slice(revision.as_bytes());
        bytes.put_slice(&self.tail);
        bytes.freeze()
    }
}

fn put_type(out: &mut Vec<u8>, api_version: &str, kind: &str) {
    out.extend_from_slice(b"{\"apiVersion\":");
    put(out, &Value::from(api_version));
    out.extend_from_slice(b",\"kind\":");
    put(out, &Value::from(kind));
}

fn put_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a String, &'a Value)>) {
    for (key, value) in fields {
        out.push(b',');
        put(out, &Value::from(key.as_str()));
        out.push(b':');
        put(out, value);
    }
}

fn put(out: &mut Vec<u8>, value: &Value) {
    // Writing a value into memory can't fail: its keys are strings.
    let _ = serde_json::to_writer(out, value);
}

/// An object out of its bytes.
pub(crate) fn read(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_default()
}

/// The bytes of a value.
pub(crate) fn write(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(256);
    put(&mut out, value);
    out.into()
}

/// How the stored bytes of one type are shown as another (another version of a custom resource, or none in a list).
#[derive(Clone, Debug)]
pub(crate) struct TypePrefix {
    shown: Bytes,
}

impl TypePrefix {
    /// Objects say that they are of this type.
    pub(crate) fn named(api_version: &str, kind: &str) -> Self {
        let mut shown = Vec::new();
        put_type(&mut shown, api_version, kind);
        shown.push(b',');
        Self { shown: shown.into() }
    }

    /// Objects do not say of what type they are: how the items of a built-in list look.
    pub(crate) fn absent() -> Self {
        Self { shown: Bytes::from_static(b"{") }
    }

    /// The bytes with this type in front: two pieces, to be written one after the other.
    pub(crate) fn show<'a>(&'a self, stored: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        (&self.shown, rest(stored))
    }

    /// The same in one piece; no copy when nothing changes.
    pub(crate) fn shown(&self, stored: &Bytes) -> Bytes {
        if stored.starts_with(&self.shown) && self.shown.len() > 1 {
            return stored.clone();
        }
        let (head, rest) = self.show(stored);
        [head, rest].concat().into()
    }
}

/// What follows apiVersion and kind.
fn rest(stored: &[u8]) -> &[u8] {
    const MARK: &[u8] = b"\"metadata\":{";
    stored.get(position(stored, MARK).unwrap_or(1)..).unwrap_or_default()
}

/// Where the metadata begins: neither an apiVersion nor a kind can hold a quote, so the first mark is the real one.
fn position(stored: &[u8], mark: &[u8]) -> Option<usize> {
    stored.windows(mark.len()).position(|window| window == mark)
}

/// The few fields that selectors and collectors look at, without reading the rest.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PartialObject<'a> {
    #[serde(borrow, default)]
    pub(crate) metadata: Metadata<'a>,
}

/// Metadata at a partial.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata<'a> {
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) namespace: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) labels: Option<BTreeMap<Cow<'a, str>, Cow<'a, str>>>,
    pub(crate) finalizers: Option<Vec<String>>,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) owner_references: Option<Vec<Owner>>,
}

/// Whom an object belongs to.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) block_owner_deletion: Option<bool>,
}

impl<'a> PartialObject<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_type_can_be_changed_without_reading_the_object() {
        let object = json!({"kind": "Thing", "apiVersion": "x.io/v1", "metadata": {"name": "a", "resourceVersion": "1"},
            "spec": {"metadata": {"x": 1}}});
        let stored = Unrevised::new(&object).at(42);
        let mut want = object.clone();
        want["metadata"]["resourceVersion"] = "42".into();
        assert_eq!(read(&stored), want);
        want["apiVersion"] = "x.io/v2".into();
        assert_eq!(read(&TypePrefix::named("x.io/v2", "Thing").shown(&stored)), want);
        assert_eq!(Unrevised::of(&stored).at(7), Unrevised::new(&object).at(7));
        let bare = read(&TypePrefix::absent().shown(&stored));
        assert_eq!(bare, json!({"metadata": want["metadata"], "spec": want["spec"]}));
    }

    #[test]
    fn a_glance_reads_what_is_escaped_too() {
        let stored = br#"{"metadata":{"name":"a","labels":{"x":"\u00e4"},"ownerReferences":[{"uid":"u"}]}}"#;
        let partial = PartialObject::of(stored);
        assert_eq!(partial.metadata.labels.unwrap()["x"], "ä");
        assert_eq!(partial.metadata.owner_references.unwrap()[0].uid, "u");
    }
}
