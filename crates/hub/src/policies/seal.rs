//! Is a binding the hub's own memory? It is if it stands where we would put it, has the name that we would give it, and carries a
//! seal: a MAC by a key that only hubs have, over everything in it that they act upon.
//!
//! Whatever else it says, nothing is copied and nothing is deleted because of it.

use std::fmt;

use atoll_api::names::annotation::{self, policy as claimed};
use atoll_engine::placement::object::ObjectKey;
use aws_lc_rs::hmac;
use serde_json::{Value, json};

use super::binding::{self, Recalled};

/// What a seal is for, so that it serves for nothing else.
const PURPOSE: &[u8] = b"atoll binding 1\n";
/// The annotations that are acted upon.
const SEALED: [&str; 5] =
    [annotation::HOLDERS, annotation::AUTHOR, claimed::NAMESPACE, claimed::NAME, claimed::CLUSTER_NAME];

/// The fields of the spec that are acted upon: always, and where something was decided. API servers add defaults to the others.
const ALWAYS: [&str; 4] = ["resource", "clusters", "requiredBy", "placement"];
const DECIDED: [&str; 4] =
    ["conflictResolution", "propagateDeps", "preserveResourcesOnDeletion", "suspension"];

/// The key of a hub's seals.
#[derive(Clone)]
pub(crate) struct Sealer {
    key: hmac::Key,
    /// Bindings without any seal are believed if they stand where they should: those of a hub that did not seal yet.
    adopt: bool,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("adopt", &self.adopt).finish_non_exhaustive()
    }
}

/// Why a binding is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unbelieved {
    /// It names no object.
    #[error("it names no object")]
    Unreadable,
    /// It speaks of an object that another kind of binding, or one of another namespace or name, would be of.
    #[error("an object of that kind, namespace and name has another binding")]
    Misplaced,
    /// It carries no seal.
    #[error("it has no seal; a hub from before there were seals may have written it")]
    Unsealed,
    /// Its seal is not ours, or something in it was changed.
    #[error("its seal does not fit")]
    Broken,
}

impl Sealer {
    /// One by this key.
    pub(crate) fn new(key: &[u8], adopt: bool) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key), adopt }
    }

    /// Puts the seal on a binding.
    pub(super) fn seal(&self, binding: &mut Value) {
        let tag = hmac::sign(&self.key, &sealed(binding));
        binding["metadata"]["annotations"][annotation::SEAL] = hex(tag.as_ref()).into();
    }

    /// What a binding says, if the hub has said it.
    pub(super) fn believe(&self, key: &ObjectKey, binding: &Value) -> Result<Recalled, Unbelieved> {
        let recalled = binding::recall(binding).ok_or(Unbelieved::Unreadable)?;
        let fits = [false, true].into_iter().any(|taken| binding::key_of(&recalled.of, |_| taken) == *key);
        if !fits {
            return Err(Unbelieved::Misplaced);
        }
        match binding["metadata"]["annotations"][annotation::SEAL].as_str() {
            None if self.adopt => Ok(recalled),
            None => Err(Unbelieved::Unsealed),
            Some(seal) => {
                let tag = unhex(seal).ok_or(Unbelieved::Broken)?;
                hmac::verify(&self.key, &sealed(binding), &tag).map_err(|_| Unbelieved::Broken)?;
                Ok(recalled)
            }
        }
    }
}

/// The bytes that a seal is of: the same however an API server orders and completes an object.
fn sealed(binding: &Value) -> Vec<u8> {
    let meta = &binding["metadata"];
    let annotations: serde_json::Map<String, Value> = SEALED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), meta["annotations"].get(*name)?.clone())))
        .collect();
    let fields = |names: &[&str]| -> Vec<(String, Value)> {
        let there =
            names.iter().filter_map(|name| Some(((*name).to_owned(), binding["spec"].get(*name)?.clone())));
        there.collect()
    };
    let mut spec: serde_json::Map<String, Value> = fields(&ALWAYS).into_iter().collect();
    if !binding["spec"]["placement"].is_null() {
        spec.extend(fields(&DECIDED));
    }
    let content = json!({
        "kind": binding["kind"],
        "namespace": meta["namespace"].as_str().unwrap_or_default(),
        "name": meta["name"],
        "annotations": annotations,
        "spec": spec,
    });
    let mut bytes = PURPOSE.to_vec();
    write(&content, &mut bytes);
    bytes
}

