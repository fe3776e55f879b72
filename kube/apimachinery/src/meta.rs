//! What an object's metadata must be, when it is created and when it is changed.

use crate::invalid::{FieldError, TOLD_MOST};
use crate::names;
use serde_json::Value;
use std::collections::BTreeSet;

/// Most bytes of all annotations of an object together.
const ANNOTATIONS_MOST: u64 = 256 * 1024;
/// Most bytes of a field manager's name.
const MANAGER_MOST: u64 = 128;
/// Most owners of an object. A kube-apiserver has no such limit; whoever looks at the object looks at each of them.
pub const OWNERS_MOST: usize = 500;
/// Most finalizers of an object, for the same reason.
pub const FINALIZERS_MOST: usize = 500;
/// Most bytes of a subresource's name.
const SUBRESOURCE_MOST: u64 = 256;

/// How the objects of a kind may be named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS subdomain: most kinds, and all that CRDs define.
    #[default]
    Subdomain,
    /// A DNS label of RFC 1123: Namespaces, Services.
    Label,
    /// A DNS label of RFC 1035.
    Label1035,
    /// Whatever fits in a URL's path: RBAC.
    PathSegment,
}

impl NameRule {
    /// What is wrong with this name; a prefix is what `generateName` asks for.
    #[must_use]
    pub fn check(self, name: &str, prefix: bool) -> Vec<String> {
        // What follows a prefix makes a dash at its end an inner one.
        let masked = match name.strip_suffix('-') {
            Some(front) if prefix && !front.is_empty() => {
                let mut kept: String = front.to_owned();
                kept.pop();
                kept.push('a');
                kept
            }
            _ => name.to_owned(),
        };
        match self {
            Self::Subdomain => names::dns1123_subdomain(&masked),
            Self::Label => names::dns1123_label(&masked),
            Self::Label1035 => names::dns1035_label(&masked),
            Self::PathSegment => names::path_segment(name, prefix),
        }
    }
}

/// Checks the metadata of an object of a kind with ordinary names.
#[must_use]
pub fn validate(metadata: &Value, namespaced: bool) -> Vec<FieldError> {
    validate_named(metadata, namespaced, NameRule::default())
}

/// Checks the metadata of an object, its name by the rule of its kind.
#[must_use]
pub fn validate_named(metadata: &Value, namespaced: bool, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        let wrong = rule.check(prefix, true);
        errors.extend(wrong.into_iter().map(|why| FieldError::invalid("metadata.generateName", prefix, why)));
    }
    let name = text(metadata, "name");
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        let wrong = rule.check(name, false);
        errors.extend(wrong.into_iter().map(|why| FieldError::invalid("metadata.name", name, why)));
    }
    let namespace = text(metadata, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(FieldError::required("metadata.namespace", "")),
        (true, false) => {
            let wrong = names::dns1123_label(namespace);
            errors.extend(
                wrong.into_iter().map(|why| FieldError::invalid("metadata.namespace", namespace, why)),
            );
        }
        (false, false) => {
            errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
        }
        (false, true) => {}
    }
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64)
        && generation < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", generation, detail));
    }
    errors.extend(labels(metadata.get("labels"), "metadata.labels"));
    errors.extend(annotations(metadata.get("annotations"), "metadata.annotations"));
    errors.extend(too_many(metadata, &Value::Null));
    errors.extend(owners(metadata));
    errors.extend(finalizers(metadata));
    errors.extend(managers(metadata));
    errors
}

/// What is more than an object's metadata may have. An object that had as many before the limit was may keep them.
#[must_use]
pub fn too_many(new: &Value, old: &Value) -> Vec<FieldError> {
    let count =
        |metadata: &Value, field: &str| metadata.get(field).and_then(Value::as_array).map_or(0, Vec::len);
    let limits = [("ownerReferences", OWNERS_MOST), ("finalizers", FINALIZERS_MOST)];
    let broken = limits.into_iter().filter(|(field, most)| count(new, field) > count(old, field).max(*most));
    broken
        .map(|(field, most)| {
            FieldError::too_many(&format!("metadata.{field}"), count(new, field) as u64, most as u64)
        })
        .collect()
}

