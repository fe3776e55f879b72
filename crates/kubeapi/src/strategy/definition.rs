//! CRDs: what is not said, which version is stored, and what may be defined.

use super::field::{set_default as set, strings};
use apimachinery::invalid::FieldError;
use apimachinery::{names, schema};
use serde_json::{Value, json};

/// Groups of Kubernetes itself need this annotation.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Fills in what is not said.
pub(super) fn default(object: &mut Value) {
    let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    set(object, "spec.names.singular", kind.to_lowercase());
    set(object, "spec.names.listKind", format!("{kind}List"));
    set(object, "spec.conversion", json!({"strategy": "None"}));
}

pub(super) fn prepare_create(object: &mut Value) {
    object["status"] =
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null});
    store_version(object);
}

pub(super) fn prepare_update(object: &mut Value) {
    store_version(object);
}

/// Remembers the version that objects are stored in.
fn store_version(object: &mut Value) {
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let stored = versions.into_iter().find(|version| version["storage"] == true);
    let Some(name) = stored.and_then(|version| version["name"].as_str()).map(str::to_owned) else { return };
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    let known = &mut object["status"]["storedVersions"];
    if strings(known).any(|version| version == name) {
        return;
    }
    match known.as_array_mut() {
        Some(list) => list.push(name.into()),
        None => *known = json!([name]),
    }
}

pub(super) fn validate(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let name = text(&object["metadata"]["name"]);
    if name != format!("{plural}.{group}") {
        errors.push(FieldError::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
    }
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if group.contains('.') {
        let wrong = names::dns1123_subdomain(&group);
        errors.extend(wrong.into_iter().map(|why| FieldError::invalid("spec.group", group.as_str(), why)));
    } else {
        errors.push(FieldError::invalid(
            "spec.group",
            group.as_str(),
            "should be a domain with at least one dot",
        ));
    }
    match spec["scope"].as_str() {
        Some("Cluster" | "Namespaced") => {}
        None | Some("") => errors.push(FieldError::required("spec.scope", "")),
        Some(other) => {
            errors.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"]))
        }
    }
    check_names(&spec["names"], &mut errors);
    check_versions(spec, &mut errors);
    let protected =
        ["k8s.io", "kubernetes.io"].iter().any(|own| group == *own || group.ends_with(&format!(".{own}")));
    let approval = text(&object["metadata"]["annotations"][APPROVED]);
    if protected && approval.is_empty() {
        let why = format!(
            "protected groups must have approval annotation \"{APPROVED}\", see https://github.com/kubernetes/enhancements/pull/1111"
        );
        errors.push(FieldError::required(&format!("metadata.annotations[{APPROVED}]"), why));
    }
    if let Some(old) = old {
        check_change(object, old, &mut errors);
    }
    errors
}

fn check_names(names_given: &Value, errors: &mut Vec<FieldError>) {
    for (field, label) in [("plural", true), ("singular", true), ("kind", false), ("listKind", false)] {
        let path = format!("spec.names.{field}");
        let value = names_given[field].as_str().unwrap_or_default();
        if value.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let shown = if label { value.to_owned() } else { value.to_lowercase() };
        let wrong = names::dns1035_label(&shown);
        let why = if label {
            wrong.join(",")
        } else {
            format!("may have mixed case, but should otherwise match: {}", wrong.join(","))
        };
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&path, value, why));
        }
    }
    if names_given["kind"] == names_given["listKind"] && names_given["kind"].is_string() {
        let value = names_given["listKind"].clone();
        errors.push(FieldError::invalid(
            "spec.names.listKind",
            value,
            "kind and listKind may not be the same",
        ));
    }
}

fn check_versions(spec: &Value, errors: &mut Vec<FieldError>) {
    let none = Vec::new();
    let versions = spec["versions"].as_array().unwrap_or(&none);
    let mut seen = Vec::new();
    let stored = versions.iter().filter(|version| version["storage"] == true).count();
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = version["name"].as_str().unwrap_or_default();
        let wrong = names::dns1035_label(name);
        if !wrong.is_empty() {
            errors.push(FieldError::invalid(&format!("{path}.name"), name, wrong.join(",")));
        }
        if seen.contains(&name) {
            errors.push(FieldError::invalid(&format!("{path}.name"), name, "must be unique"));
        }
        seen.push(name);
    }
    if stored != 1 {
        let why = "must have exactly one version marked as storage version";
        let names: Vec<Value> = versions.iter().map(|version| version["name"].clone()).collect();
        errors.push(FieldError::invalid("spec.versions", names, why));
    }
    // Schemas that are all the same are spoken of as one.
    let schemas: Vec<&Value> = versions.iter().map(|version| &version["schema"]["openAPIV3Schema"]).collect();
    let one = schemas.windows(2).all(|pair| matches!(pair, [a, b] if a == b));
    for (index, document) in schemas.iter().enumerate() {
        let path = if one {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{index}].schema.openAPIV3Schema")
        };
        if !document.is_object() {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(&path, "schemas are required"));
            continue;
        }
        if one && index > 0 {
            continue;
        }
        errors.extend(schema::structural(document, &path));
    }
}

fn check_change(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let established = old["status"]["conditions"].as_array().into_iter().flatten();
    let established =
        established.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True");
    if established {
        for (path, field) in [("spec.scope", "scope"), ("spec.group", "group")] {
            if new["spec"][field] != old["spec"][field] {
                errors.push(FieldError::invalid(path, new["spec"][field].clone(), "field is immutable"));
            }
        }
        for field in ["plural", "kind"] {
            if new["spec"]["names"][field] != old["spec"]["names"][field] {
                let path = format!("spec.names.{field}");
                errors.push(FieldError::invalid(
                    &path,
                    new["spec"]["names"][field].clone(),
                    "field is immutable",
                ));
            }
        }
    }
    let known: Vec<&str> = new["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|version| version["name"].as_str())
        .collect();
    for (index, stored) in strings(&new["status"]["storedVersions"]).enumerate() {
        if !known.contains(&stored) {
            let why = format!(
                "missing from spec.versions; {stored} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {stored} and removes {stored} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&format!("status.storedVersions[{index}]"), stored, why));
        }
    }
}
