//! The document of one version of a group: its kinds, and the paths that they are at.

use crate::registry::Version;
use crate::resource::{Resource, Subresource};
use apimachinery::schema::{Kind, ListKind, Schema};
use serde_json::{Map, Value, json};

pub(super) fn document(group: &str, version: &Version) -> Value {
    let (mut schemas, mut paths) = (Map::new(), Map::new());
    for resource in version.resources.values() {
        let name = schema_name(resource);
        schemas.insert(name.clone(), kind(resource));
        if resource.verbs.contains(&"list") {
            let list = format!("{name}List");
            schemas.insert(list, list_of(resource, &name));
        }
        add_paths(&mut paths, group, resource, &name);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": format!("v{}", crate::api::KUBERNETES)},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// `io.k8s.api.apps.v1.Deployment`, or the reversed domain of a custom resource.
fn schema_name(resource: &Resource) -> String {
    let kind = &resource.names.kind;
    if resource.custom.is_some() {
        let domain: Vec<&str> = resource.group.split('.').rev().collect();
        return format!("{}.{}.{kind}", domain.join("."), resource.version);
    }
    let group = match resource.group.as_str() {
        "" => "core",
        "apiextensions.k8s.io" => {
            return format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{kind}");
        }
        "apiregistration.k8s.io" => {
            return format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.{kind}");
        }
        group => group.split('.').next().unwrap_or_default(),
    };
    format!("io.k8s.api.{group}.{}.{kind}", resource.version)
}

fn type_of(resource: &Resource) -> Value {
    json!({"group": resource.group, "kind": resource.names.kind, "version": resource.version})
}

fn kind(resource: &Resource) -> Value {
    let mut document = written(&resource.schema);
    if let Some(custom) = &resource.custom {
        // The CRD's own words, with what every object has.
        let types = document["properties"].clone();
        document = custom.document.clone();
        for field in ["apiVersion", "kind", "metadata"] {
            document["properties"][field] = types[field].clone();
        }
    }
    document["x-kubernetes-group-version-kind"] = json!([type_of(resource)]);
    document
}

fn list_of(resource: &Resource, name: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": {"$ref": format!("#/components/schemas/{name}")}},
        },
        "x-kubernetes-group-version-kind":
            [{"group": resource.group, "kind": resource.names.list_kind, "version": resource.version}],
    })
}

/// A schema as OpenAPI writes it.
fn written(schema: &Schema) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| {
        out.insert(key.to_owned(), value);
    };
    match schema.kind {
        Kind::Any => {}
        Kind::Object => put("type", "object".into()),
        Kind::Array => put("type", "array".into()),
        Kind::String => put("type", "string".into()),
        Kind::Integer => put("type", "integer".into()),
        Kind::Number => put("type", "number".into()),
        Kind::Boolean => put("type", "boolean".into()),
        Kind::IntOrString => {
            put("x-kubernetes-int-or-string", true.into());
            put("format", "int-or-string".into());
        }
    }
    if let Some(format) = &schema.limits.format {
        put("format", format.as_str().into());
    }
    if let Some(values) = &schema.limits.one_of_values {
        put("enum", values.clone().into());
    }
    if !schema.description.is_empty() {
        put("description", schema.description.as_str().into());
    }
    if let Some(default) = &schema.default {
        put("default", default.clone());
    }
    if !schema.required.is_empty() {
        put("required", json!(schema.required));
    }
    if schema.preserve_unknown {
        put("x-kubernetes-preserve-unknown-fields", true.into());
    }
    match &schema.list {
        ListKind::Atomic if schema.kind == Kind::Array => put("x-kubernetes-list-type", "atomic".into()),
        ListKind::Atomic => {}
        ListKind::Set => put("x-kubernetes-list-type", "set".into()),
        ListKind::Map(keys) => {
            put("x-kubernetes-list-type", "map".into());
            put("x-kubernetes-list-map-keys", json!(keys));
        }
    }
    if schema.atomic_map {
        put("x-kubernetes-map-type", "atomic".into());
    }
    let strategies: Vec<&str> = [(schema.patch.merge, "merge"), (schema.patch.retain_keys, "retainKeys")]
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, name)| *name)
        .collect();
    if !strategies.is_empty() {
        put("x-kubernetes-patch-strategy", strategies.join(",").into());
    }
    if let Some(key) = &schema.patch.merge_key {
        put("x-kubernetes-patch-merge-key", key.as_str().into());
    }
    if !schema.properties.is_empty() {
        let fields: Map<String, Value> =
            schema.properties.iter().map(|(name, field)| (name.clone(), written(field))).collect();
        put("properties", Value::Object(fields));
    }
    if let Some(items) = &schema.items {
        put("items", written(items));
    }
    if let Some(additional) = &schema.additional {
        put("additionalProperties", written(additional));
    }
    Value::Object(out)
}

