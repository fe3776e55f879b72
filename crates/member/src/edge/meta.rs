//! Metadata: whose an object is, and which state of it.

use std::collections::BTreeMap;

use atoll_api::names::label;
use atoll_engine::names::{Namespace, ServiceKey, ServiceName, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::Unreadable;
use crate::core::object::{Kind, ObjectName, Version};

/// The value of a label.
pub(crate) fn label<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.labels.as_ref()?.get(key).map(String::as_str)
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
    Ok(Version { uid, revision, deleting: meta.deletion_timestamp.is_some() })
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
        ..ObjectMeta::default()
    }
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
