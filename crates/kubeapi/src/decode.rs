//! Bodies into objects: read, compared with the schema, filled in.

use crate::negotiate::Input;
use crate::refusal::Refusal;
use crate::request::Validation;
use crate::resource::{Resource, split_api_version};
use crate::strategy;
use apimachinery::schema::{self, Kind, Schema};
use apimachinery::{builtin, protobuf, strict};
use serde_json::Value;

/// The body of a create or an update, as an object of `resource`. What is wrong but tolerable becomes a warning.
pub(crate) fn object(
    resource: &Resource,
    body: &[u8],
    input: Input,
    validation: Validation,
    warnings: &mut Vec<String>,
) -> Result<Value, Refusal> {
    let kind = &resource.names.kind;
    let unreadable = |why: String| {
        let start: String = String::from_utf8_lossy(body).chars().take(30).collect();
        let more = if body.len() > 30 { " ..." } else { "" };
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({start}{more})"
        ))
    };
    let (mut object, duplicates) = match input {
        Input::Json => strict::parse(body)
            .map_err(|error| unreadable(format!("couldn't get version/kind; json parse error: {error}")))?,
        Input::Yaml => strict::parse_yaml(body).map_err(|error| unreadable(error.to_string()))?,
        Input::Protobuf => {
            (protobuf::decode(body).map_err(|error| unreadable(error.to_string()))?, Vec::new())
        }
    };
    if !object.is_object() {
        return Err(unreadable("couldn't get version/kind; json parse error: json: cannot unmarshal value into Go value of type struct".to_owned()));
    }
    check_type(resource, &mut object)?;
    let wrong_type = |why: String| {
        let version = &resource.version;
        Refusal::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    check_shape(resource, &object).map_err(wrong_type)?;
    let mut problems: Vec<String> = duplicates;
    problems.extend(complete(resource, &mut object));
    match validation {
        Validation::Ignore => {}
        Validation::Warn => warnings.extend(problems),
        Validation::Strict if problems.is_empty() => {}
        Validation::Strict => {
            return Err(wrong_type(format!("strict decoding error: {}", problems.join(", "))));
        }
    }
    Ok(object)
}

/// Drops what the schema does not know, and says what that was; fills in what was not said.
pub(crate) fn complete(resource: &Resource, object: &mut Value) -> Vec<String> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(serde_json::Map::new());
    }
    let unknown = schema::prune(object, &resource.schema);
    fill(resource, object);
    unknown
        .into_iter()
        .map(|path| if path.starts_with("unknown field") { path } else { format!("unknown field {path:?}") })
        .collect()
}

/// Fills in what was not said.
pub(crate) fn fill(resource: &Resource, object: &mut Value) {
    if resource.custom.is_some() {
        schema::default(object, &resource.schema);
        return;
    }
    builtin::normalize(object, &resource.schema);
    schema::default(object, &resource.schema);
    strategy::default(resource, object);
}

/// Gives an object of a built-in kind its usual shape again, after the server changed something.
pub(crate) fn tidy(resource: &Resource, object: &mut Value) {
    if resource.custom.is_none() {
        builtin::normalize(object, &resource.schema);
    }
}

/// The type that the body says must be the resource's; what it does not say it gets.
fn check_type(resource: &Resource, object: &mut Value) -> Result<(), Refusal> {
    let own = resource.api_version();
    let said = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (said("apiVersion"), said("kind"));
    if !kind.is_empty()
        && kind != resource.names.kind
        && (api_version.is_empty() || resource.custom.is_none())
    {
        let (_, version) = split_api_version(&api_version);
        let want = &resource.names.kind;
        return Err(Refusal::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {want}: no kind {kind:?} is registered for {want}"
        )));
    }
    if !api_version.is_empty() && api_version != own {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({own})"
        )));
    }
    object["apiVersion"] = own.into();
    object["kind"] = resource.names.kind.as_str().into();
    Ok(())
}

/// A body of a built-in kind must fit its structure; a custom resource's schema is asked later.
pub(crate) fn check_shape(resource: &Resource, object: &Value) -> Result<(), String> {
    let misfit = if resource.custom.is_some() {
        resource
            .schema
            .properties
            .get("metadata")
            .and_then(|schema| misfit(&object["metadata"], schema, &mut "metadata".to_owned()))
    } else {
        misfit(object, &resource.schema, &mut String::new())
    };
    misfit.map_or(Ok(()), |(path, got, want)| {
        Err(format!(
            "json: cannot unmarshal {got} into Go struct field {}.{path} of type {want}",
            resource.names.kind
        ))
    })
}

/// The first field that has another type than its schema says: its path, what it is, what it should be.
fn misfit(value: &Value, schema: &Schema, path: &mut String) -> Option<(String, &'static str, &'static str)> {
    let got = match value {
        Value::Null => return None,
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let want = match (schema.kind, value) {
        (Kind::Any, _)
        | (Kind::Object, Value::Object(_))
        | (Kind::Array, Value::Array(_))
        | (Kind::String, Value::String(_))
        | (Kind::Number, Value::Number(_))
        | (Kind::Boolean, Value::Bool(_))
        | (Kind::IntOrString, Value::Number(_) | Value::String(_)) => None,
        (Kind::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => None,
        (Kind::Object, _) => Some("map[string]interface {}"),
        (Kind::Array, _) => Some("[]interface {}"),
        (Kind::String, _) => Some("string"),
        (Kind::Integer, _) => {
            Some(if schema.limits.format.as_deref() == Some("int64") { "int64" } else { "int32" })
        }
        (Kind::Number, _) => Some("float64"),
        (Kind::Boolean, _) => Some("bool"),
        (Kind::IntOrString, _) => Some("intstr.IntOrString"),
    };
    if let Some(want) = want {
        return Some((path.clone(), got, want));
    }
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let Some(schema) = schema.field(name) else { continue };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                let found = misfit(field, schema, path);
                path.truncate(length);
                if found.is_some() {
                    return found;
                }
            }
            None
        }
        Value::Array(items) => {
            let schema = schema.items.as_deref()?;
            items.iter().find_map(|item| misfit(item, schema, path))
        }
        _ => None,
    }
}