fn add_paths(paths: &mut Map<String, Value>, group: &str, resource: &Resource, name: &str) {
    let root = if group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{group}/{}", resource.version)
    };
    let place = if resource.namespaced { format!("{root}/namespaces/{{namespace}}") } else { root.clone() };
    let collection = format!("{place}/{}", resource.names.plural);
    let object = format!("{collection}/{{name}}");
    let reference = json!({"$ref": format!("#/components/schemas/{name}")});
    let own = type_of(resource);
    let operation = |verb: &str, action: &str| operation(verb, action, &own, &reference);
    let mut methods = Map::new();
    for (verb, method, action) in [
        ("list", "get", "list"),
        ("create", "post", "post"),
        ("deletecollection", "delete", "deletecollection"),
    ] {
        if resource.verbs.contains(&verb) {
            methods.insert(method.to_owned(), operation(verb, action));
        }
    }
    paths.insert(collection.clone(), Value::Object(methods));
    let mut methods = Map::new();
    for (verb, method, action) in [
        ("get", "get", "get"),
        ("update", "put", "put"),
        ("patch", "patch", "patch"),
        ("delete", "delete", "delete"),
    ] {
        if resource.verbs.contains(&verb) {
            methods.insert(method.to_owned(), operation(verb, action));
        }
    }
    if !methods.is_empty() {
        methods.insert("parameters".to_owned(), json!([path_parameter("name")]));
        paths.insert(object.clone(), Value::Object(methods));
    }
    for subresource in &resource.subresources {
        if matches!(subresource, Subresource::Status | Subresource::Scale(_)) {
            let methods = json!({
                "get": operation("get", "get"), "put": operation("update", "put"), "patch": operation("patch", "patch"),
            });
            paths.insert(format!("{object}/{}", subresource.name()), methods);
        }
    }
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})
}

fn operation(verb: &str, action: &str, own: &Value, reference: &Value) -> Value {
    let parameter = |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
    let parameters: Vec<Value> = match verb {
        "create" | "update" => vec![
            parameter("dryRun", "string"),
            parameter("fieldManager", "string"),
            parameter("fieldValidation", "string"),
        ],
        "patch" => vec![
            parameter("dryRun", "string"),
            parameter("fieldManager", "string"),
            parameter("fieldValidation", "string"),
            parameter("force", "boolean"),
        ],
        "delete" | "deletecollection" => vec![
            parameter("dryRun", "string"),
            parameter("gracePeriodSeconds", "integer"),
            parameter("propagationPolicy", "string"),
        ],
        "list" => vec![
            parameter("labelSelector", "string"),
            parameter("fieldSelector", "string"),
            parameter("limit", "integer"),
            parameter("continue", "string"),
            parameter("watch", "boolean"),
        ],
        _ => Vec::new(),
    };
    let mut operation = json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": own,
    });
    let kinds: &[&str] = match verb {
        "create" | "update" => &["*/*"],
        "patch" => &[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ],
        _ => &[],
    };
    if !kinds.is_empty() {
        let content: Map<String, Value> =
            kinds.iter().map(|kind| ((*kind).to_owned(), json!({"schema": reference}))).collect();
        operation["requestBody"] = json!({"content": content, "required": true});
    }
    operation
}
