//! The document of one version of a group: its kinds, and the paths that they are at.

use crate::http::encode;
use crate::resources::registry::Version;
use crate::resources::resource::{Resource, Subresource};
use atoll_apimachinery::builtin;
use serde_json::{Map, Value, json};

pub(super) fn document(group: &str, version: &Version) -> Value {
    let (mut schemas, mut paths) = (Map::new(), Map::new());
    for resource in version.resources.values() {
        let name = schema_name(resource);
        add_kind(&mut schemas, resource, &name);
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
    if resource.custom.is_some() || resource.aggregated.is_some() {
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

/// The kind, and every definition that it refers to.
fn add_kind(schemas: &mut Map<String, Value>, resource: &Resource, name: &str) {
    let of_kind = json!([type_of(resource)]);
    if let Some(custom) = &resource.custom {
        // The CRD's own words, with what every object has.
        let mut document = encode::read(&custom.document);
        for field in ["apiVersion", "kind"] {
            document["properties"][field] = json!({"type": "string"});
        }
        document["properties"]["metadata"] = json!({"allOf": [{"$ref": format!("{PLACE}{OBJECT_META}")}]});
        document["x-kubernetes-group-version-kind"] = of_kind;
        schemas.insert(name.to_owned(), document);
        add_definitions(
            schemas,
            builtin::definitions("", "v1", "ConfigMap").map(|(_, found)| found).unwrap_or_default(),
            "ConfigMap",
        );
        return;
    }
    match builtin::definitions(&resource.group, &resource.version, &resource.names.kind) {
        Some((own, found)) => {
            add_definitions(schemas, found, "");
            if let Some(mut document) = schemas.remove(own) {
                document["x-kubernetes-group-version-kind"] = of_kind;
                schemas.insert(name.to_owned(), document);
            }
        }
        None => {
            let document = json!({"type": "object", "x-kubernetes-group-version-kind": of_kind});
            schemas.insert(name.to_owned(), document);
        }
    }
}

/// Where definitions are in a document.
const PLACE: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

fn add_definitions(schemas: &mut Map<String, Value>, found: Map<String, Value>, but: &str) {
    for (name, mut definition) in found {
        if but.is_empty() || !name.ends_with(but) {
            as_openapi(&mut definition);
            schemas.entry(name).or_insert(definition);
        }
    }
}

/// The facts' short form as OpenAPI writes it: references lead to their place, and stand beside other keywords.
fn as_openapi(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            keywords.remove("x-go");
            keywords.values_mut().for_each(as_openapi);
            if let Some(Value::String(name)) = keywords.remove("$ref") {
                keywords.insert("allOf".to_owned(), json!([{"$ref": format!("{PLACE}{name}")}]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(as_openapi),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn list_of(resource: &Resource, name: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": {"$ref": format!("{PLACE}{name}")}},
        },
        "x-kubernetes-group-version-kind":
            [{"group": resource.group, "kind": resource.names.list_kind, "version": resource.version}],
    })
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
    let reference = json!({"$ref": format!("{PLACE}{name}")});
    let own = type_of(resource);
    let patches = if resource.custom.is_some() { &PATCHES[..3] } else { &PATCHES };
    let operation = |verb: &str, action: &str| operation(verb, action, &own, &reference, patches);
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

/// The ways to patch. Clients take a strategic patch where they find one: custom resources have none.
const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
];

fn operation(verb: &str, action: &str, own: &Value, reference: &Value, patches: &[&str]) -> Value {
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
        "patch" => patches,
        _ => &[],
    };
    if !kinds.is_empty() {
        let content: Map<String, Value> =
            kinds.iter().map(|kind| ((*kind).to_owned(), json!({"schema": reference}))).collect();
        operation["requestBody"] = json!({"content": content, "required": true});
    }
    operation
}
