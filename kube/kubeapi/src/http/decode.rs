//! Bodies into objects: read, compared with the schema, filled in.

use crate::environment::seconds;
use crate::http::negotiate::Input;
use crate::http::request::Validation;
use crate::http::status_error::{StatusError, Subject};
use crate::resources::resource::{Resource, split_api_version};
use crate::resources::strategy;
use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::schema::{self, Kind, Schema};
use atoll_apimachinery::{builtin, protobuf, strict};
use jiff::Timestamp;
use serde_json::Value;

/// The body of a create or an update, as an object of `resource`. What is wrong but tolerable becomes a warning.
pub(crate) fn object(
    resource: &Resource,
    body: &[u8],
    input: Input,
    validation: Validation,
    warnings: &mut Vec<String>,
) -> Result<Value, StatusError> {
    let kind = &resource.names.kind;
    let text = String::from_utf8_lossy(body);
    let unreadable = |why: String| {
        let start: String = text.chars().take(30).collect();
        let more = if text.chars().count() > 30 { " ..." } else { "" };
        StatusError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({start}{more})"
        ))
    };
    let not_json = |why: String| unreadable(format!("couldn't get version/kind; json parse error: {why}"));
    let (mut object, duplicates) = read(input, body).map_err(|why| match input {
        Input::Json => not_json(why),
        Input::Yaml | Input::Protobuf => unreadable(why),
    })?;
    if !object.is_object() {
        let why =
            "json: cannot unmarshal a value into Go value of type struct { APIVersion string; Kind string }";
        return Err(not_json(why.to_owned()));
    }
    if resource.custom.is_some() && object["kind"].as_str().unwrap_or_default().is_empty() {
        return Err(unreadable(format!("Object 'Kind' is missing in '{text}'")));
    }
    check_type(resource, &mut object)?;
    let wrong_type = |why: String| {
        let version = &resource.version;
        StatusError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    };
    check_shape(resource, &object).map_err(wrong_type)?;
    check_embedded(resource, &mut object).map_err(wrong_type)?;
    let mut problems: Vec<String> = duplicates.iter().map(|path| duplicate(path)).collect();
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

/// A body as a value, and the fields that are there twice.
pub(crate) fn read(input: Input, body: &[u8]) -> Result<(Value, Vec<String>), String> {
    match input {
        Input::Json => strict::parse(body).map_err(|error| error.to_string()),
        Input::Yaml => strict::parse_yaml(body).map_err(|error| error.to_string()),
        Input::Protobuf => {
            protobuf::decode(body).map(|value| (value, Vec::new())).map_err(|error| error.to_string())
        }
    }
}

/// A field that is there twice. The reader of YAML tells the place in its own words.
pub(crate) fn duplicate(path: &str) -> String {
    if path.contains(' ') { path.to_owned() } else { format!("duplicate field {path:?}") }
}

/// Drops what the schema does not know, and says what that was; fills in what was not said.
pub(crate) fn complete(resource: &Resource, object: &mut Value) -> Vec<String> {
    let unknown = prune(resource, object);
    fill(resource, object);
    unknown
}

/// The same for an object that server-side apply merged: it was never a body, and keeps what is null in it.
pub(crate) fn complete_merged(resource: &Resource, object: &mut Value) {
    prune(resource, object);
    if resource.custom.is_some() {
        // But for metadata, which is the same for all kinds: what no manager applies any more is gone.
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|_, field| !field.is_null());
        }
        schema::fill(object, &resource.schema);
    } else {
        fill(resource, object);
    }
}

/// Drops what the schema does not know, and says what that was.
fn prune(resource: &Resource, object: &mut Value) -> Vec<String> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(serde_json::Map::new());
    }
    let mut unknown = schema::prune(object, &resource.schema);
    // Metadata is the same for all kinds, and no kind's business. Managed fields may have any names.
    prune_metadata(object, "", &mut unknown);
    embedded(object, &resource.schema, &mut String::new(), &mut |inner, path| {
        prune_metadata(inner, path, &mut unknown);
    });
    unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect()
}

