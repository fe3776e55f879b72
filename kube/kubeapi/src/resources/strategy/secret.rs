//! Secrets and config maps: what is given in plain text, what may be a key, and what is immutable.

use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::names;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The most bytes that all values together may have.
const MOST_BYTES: usize = 1024 * 1024;

/// What is given in plain text goes to the rest.
pub(super) fn merge_plain(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    let Some(Value::Object(plain)) = fields.remove("stringData") else { return };
    let data = fields.entry("data").or_insert_with(|| json!({}));
    if data.is_null() {
        *data = json!({});
    }
    for (key, value) in plain {
        data[key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}

pub(super) fn validate(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let none = Map::new();
    let data = object["data"].as_object().unwrap_or(&none);
    keys(data, "data", &mut errors);
    let total: usize = data.values().map(|value| value.as_str().unwrap_or_default().len() / 4 * 3).sum();
    if total > MOST_BYTES {
        errors.push(FieldError::too_long("data", MOST_BYTES as u64));
    }
    let kind = object["type"].as_str().unwrap_or_default();
    for (wanted, key) in [
        ("kubernetes.io/tls", "tls.crt"),
        ("kubernetes.io/tls", "tls.key"),
        ("kubernetes.io/ssh-auth", "ssh-privatekey"),
        ("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
    ] {
        if kind == wanted && !data.contains_key(key) {
            errors.push(FieldError::required(&format!("data[{key}]"), ""));
        }
    }
    if kind == "kubernetes.io/dockerconfigjson"
        && let Some(coded) = data.get(".dockerconfigjson").and_then(Value::as_str)
    {
        let plain = STANDARD.decode(coded).unwrap_or_default();
        if let Err(error) = serde_json::from_slice::<Value>(&plain) {
            let path = "data[.dockerconfigjson]";
            errors.push(FieldError::invalid(path, "<secret contents redacted>", error.to_string()));
        }
    }
    let account = &object["metadata"]["annotations"]["kubernetes.io/service-account.name"];
    if kind == "kubernetes.io/service-account-token" && account.as_str().unwrap_or_default().is_empty() {
        errors.push(FieldError::required("metadata.annotations[kubernetes.io/service-account.name]", ""));
    }
    if let Some(old) = old {
        if object["type"] != old["type"] {
            errors.push(FieldError::invalid("type", object["type"].clone(), "field is immutable"));
        }
        errors.extend(immutable(object, old, &["data"]));
    }
    errors
}

pub(super) fn validate_config_map(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let none = Map::new();
    let data = object["data"].as_object().unwrap_or(&none);
    let binary = object["binaryData"].as_object().unwrap_or(&none);
    for key in data.keys() {
        let path = format!("data[{key}]");
        for why in names::config_key(key) {
            errors.push(FieldError::invalid(&path, key.as_str(), why));
        }
        if binary.contains_key(key) {
            errors.push(FieldError::invalid(&path, key.as_str(), "duplicate of key present in binaryData"));
        }
    }
    keys(binary, "binaryData", &mut errors);
    let plain: usize = data.values().map(|value| value.as_str().unwrap_or_default().len()).sum();
    let coded: usize = binary.values().map(|value| value.as_str().unwrap_or_default().len() / 4 * 3).sum();
    if plain + coded > MOST_BYTES {
        errors.push(FieldError::too_long("[]", MOST_BYTES as u64));
    }
    if let Some(old) = old {
        errors.extend(immutable(object, old, &["data", "binaryData"]));
    }
    errors
}

fn keys(data: &Map<String, Value>, field: &str, errors: &mut Vec<FieldError>) {
    for key in data.keys() {
        for why in names::config_key(key) {
            errors.push(FieldError::invalid(&format!("{field}[{key}]"), key.as_str(), why));
        }
    }
}

fn immutable(new: &Value, old: &Value, fields: &[&str]) -> Vec<FieldError> {
    const WHY: &str = "field is immutable when `immutable` is set";
    if old["immutable"] != true {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", WHY));
    }
    for field in fields.iter().filter(|field| new.get(**field) != old.get(**field)) {
        errors.push(FieldError::forbidden(field, WHY));
    }
    errors
}
