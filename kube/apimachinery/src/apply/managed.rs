//! `metadata.managedFields`: one entry per manager, operation, version and subresource.

use super::set::Set;
use super::{Manager, Operation};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Who has an entry. Appliers have one for all versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) operation: Operation,
    api_version: Option<String>,
    pub(super) subresource: String,
}

/// What an owner has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) set: Set,
    pub(super) api_version: String,
    pub(super) time: Option<String>,
}

/// All entries of one object.
pub(super) type Managed = BTreeMap<Owner, Owned>;

impl Owner {
    pub(super) fn of(manager: &Manager) -> Self {
        let name = if manager.name.is_empty() { "unknown" } else { &manager.name };
        Self::new(
            name,
            manager.operation,
            &manager.api_version,
            manager.subresource.as_deref().unwrap_or_default(),
        )
    }

    pub(super) fn new(name: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        Self {
            name: name.to_owned(),
            operation,
            api_version: (operation == Operation::Update).then(|| api_version.to_owned()),
            subresource: subresource.to_owned(),
        }
    }

    /// As a conflict names it: `"kubectl" with subresource "status" using apps/v1`.
    pub(super) fn described(&self) -> String {
        let mut text = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if let Some(version) = &self.api_version {
            text.push_str(&format!(" using {version}"));
        }
        text
    }
}

/// Reads the entries of an object; those of one that has none are none.
///
/// # Errors
/// In an API server's words, when an entry can't be read.
pub(super) fn decode(object: &Value) -> Result<Managed, String> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut managed = Managed::new();
    for (at, entry) in entries.into_iter().flatten().enumerate() {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let operation = match text("operation") {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".to_owned()),
        };
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
            other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {at}")),
        }
        let set = entry.get("fieldsV1").filter(|fields| !fields.is_null());
        let set = set.map(Set::decode).transpose()?.unwrap_or_default();
        let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
        let owner = Owner::new(text("manager"), operation, text("apiVersion"), text("subresource"));
        managed.insert(owner, Owned { set, api_version: text("apiVersion").to_owned(), time });
    }
    Ok(managed)
}

/// Writes the entries into an object: appliers first, then by time, manager, version and subresource.
pub(super) fn encode(object: &mut Value, managed: &Managed) {
    remove(object);
    if managed.is_empty() {
        return;
    }
    let mut entries: Vec<_> = managed.iter().collect();
    entries.sort_by_key(|(owner, owned)| {
        (owner.operation, &owned.time, &owner.name, &owned.api_version, &owner.subresource)
    });
    let entries = entries.into_iter().map(|(owner, owned)| {
        let mut entry = Map::new();
        if !owner.name.is_empty() {
            entry.insert("manager".to_owned(), json!(owner.name));
        }
        let operation = match owner.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        entry.insert("operation".to_owned(), json!(operation));
        entry.insert("apiVersion".to_owned(), json!(owned.api_version));
        if let Some(time) = &owned.time {
            entry.insert("time".to_owned(), json!(time));
        }
        entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
        entry.insert("fieldsV1".to_owned(), owned.set.encode());
        if !owner.subresource.is_empty() {
            entry.insert("subresource".to_owned(), json!(owner.subresource));
        }
        Value::Object(entry)
    });
    let entries = Value::Array(entries.collect());
    if let Some(metadata) = object
        .as_object_mut()
        .map(|object| object.entry("metadata").or_insert_with(|| Value::Object(Map::new())))
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.insert("managedFields".to_owned(), entries);
    }
}

/// Takes the entries out of an object.
pub(super) fn remove(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Does a request ask for all entries to be dropped? `[]` and `[{}]` do.
pub(super) fn resets(object: &Value) -> bool {
    match object.pointer("/metadata/managedFields").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => one.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}