/// Drops unknown fields of an object's metadata.
fn prune_metadata(object: &mut Value, path: &str, unknown: &mut Vec<String>) {
    let Some(metadata) = object.get_mut("metadata").filter(|metadata| metadata.is_object()) else { return };
    let managed = metadata.as_object_mut().and_then(|fields| fields.remove("managedFields"));
    let dropped = schema::prune(metadata, builtin::object_meta());
    let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
    unknown.extend(dropped.iter().map(|field| format!("{prefix}metadata.{field}")));
    if let Some(managed) = managed {
        metadata["managedFields"] = managed;
    }
}

/// Visits every object that is whole in itself within a custom resource, with its path.
fn embedded(value: &mut Value, schema: &Schema, path: &mut String, visit: &mut impl FnMut(&mut Value, &str)) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let Some(inner) = schema.field(name) else { continue };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                if inner.embedded {
                    visit(field, path);
                }
                embedded(field, inner, path, visit);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.items.as_deref() else { return };
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("[{index}]"));
                if inner.embedded {
                    visit(item, path);
                }
                embedded(item, inner, path, visit);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Fills in what was not said.
pub(crate) fn fill(resource: &Resource, object: &mut Value) {
    if resource.custom.is_some() {
        schema::default(object, &resource.schema);
        return;
    }
    written_alike(object, &resource.schema, "");
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

/// Fields whose times have fractions; all others are in whole seconds.
const FINE_TIMES: [&str; 4] = ["renewTime", "acquireTime", "eventTime", "lastObservedTime"];

/// Writes what means the same in one form: times in UTC, in seconds or microseconds.
fn written_alike(value: &mut Value, schema: &Schema, name: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let Some(inner) = schema.field(name) else { continue };
                // In a map of strings, nothing is the empty string.
                if field.is_null() && inner.kind == Kind::String && !schema.properties.contains_key(name) {
                    *field = Value::String(String::new());
                }
                written_alike(field, inner, name);
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| written_alike(item, schema, name));
            }
        }
        Value::String(text) if is_time(schema) => {
            if let Ok(time) = text.parse::<Timestamp>() {
                *text = if FINE_TIMES.contains(&name) { format!("{time:.6}") } else { seconds(time) };
            }
        }
        _ => {}
    }
}

fn is_time(schema: &Schema) -> bool {
    schema.limits.format.as_deref() == Some("date-time")
}

/// The type that the body says must be the resource's; what it does not say it gets.
fn check_type(resource: &Resource, object: &mut Value) -> Result<(), StatusError> {
    let own = resource.api_version();
    let want = &resource.names.kind;
    let said = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (said("apiVersion"), said("kind"));
    if resource.custom.is_none() {
        let (_, version) = split_api_version(&api_version);
        let handled = |why: String| {
            let said = if kind.is_empty() { want } else { &kind };
            StatusError::bad_request(format!(
                "{said} in version {version:?} cannot be handled as a {want}: {why}"
            ))
        };
        if !api_version.is_empty() && api_version != own && (kind.is_empty() || kind == *want) {
            let why =
                format!("no kind {want:?} is registered for version {api_version:?} in scheme \"atoll\"");
            return Err(handled(why));
        }
        if !kind.is_empty() && kind != *want {
            return Err(handled(format!("no kind {kind:?} is registered for {want}")));
        }
    } else if api_version == own && kind != *want {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let error = FieldError::invalid("kind", kind.as_str(), format!("must be {want}"));
        return Err(StatusError::invalid(Subject { group: &resource.group, name: &kind }, name, &[error]));
    }
    if !api_version.is_empty() && api_version != own {
        return Err(StatusError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({own})"
        )));
    }
    object["apiVersion"] = own.into();
    object["kind"] = want.as_str().into();
    Ok(())
}