/// JSON with sorted keys, and without nulls: an API server drops them.
fn write(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().filter(|(_, value)| !value.is_null()).collect();
            fields.sort_by_key(|(key, _)| *key);
            to.push(b'{');
            for (key, value) in fields {
                to.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
                to.push(b':');
                write(value, to);
                to.push(b',');
            }
            to.push(b'}');
        }
        Value::Array(list) => {
            to.push(b'[');
            for value in list {
                write(value, to);
                to.push(b',');
            }
            to.push(b']');
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            to.extend_from_slice(plain.to_string().as_bytes());
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_engine::placement::object::Kind;

    fn object(kind: &str, namespace: &str, name: &str) -> ObjectKey {
        ObjectKey { kind: Kind::new("v1", kind), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The binding that the hub has of an object.
    fn own(of: &ObjectKey, sealer: &Sealer) -> (ObjectKey, Value) {
        let key = binding::key_of(of, |_| false);
        let mut binding = json!({"apiVersion": key.kind.api_version, "kind": key.kind.kind,
            "metadata": {"name": key.name, "namespace": key.namespace, "annotations": {"atoll.dev/holders": "paris"}},
            "spec": {"resource": of, "placement": {}, "clusters": [{"name": "paris", "replicas": 2}], "propagateDeps": false}});
        sealer.seal(&mut binding);
        (key, binding)
    }

    #[test]
    fn the_hubs_own_binding_is_believed_also_as_an_api_server_gives_it_back() {
        let sealer = Sealer::new(b"key", false);
        let (key, mut binding) = own(&object("Secret", "shop", "keys"), &sealer);
        binding["metadata"]["uid"] = "7".into();
        binding["metadata"]["labels"] = json!({"seen": "by kubectl"});
        binding["status"] = json!({"conditions": []});
        binding["spec"]["suspension"] = Value::Null;
        let recalled = sealer.believe(&key, &binding).unwrap();
        assert_eq!((recalled.of, recalled.holders.len()), (object("Secret", "shop", "keys"), 1));
        assert!(Sealer::new(b"another key", false).believe(&key, &binding).is_err());
        // Of what only goes along nothing was decided: defaults of an API server do not matter.
        let (key, mut along) = own(&object("Secret", "shop", "keys"), &sealer);
        for field in ["placement", "propagateDeps"] {
            along["spec"].as_object_mut().unwrap().remove(field);
        }
        sealer.seal(&mut along);
        along["spec"]["conflictResolution"] = "Abort".into();
        assert!(sealer.believe(&key, &along).is_ok());
    }

    #[test]
    fn a_binding_that_a_user_has_changed_is_not_believed() {
        let sealer = Sealer::new(b"key", false);
        let (key, good) = own(&object("Secret", "shop", "keys"), &sealer);
        for (at, value) in [
            ("/metadata/annotations/atoll.dev~1holders", json!("paris,tokyo")),
            ("/metadata/annotations/atoll.dev~1author", json!("{\"username\":\"root\"}")),
            ("/metadata/annotations/propagationpolicy.karmada.io~1name", json!("mine")),
            ("/metadata/annotations/atoll.dev~1seal", json!("00")),
            ("/metadata/annotations/atoll.dev~1seal", json!("zz€")),
            ("/spec/clusters/0/name", json!("tokyo")),
            ("/spec/clusters/0/replicas", json!(9)),
            ("/spec/placement", json!({"clusterAffinity": {"clusterNames": ["tokyo"]}})),
            ("/spec/propagateDeps", json!(true)),
            ("/spec/requiredBy", json!([{"namespace": "shop", "name": "mine"}])),
            ("/spec/preserveResourcesOnDeletion", json!(true)),
            ("/spec/resource/uid", json!("other")),
        ] {
            let mut changed = good.clone();
            let (parent, field) = at.rsplit_once('/').unwrap();
            changed.pointer_mut(parent).unwrap()[field.replace("~1", "/")] = value;
            assert_eq!(sealer.believe(&key, &changed).err(), Some(Unbelieved::Broken), "{at}");
        }
    }

    #[test]
    fn a_binding_speaks_only_of_the_object_that_it_would_be_of() {
        let sealer = Sealer::new(b"key", false);
        let adopting = Sealer::new(b"key", true);
        let (place, _) = own(&object("ConfigMap", "mine", "c"), &sealer);
        for of in [
            object("Secret", "shop", "keys"),
            object("Secret", "mine", "keys"),
            object("ClusterRole", "", "c"),
            object("ConfigMap", "", "c"),
        ] {
            let (_, mut binding) = own(&of, &sealer);
            // The seal moves along: also with one of ours nobody says this in another place.
            binding["metadata"]["namespace"] = place.namespace.as_str().into();
            for sealer in [&sealer, &adopting] {
                assert_eq!(sealer.believe(&place, &binding).err(), Some(Unbelieved::Misplaced), "{of}");
            }
        }
        // A seal of one binding is none of another.
        let (_, other) = own(&object("ConfigMap", "mine", "d"), &sealer);
        let (key, mut binding) = own(&object("ConfigMap", "mine", "c"), &sealer);
        binding["metadata"]["annotations"][annotation::SEAL] =
            other["metadata"]["annotations"][annotation::SEAL].clone();
        assert_eq!(sealer.believe(&key, &binding).err(), Some(Unbelieved::Broken));
    }

    #[test]
    fn one_without_a_seal_is_believed_only_when_the_operator_says_so() {
        let sealer = Sealer::new(b"key", false);
        let (key, mut binding) = own(&object("ConfigMap", "mine", "c"), &sealer);
        binding["metadata"]["annotations"].as_object_mut().unwrap().remove(annotation::SEAL);
        assert_eq!(sealer.believe(&key, &binding).err(), Some(Unbelieved::Unsealed));
        assert!(Sealer::new(b"key", true).believe(&key, &binding).is_ok());
        assert!(!format!("{sealer:?}").contains("key"), "keys are not shown");
    }
}
