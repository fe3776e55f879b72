//! CRDs: what is not said, which version is stored, and what may be defined.

use super::field::{each, set_default as set, strings};
use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::{names, schema};
use serde_json::{Value, json};

/// Groups of Kubernetes itself need this annotation.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Fills in what is not said.
pub(super) fn default(object: &mut Value) {
    let kind = object["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
    set(object, "spec.names.singular", kind.to_lowercase());
    set(object, "spec.names.listKind", format!("{kind}List"));
    set(object, "spec.conversion", json!({"strategy": "None"}));
    for version in each(object, "spec.versions") {
        if let Some(document) = version.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema"))
        {
            tidy(document);
        }
    }
}

/// Keywords of a schema with nothing in them are as good as not there.
fn tidy(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else { return };
    keywords.retain(|name, value| match value {
        Value::Null => false,
        Value::Object(fields) => {
            name == "items"
                || name == "additionalProperties"
                || name == "not"
                || name == "default"
                || !fields.is_empty()
        }
        Value::Array(items) => name == "default" || !items.is_empty(),
        Value::String(text) => name == "default" || !text.is_empty(),
        Value::Bool(flag) => {
            *flag
                || matches!(
                    name.as_str(),
                    "default" | "additionalProperties" | "x-kubernetes-preserve-unknown-fields"
                )
        }
        Value::Number(_) => true,
    });
    for name in ["properties", "patternProperties", "definitions"] {
        if let Some(Value::Object(fields)) = keywords.get_mut(name) {
            fields.values_mut().for_each(tidy);
        }
    }
    for name in ["items", "additionalProperties", "not"] {
        if let Some(inner) = keywords.get_mut(name) {
            tidy(inner);
        }
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = keywords.get_mut(name) {
            branches.iter_mut().for_each(tidy);
        }
    }
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
            errors.push(FieldError::not_supported("spec.scope", other, &["Cluster", "Namespaced"]));
        }
    }
    check_names(&spec["names"], &mut errors);
    check_versions(spec, &mut errors);
    check_conversion(&spec["conversion"], &mut errors);
    if strings(&object["status"]["storedVersions"]).next().is_none() {
        let why = "must have at least one stored version";
        errors.push(FieldError::invalid("status.storedVersions", Value::Null, why));
    }
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

/// Objects are the same in all versions here: a webhook that changes them is not asked.
fn check_conversion(conversion: &Value, errors: &mut Vec<FieldError>) {
    match conversion["strategy"].as_str() {
        Some("None") | None => {}
        Some("Webhook") => {
            if conversion["webhook"]["clientConfig"].is_object() {
                let why = "this server converts objects only by their apiVersion (strategy None)";
                errors.push(FieldError::forbidden("spec.conversion.strategy", why));
            } else {
                let why = "required when strategy is set to Webhook";
                errors.push(FieldError::required("spec.conversion.webhookClientConfig", why));
            }
        }
        Some(other) => {
            errors.push(FieldError::not_supported("spec.conversion.strategy", other, &["None", "Webhook"]));
        }
    }
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
        let shown: Vec<String> = versions.iter().map(shown_version).collect();
        errors.push(FieldError::invalid_as_shown("spec.versions", &format!("[{}]", shown.join(",")), why));
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
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if one && index > 0 {
            continue;
        }
        errors.extend(schema::structural(document, &path));
    }
    let same =
        |field: &str| versions.windows(2).all(|pair| matches!(pair, [a, b] if a.get(field) == b.get(field)));
    for (index, version) in versions.iter().enumerate() {
        let at = |field: &str| {
            if same(field) { format!("spec.{field}") } else { format!("spec.versions[{index}].{field}") }
        };
        if index == 0 || !same("additionalPrinterColumns") {
            check_columns(&version["additionalPrinterColumns"], &at("additionalPrinterColumns"), errors);
        }
        if index == 0 || !same("selectableFields") {
            let document = &version["schema"]["openAPIV3Schema"];
            check_selectable(&version["selectableFields"], document, &at("selectableFields"), errors);
        }
    }
}

/// A version as a Go structure shows itself; what all versions have in common is not in it.
fn shown_version(version: &Value) -> String {
    let flag = |field: &str| version[field].as_bool().unwrap_or_default();
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
        version["name"],
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        version["deprecationWarning"],
    )
}

fn check_columns(columns: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let at = |field: &str| format!("{path}[{index}].{field}");
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        if text("name").is_empty() {
            errors.push(FieldError::required(&at("name"), ""));
        }
        match text("type") {
            "" => errors
                .push(FieldError::required(&at("type"), "must be one of boolean,date,integer,number,string")),
            "boolean" | "date" | "integer" | "number" | "string" => {}
            other => {
                let why = "must be one of boolean,date,integer,number,string";
                errors.push(FieldError::invalid(&at("type"), other, why));
            }
        }
        if text("jsonPath").is_empty() {
            errors.push(FieldError::required(&at("jsonPath"), ""));
        } else if !text("jsonPath").starts_with('.') {
            let why = "must be a simple json path starting with .";
            errors.push(FieldError::invalid(&at("jsonPath"), text("jsonPath"), why));
        }
    }
}

fn check_selectable(fields: &Value, document: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let at = format!("{path}[{index}].jsonPath");
        let given = field["jsonPath"].as_str().unwrap_or_default();
        if given.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }
        let steps = given.trim_start_matches('.').split('.');
        let found = steps.into_iter().try_fold(document, |schema, step| schema["properties"].get(step));
        match found.map(|schema| schema["type"].as_str().unwrap_or_default()) {
            None => {
                let why = "is an invalid path: does not refer to a valid field";
                errors.push(FieldError::invalid(&at, given, why));
            }
            Some("string" | "integer" | "boolean") => {}
            Some(_) => {
                let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
                errors.push(FieldError::invalid(&at, given, why));
            }
        }
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