/// A body of a built-in kind must fit its structure; a custom resource's schema is asked later.
pub(crate) fn check_shape(resource: &Resource, object: &Value) -> Result<(), String> {
    let type_mismatch = if resource.custom.is_some() {
        type_mismatch(&object["metadata"], builtin::object_meta(), &mut "metadata".to_owned())
    } else {
        type_mismatch(object, &resource.schema, &mut String::new())
    };
    match type_mismatch {
        None => Ok(()),
        Some(TypeMismatch::Type { path, got, want }) => {
            let kind = &resource.names.kind;
            Err(format!("json: cannot unmarshal {got} into Go struct field {kind}.{path} of type {want}"))
        }
        Some(TypeMismatch::Time(text)) => {
            let quoted = atoll_apimachinery::invalid::quoted(&text);
            let layout = "2006-01-02T15:04:05Z07:00";
            Err(format!("parsing time {quoted} as \"{layout}\": cannot parse {quoted} as \"2006\""))
        }
    }
}

/// The metadata of objects within a custom resource must fit too.
fn check_embedded(resource: &Resource, object: &mut Value) -> Result<(), String> {
    let mut wrong = None;
    if resource.custom.is_some() {
        embedded(object, &resource.schema, &mut String::new(), &mut |inner, path| {
            let metadata = &inner["metadata"];
            let found = type_mismatch(metadata, builtin::object_meta(), &mut String::new());
            if let (None, Some(TypeMismatch::Type { path: field, got, want })) = (&wrong, found) {
                let why = format!(
                    "json: cannot unmarshal {got} into Go struct field ObjectMeta.{field} of type {want}"
                );
                wrong =
                    Some(FieldError::invalid(&format!("{path}.metadata"), metadata.clone(), why).to_string());
            }
        });
    }
    wrong.map_or(Ok(()), Err)
}

/// A value that does not fit its place.
enum TypeMismatch {
    Type { path: String, got: String, want: &'static str },
    Time(String),
}

/// The first value that has another type than its schema says.
fn type_mismatch(value: &Value, schema: &Schema, path: &mut String) -> Option<TypeMismatch> {
    let got = match value {
        Value::Null => return None,
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    let long = schema.limits.format.as_deref() == Some("int64");
    let want = match (schema.kind, value) {
        (Kind::Any, _)
        | (Kind::Object, Value::Object(_))
        | (Kind::Array, Value::Array(_))
        | (Kind::Number, Value::Number(_))
        | (Kind::Boolean, Value::Bool(_))
        | (Kind::IntOrString, Value::Number(_) | Value::String(_)) => None,
        (Kind::String, Value::String(text)) => {
            if is_time(schema) && !text.is_empty() && text.parse::<Timestamp>().is_err() {
                return Some(TypeMismatch::Time(text.clone()));
            }
            None
        }
        // A quantity may be written as a number.
        (Kind::String, Value::Number(_)) if schema.limits.format.as_deref() == Some("quantity") => None,
        (Kind::Integer, Value::Number(number)) => {
            let fits = number.as_i64().is_some_and(|number| long || i32::try_from(number).is_ok());
            (!fits).then_some(if long { "int64" } else { "int32" })
        }
        (Kind::Object, _) => Some("map[string]interface {}"),
        (Kind::Array, _) => Some("[]interface {}"),
        (Kind::String, _) => Some("string"),
        (Kind::Integer, _) => Some(if long { "int64" } else { "int32" }),
        (Kind::Number, _) => Some("float64"),
        (Kind::Boolean, _) => Some("bool"),
        (Kind::IntOrString, _) => Some("intstr.IntOrString"),
    };
    if let Some(want) = want {
        let got =
            if want.starts_with("int") { got } else { got.split(' ').next().unwrap_or_default().to_owned() };
        return Some(TypeMismatch::Type { path: path.clone(), got, want });
    }
    let length = path.len();
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let inner = schema.field(name)?;
            // The keys of a map are not told, its field is.
            if schema.properties.contains_key(name) {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            let found = type_mismatch(field, inner, path);
            path.truncate(length);
            found
        }),
        Value::Array(items) => {
            let schema = schema.items.as_deref()?;
            items.iter().find_map(|item| type_mismatch(item, schema, path))
        }
        _ => None,
    }
}
