//! Pod templates: kept as one text, compared, hashed, and made into pods.

use super::facts::Meta;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The label that a Deployment puts on everything of one template.
pub(crate) const TEMPLATE_HASH: &str = "pod-template-hash";
/// The letters of hashes in names: no vowels, nothing that looks like something else.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A pod template without its hash, in one spelling: equal templates are equal texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Arc<str>);

impl Template {
    pub(crate) fn read(template: &Value) -> Self {
        let mut template = template.clone();
        if let Some(labels) = template["metadata"].get_mut("labels").and_then(Value::as_object_mut) {
            labels.remove(TEMPLATE_HASH);
        }
        if let Some(meta) = template.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.remove("creationTimestamp");
        }
        if let Some(fields) = template.as_object_mut() {
            // How a revision of a StatefulSet says that it is the whole template.
            fields.remove("$patch");
        }
        Self(template.to_string().into())
    }

    pub(crate) fn value(&self) -> Value {
        // It was made from a value; anything else would be a template without containers, which no API takes.
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }

    /// A short name for this template; `collisions` gives another one where two templates have the same.
    pub(crate) fn hash(&self, collisions: i64) -> String {
        let mut hash = 0x811c_9dc5_u32; // FNV-1a
        let extra = if collisions == 0 { String::new() } else { collisions.to_string() };
        for byte in self.0.bytes().chain(extra.bytes()) {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
        let letter = |digit: u8| char::from(LETTERS[usize::from(digit) % LETTERS.len()]);
        hash.to_string().bytes().map(letter).collect()
    }

    /// A pod of this template. Its name is for the caller to set.
    pub(crate) fn pod(&self, owner: &Value, namespace: &str) -> Value {
        let template = self.value();
        let mut meta = Map::new();
        for field in ["labels", "annotations", "finalizers"] {
            if let Some(value) = template["metadata"].get(field) {
                meta.insert(field.to_owned(), value.clone());
            }
        }
        meta.insert("namespace".to_owned(), namespace.into());
        meta.insert("ownerReferences".to_owned(), json!([owner]));
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]})
    }
}

/// A reference to the controller of an object.
pub(crate) fn owner(api_version: &str, kind: &str, meta: &Meta) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "name": meta.name, "uid": meta.uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_template_is_not_part_of_it() {
        let plain = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}});
        let mut marked = plain.clone();
        marked["metadata"]["labels"][TEMPLATE_HASH] = "abc".into();
        marked["metadata"]["creationTimestamp"] = Value::Null;
        assert_eq!(Template::read(&plain), Template::read(&marked));
        let mut other = plain.clone();
        other["metadata"]["labels"]["app"] = "shop".into();
        assert_ne!(Template::read(&plain), Template::read(&other));
    }

    #[test]
    fn a_collision_gives_another_hash() {
        let template = Template::read(&json!({"spec": {"containers": []}}));
        assert_ne!(template.hash(0), template.hash(1));
        assert!(template.hash(0).bytes().all(|letter| LETTERS.contains(&letter)));
    }
}