/// Checks a change of metadata: what may never change, and what is checked again.
#[must_use]
pub fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some_and(|at| !at.is_null()) {
        let known: BTreeSet<&str> = strings(old, "finalizers").collect();
        let mut added: Vec<&str> = strings(new, "finalizers").filter(|name| !known.contains(name)).collect();
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let listed: Vec<String> = added.iter().map(|name| crate::invalid::quoted(name)).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                listed.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", detail));
        }
    }
    if text(new, "resourceVersion").is_empty() {
        errors.push(FieldError::invalid("metadata.resourceVersion", "", "must be specified for an update"));
    }
    let generation =
        |metadata: &Value| metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation(new) < generation(old) {
        errors.push(FieldError::invalid("metadata.generation", generation(new), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        if text(new, field) != text(old, field) {
            let path = format!("metadata.{field}");
            errors.push(FieldError::invalid(&path, text(new, field), "field is immutable"));
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (is, was) = (new.get(field).unwrap_or(&Value::Null), old.get(field).unwrap_or(&Value::Null));
        if is != was {
            errors.push(FieldError::invalid(&format!("metadata.{field}"), is.clone(), "field is immutable"));
        }
    }
    errors.extend(labels(new.get("labels"), "metadata.labels"));
    errors.extend(annotations(new.get("annotations"), "metadata.annotations"));
    errors.extend(too_many(new, old));
    errors.extend(owners(new));
    errors.extend(managers(new));
    errors
}

/// Checks labels at this path.
#[must_use]
pub fn labels(labels: Option<&Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        if errors.len() >= TOLD_MOST {
            break;
        }
        errors.extend(
            names::qualified(key).into_iter().map(|why| FieldError::invalid(path, key.as_str(), why)),
        );
        let value = value.as_str().unwrap_or_default();
        errors.extend(names::label_value(value).into_iter().map(|why| FieldError::invalid(path, value, why)));
    }
    errors
}

/// Checks annotations at this path.
#[must_use]
pub fn annotations(annotations: Option<&Value>, path: &str) -> Vec<FieldError> {
    let (mut errors, mut size) = (Vec::new(), 0);
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        if errors.len() < TOLD_MOST {
            let wrong = names::qualified(&key.to_lowercase());
            errors.extend(wrong.into_iter().map(|why| FieldError::invalid(path, key.as_str(), why)));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size as u64 > ANNOTATIONS_MOST {
        errors.push(FieldError::too_long(path, ANNOTATIONS_MOST));
    }
    errors
}

fn owners(metadata: &Value) -> Vec<FieldError> {
    let path = "metadata.ownerReferences";
    let (mut errors, mut controller) = (Vec::new(), None::<String>);
    let references = metadata.get("ownerReferences").and_then(Value::as_array);
    for owner in references.into_iter().flatten() {
        if errors.len() >= TOLD_MOST {
            break;
        }
        let api_version = text(owner, "apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        if version.is_empty() {
            let detail = "version must not be empty";
            errors.push(FieldError::invalid(&format!("{path}.apiVersion"), api_version, detail));
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                errors.push(FieldError::invalid(&format!("{path}.{field}"), "", "must not be empty"));
            }
        }
        if (group, version, text(owner, "kind")) == ("", "v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid_as_shown(path, &in_order(owner), detail));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            match &controller {
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                         and {this}"
                    );
                    // All of them, each time that there is one more: as many as may be.
                    let all: Vec<String> =
                        references.into_iter().flatten().take(OWNERS_MOST).map(in_order).collect();
                    errors.push(FieldError::invalid_as_shown(path, &format!("[{}]", all.join(",")), &detail));
                }
                None => controller = Some(this),
            }
        }
    }
    errors
}

/// An owner reference as JSON, its fields in the order in which a server writes them.
fn in_order(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"].iter().filter_map(
        |field| {
            let value = owner.get(*field)?;
            Some(format!("\"{field}\":{}", crate::invalid::go_json(value)))
        },
    );
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// What built-in kinds ask of finalizers besides: a name of the server's own, or one with a domain.
#[must_use]
pub fn builtin_finalizers(metadata: &Value) -> Vec<FieldError> {
    let odd = strings(metadata, "finalizers").enumerate().filter(|(_, name)| {
        !name.contains('/') && !matches!(*name, "kubernetes" | "orphan" | "foregroundDeletion")
    });
    odd.map(|(at, name)| {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        FieldError::invalid(&format!("metadata.finalizers[{at}]"), name, detail)
    })
    .take(TOLD_MOST)
    .collect()
}

fn finalizers(metadata: &Value) -> Vec<FieldError> {
    let path = "metadata.finalizers";
    let mut errors = Vec::new();
    for name in strings(metadata, "finalizers") {
        if errors.len() >= TOLD_MOST {
            break;
        }
        errors.extend(names::qualified(name).into_iter().map(|why| FieldError::invalid(path, name, why)));
    }
    let has = |wanted: &str| strings(metadata, "finalizers").any(|name| name == wanted);
    if has("orphan") && has("foregroundDeletion") {
        let all = metadata.get("finalizers").cloned().unwrap_or_default();
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, all, detail));
    }
    errors
}

fn managers(metadata: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let entries = metadata.get("managedFields").and_then(Value::as_array);
    for (at, entry) in entries.into_iter().flatten().enumerate() {
        if errors.len() >= TOLD_MOST {
            break;
        }
        let path = format!("metadata.managedFields[{at}]");
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(&format!("{path}.operation"), operation, detail));
        }
        let fields_type = text(entry, "fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid(
                &format!("{path}.fieldsType"),
                fields_type,
                "must be `FieldsV1`",
            ));
        }
        errors.extend(field_manager(text(entry, "manager"), &format!("{path}.manager")));
        if text(entry, "subresource").len() as u64 > SUBRESOURCE_MOST {
            errors.push(FieldError::too_long(&format!("{path}.subresource"), SUBRESOURCE_MOST));
        }
    }
    errors
}

/// Checks the name of a field manager, as it stands in an entry or in a query.
#[must_use]
pub fn field_manager(name: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if name.len() as u64 > MANAGER_MOST {
        errors.push(FieldError::too_long(path, MANAGER_MOST));
    }
    for (at, character) in name.char_indices().filter(|(_, character)| character.is_control()) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn strings<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    value.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
