//! Objects as they are kept, and as one version of their resource shows them.

use crate::http::encode;
use crate::resources::resource::Resource;
use crate::storage::store::Object;
use atoll_apimachinery::schema;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// An object as this resource shows it.
pub(crate) fn shown(resource: &Resource, object: &Object) -> Value {
    let mut value = encode::read(&object.body);
    show(resource, object.revision, &mut value);
    value
}

/// The bytes of an object as this resource shows it; the stored ones where nothing has to change.
pub(crate) fn shown_bytes(resource: &Resource, revision: u64, stored: &Bytes) -> Bytes {
    if needs_reading(resource, revision) {
        let mut value = encode::read(stored);
        show(resource, revision, &mut value);
        return encode::write(&value);
    }
    resource.type_prefix().shown(stored)
}

/// Can't the stored bytes be shown with nothing but another type in front?
pub(crate) fn needs_reading(resource: &Resource, revision: u64) -> bool {
    is_new_event(resource) || resource.custom.as_ref().is_some_and(|custom| revision <= custom.since)
}

fn show(resource: &Resource, revision: u64, value: &mut Value) {
    if is_new_event(resource) {
        rename(value, false);
    }
    value["apiVersion"] = resource.api_version().into();
    value["kind"] = resource.names.kind.as_str().into();
    if let Some(custom) = resource.custom.as_ref().filter(|custom| revision <= custom.since) {
        // Whatever version is asked for, the stored one's schema holds.
        schema::prune(value, &custom.stored_schema);
        schema::default(value, &custom.stored_schema);
    }
}

/// Is an object of this revision kept just as this resource shows it?
pub(crate) fn is_shown_as_kept(resource: &Resource, revision: u64) -> bool {
    is_kept_as_shown(resource) && !needs_reading(resource, revision)
}

/// Is an object of this resource kept just as it is?
fn is_kept_as_shown(resource: &Resource) -> bool {
    resource.version == resource.stored.version && resource.group == resource.stored.group
}

/// An object as it is kept.
pub(crate) fn stored<'v>(resource: &Resource, object: &'v Value) -> Cow<'v, Value> {
    if is_kept_as_shown(resource) {
        return Cow::Borrowed(object);
    }
    let mut value = object.clone();
    if is_new_event(resource) {
        rename(&mut value, true);
    }
    value["apiVersion"] =
        crate::resources::resource::api_version(&resource.stored.group, &resource.stored.version).into();
    if let Some(custom) = resource.custom.as_ref().filter(|_| resource.version != resource.stored.version) {
        // What the stored version does not know is lost.
        schema::prune(&mut value, &custom.stored_schema);
        schema::default(&mut value, &custom.stored_schema);
    }
    Cow::Owned(value)
}

/// Events of the group `events.k8s.io` are core events under other names.
fn is_new_event(resource: &Resource) -> bool {
    resource.group == "events.k8s.io"
}

/// The new names and the old ones.
const EVENT_FIELDS: [(&str, &str); 6] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

fn rename(value: &mut Value, to_old: bool) {
    let Some(fields) = value.as_object_mut() else { return };
    let mut pairs: Vec<(&str, &str)> = EVENT_FIELDS.to_vec();
    pairs.push(("reportingController", "reportingComponent"));
    let mut renamed = Map::new();
    for (new, old) in pairs {
        let (from, to) = if to_old { (new, old) } else { (old, new) };
        if let Some(value) = fields.remove(from) {
            renamed.insert(to.to_owned(), value);
        }
    }
    fields.extend(renamed);
}
