//! Metadata: whose an object is, and which state of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::names::label;
use atoll_engine::names::{Namespace, ServiceKey, ServiceName, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::Unreadable;
use crate::core::object::{Kind, ObjectName, Others, Version};

/// The value of a label.
pub(crate) fn label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(key).map(String::as_str)
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Whether our hub wrote it.
pub(crate) fn is_ours(meta: &ObjectMeta, hub: &str) -> bool {
    label(meta, label::HUB) == Some(hub)
}

/// Which object, and which state of it.
pub(crate) fn version(meta: &ObjectMeta) -> Result<Version, Unreadable> {
    let uid = Uid::parse(meta.uid.as_deref().unwrap_or_default())?;
    let text = meta.resource_version.as_deref().unwrap_or_default();
    let revision = text.parse().map_err(|_| Unreadable::Revision(text.to_owned()))?;
    Ok(Version { uid, revision, deleting: meta.deletion_timestamp.is_some(), others: others(meta) })
}

/// What others have hung on it.
fn others(meta: &ObjectMeta) -> Option<Arc<Others>> {
    let owners = meta.owner_references.iter().flatten().filter(|owner| !is_service(owner));
    let finalizers = meta.finalizers.clone().unwrap_or_default();
    let others = Others { finalizers, owners: owners.cloned().collect() };
    (others != Others::default()).then(|| Arc::new(others))
}

/// Whether it is the owner that we give to slices.
fn is_service(owner: &OwnerReference) -> bool {
    owner.kind == "Service" && owner.api_version == "v1"
}

/// The object's namespace.
pub(crate) fn namespace(meta: &ObjectMeta) -> Result<Namespace, Unreadable> {
    Ok(Namespace::parse(meta.namespace.as_deref().unwrap_or_default())?)
}

/// Namespace and name of an object that is called like a Service.
pub(crate) fn key(meta: &ObjectMeta) -> Result<ServiceKey, Unreadable> {
    let name = ServiceName::parse(meta.name.as_deref().unwrap_or_default())?;
    Ok(ServiceKey { namespace: namespace(meta)?, name })
}

/// The object by its names, for a message.
pub(crate) fn object(kind: Kind, meta: &ObjectMeta) -> ObjectName {
    let namespace = meta.namespace.as_deref().and_then(|name| Namespace::parse(name).ok());
    ObjectName { kind, namespace, name: meta.name.as_deref().unwrap_or_default().into() }
}

/// Metadata of an object that we write.
pub(crate) fn write(
    namespace: &Namespace,
    name: &str,
    labels: BTreeMap<String, String>,
    onto: Option<&Version>,
) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.to_string()),
        name: Some(name.to_owned()),
        labels: Some(labels),
        uid: onto.map(|version| version.uid.to_string()),
        resource_version: onto.map(|version| version.revision.to_string()),
        finalizers: onto.and_then(|version| version.others.as_ref()).map(|others| others.finalizers.clone()),
        owner_references: owners(None, onto),
        ..ObjectMeta::default()
    }
}

/// The owners that an object gets: ours, and those that others gave it.
pub(crate) fn owners(ours: Option<OwnerReference>, onto: Option<&Version>) -> Option<Vec<OwnerReference>> {
    let theirs =
        onto.and_then(|version| version.others.as_ref()).into_iter().flat_map(|others| &others.owners);
    let all: Vec<_> = ours.into_iter().chain(theirs.cloned()).collect();
    (!all.is_empty()).then_some(all)
}

/// The reference from a slice to its derived Service.
pub(crate) fn owner(name: &ServiceName, uid: &Uid) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Service".to_owned(),
        name: name.to_string(),
        uid: uid.to_string(),
        controller: None,
        block_owner_deletion: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(meta: &serde_json::Value) -> (ObjectMeta, Version) {
        let meta: ObjectMeta = serde_json::from_value(meta.clone()).unwrap();
        let version = version(&meta).unwrap();
        (meta, version)
    }

    #[test]
    fn what_others_hang_on_an_object_stays_when_it_is_replaced() {
        let owner = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "o", "controller": true});
        let ours =
            serde_json::json!({"apiVersion": "v1", "kind": "Service", "name": "derived-web", "uid": "s"});
        let (meta, version) = read(&serde_json::json!({
            "uid": "u", "resourceVersion": "5",
            "finalizers": ["theirs/one", "theirs/two"], "ownerReferences": [owner, ours],
        }));
        let namespace = Namespace::parse("shop").unwrap();
        let written = write(&namespace, "web", BTreeMap::new(), Some(&version));
        assert_eq!(written.finalizers, meta.finalizers);
        let owners: Vec<_> =
            written.owner_references.iter().flatten().map(|owner| owner.uid.as_str()).collect();
        assert_eq!(owners, ["o"], "ours is given by whoever writes a slice");
        assert_eq!(written.owner_references.unwrap()[0], meta.owner_references.unwrap()[0]);
    }

    #[test]
    fn an_object_to_which_others_add_nothing_takes_no_memory_for_it() {
        let ours =
            serde_json::json!({"apiVersion": "v1", "kind": "Service", "name": "derived-web", "uid": "s"});
        let (_, version) = read(&serde_json::json!({
            "uid": "u", "resourceVersion": "5", "finalizers": [], "ownerReferences": [ours],
        }));
        assert_eq!(version.others, None);
        let namespace = Namespace::parse("shop").unwrap();
        let written = write(&namespace, "web", BTreeMap::new(), Some(&version));
        assert_eq!((written.finalizers, written.owner_references), (None, None));
    }
}
