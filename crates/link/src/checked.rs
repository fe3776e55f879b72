//! What Kubernetes calls by free text is checked while it is read: it becomes part of URLs and selectors.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_engine::names::syntax;
use atoll_engine::placement::object::{Kind, ObjectKey};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Names of objects are at most this long, in every kind.
const LONGEST: usize = 253;

/// The key of an object.
pub(crate) fn key<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectKey, D::Error> {
    let key = ObjectKey::deserialize(from)?;
    if !is_kind(&key.kind) {
        return Err(Error::custom(format!("{:?} is not a kind", key.kind)));
    }
    if !key.namespace.is_empty() && !syntax::is_label(&key.namespace) {
        return Err(Error::custom(format!("{:?} is not a namespace", key.namespace)));
    }
    if !is_path_segment(&key.name) {
        return Err(Error::custom(format!("{:?} is not the name of an object", key.name)));
    }
    Ok(key)
}

/// Kinds of objects.
pub(crate) fn kinds<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeSet<Kind>, D::Error> {
    let kinds = BTreeSet::<Kind>::deserialize(from)?;
    match kinds.iter().find(|kind| !is_kind(kind)) {
        Some(bad) => Err(Error::custom(format!("{bad:?} is not a kind"))),
        None => Ok(kinds),
    }
}

/// The value of a label, and not an empty one.
pub(crate) fn label_value<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
    let text = Arc::<str>::deserialize(from)?;
    if !text.is_empty() && syntax::is_label_value(&text) {
        return Ok(text);
    }
    Err(Error::custom(format!("{text:?} is not the value of a label")))
}

/// Labels joined by dots.
pub(crate) fn dns_name<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
    let text = Arc::<str>::deserialize(from)?;
    if syntax::is_subdomain(&text) {
        return Ok(text);
    }
    Err(Error::custom(format!("{text:?} is not a DNS name")))
}

fn is_kind(kind: &Kind) -> bool {
    let word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let group = kind.group();
    let core = group.is_empty() && !kind.api_version.contains('/');
    (core || syntax::is_subdomain(group))
        && syntax::is_label(kind.version())
        && word(&kind.kind)
        && kind.kind.len() <= 63
}

/// What an API server takes for a name of any kind: it stands in a URL as it is.
fn is_path_segment(text: &str) -> bool {
    let bad = |b: u8| matches!(b, b'/' | b'%' | b'?' | b'#') || b.is_ascii_control() || b == b' ';
    !text.is_empty() && text.len() <= LONGEST && !matches!(text, "." | "..") && !text.bytes().any(bad)
}
