//! The shape of built-in kinds: a server's `/openapi/v3` without its prose, one line per definition.
//!
//! ```text
//!   apps/v1/Deployment<tab>io.k8s.api.apps.v1.Deployment            a kind, and the definition of it
//!   io.k8s.api.apps.v1.Deployment<tab>{"properties":{…}}            a definition, with $ref to others by name
//! ```
//!
//! Each property says in `x-go` how Go writes it: `omit` (left out when empty), `nil` (left out when null), `null` and
//! `zero` (never left out).

use crate::error::{Error, Reading, Result};
use crate::go_structs::{Form, GoField, GoStructs};
use atoll_lab::kubernetes_sources;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Group, version, and the kinds wanted; all of them when none are named.
const WANTED: &[(&str, &str, &[&str])] = &[
    (
        "",
        "v1",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
    ("admissionregistration.k8s.io", "v1", &[]),
    ("apiextensions.k8s.io", "v1", &[]),
    ("apiregistration.k8s.io", "v1", &[]),
    ("apps", "v1", &[]),
    ("authentication.k8s.io", "v1", &[]),
    ("authorization.k8s.io", "v1", &[]),
    ("autoscaling", "v1", &["Scale"]),
    ("autoscaling", "v2", &[]),
    ("batch", "v1", &[]),
    ("coordination.k8s.io", "v1", &[]),
    ("discovery.k8s.io", "v1", &[]),
    ("events.k8s.io", "v1", &[]),
    ("networking.k8s.io", "v1", &[]),
    ("policy", "v1", &[]),
    ("rbac.authorization.k8s.io", "v1", &[]),
    ("scheduling.k8s.io", "v1", &["PriorityClass"]),
    ("storage.k8s.io", "v1", &["StorageClass"]),
];

/// Every group has these, and they are no resources.
const COMMON: &[&str] =
    &["DeleteOptions", "WatchEvent", "Status", "APIGroup", "APIResourceList", "APIVersions"];

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// What is kept of a schema.
const KEPT: &[&str] = &[
    "enum",
    "format",
    "maximum",
    "minimum",
    "oneOf",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields",
];

/// The facts as a running API server and its sources have them; `work` is a folder to write to.
pub async fn collect(client: &kube::Client, work: &Path) -> Result<String> {
    let mut documents = Vec::new();
    for (group, version, _) in WANTED {
        let path =
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let request = http::Request::get(format!("/openapi/v3/{path}"))
            .body(Vec::new())
            .expect("a constant request is well-formed");
        let document: Value = client.request(request).await.map_err(|error| Error::Schemas {
            group_version: format!("{group}/{version}"),
            error: Box::new(error),
        })?;
        documents.push(document);
    }
    Ok(compact(&documents, &structs(work)?))
}

fn structs(work: &Path) -> Result<GoStructs> {
    let modules = [
        ("k8s.io/api", "io.k8s.api"),
        ("k8s.io/apimachinery", "io.k8s.apimachinery.pkg.apis"),
        ("k8s.io/apiextensions-apiserver", "io.k8s.apiextensions-apiserver.pkg.apis"),
        ("k8s.io/kube-aggregator", "io.k8s.kube-aggregator.pkg.apis"),
    ];
    let names: Vec<_> = modules.iter().map(|(module, _)| *module).collect();
    let mut structs = GoStructs::default();
    for (dir, (module, prefix)) in kubernetes_sources(&names, work)?.iter().zip(modules) {
        let root = if module == "k8s.io/api" { dir.clone() } else { dir.join("pkg/apis") };
        for group in folders(&root)? {
            for version in folders(&root.join(&group))? {
                structs.read(&root.join(&group).join(&version), &format!("{prefix}.{group}.{version}"))?;
            }
        }
    }
    Ok(structs)
}

fn folders(dir: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).reading(dir)? {
        let entry = entry.reading(dir)?;
        if entry.path().is_dir() {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(found)
}

/// The facts out of the documents of several group versions.
#[must_use]
pub(crate) fn compact(documents: &[Value], structs: &GoStructs) -> String {
    let mut definitions = BTreeMap::new();
    for document in documents {
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        definitions.extend(schemas.into_iter().flatten());
    }
    let mut kinds = BTreeMap::new();
    for (name, definition) in &definitions {
        for kind in kinds_of(definition) {
            kinds.insert(kind, (*name).clone());
        }
    }
    let mut needed = BTreeSet::from([format!("{}.ObjectMeta", super::go_structs::META)]);
    needed.extend(kinds.values().cloned());
    let mut compacted = BTreeMap::new();
    while let Some(name) = needed.pop_first() {
        let Some(definition) = definitions.get(&name) else { continue };
        let definition = definition_of(&name, definition, structs);
        references(&definition, &mut |reference| {
            if !compacted.contains_key(reference) && reference != name {
                needed.insert(reference.to_owned());
            }
        });
        compacted.insert(name, definition);
    }
    let mut text = String::new();
    for (kind, name) in &kinds {
        let _ = writeln!(text, "{kind}\t{name}");
    }
    for (name, definition) in &compacted {
        let _ = writeln!(text, "{name}\t{definition}");
    }
    text
}

/// The wanted kinds that a definition is of.
fn kinds_of(definition: &Value) -> Vec<String> {
    let listed = definition.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
    let text =
        |kind: &Value, name: &str| kind.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let found = listed.into_iter().flatten().filter_map(|listed| {
        let (group, version, kind) = (text(listed, "group"), text(listed, "version"), text(listed, "kind"));
        let (_, _, kinds) = WANTED.iter().find(|(g, v, _)| *g == group && *v == version)?;
        let wanted = if kinds.is_empty() {
            !kind.ends_with("List") && !COMMON.contains(&kind.as_str())
        } else {
            kinds.contains(&kind.as_str())
        };
        let group_version = if group.is_empty() { version } else { format!("{group}/{version}") };
        wanted.then(|| format!("{group_version}/{kind}"))
    });
    found.collect()
}

fn definition_of(name: &str, definition: &Value, structs: &GoStructs) -> Value {
    match name {
        // What the server accepts for them is not what the schema says.
        QUANTITY => json!({ "format": "quantity", "x-kubernetes-int-or-string": true }),
        INT_OR_STRING => json!({ "format": "int-or-string", "x-kubernetes-int-or-string": true }),
        RAW_EXTENSION => {
            json!({ "type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true })
        }
        _ => {
            let mut compacted = schema(definition);
            let properties = compacted.get_mut("properties").and_then(Value::as_object_mut);
            for (property, schema) in properties.into_iter().flatten() {
                if let (Some(field), Value::Object(schema)) = (structs.field(name, property), schema) {
                    schema.insert("x-go".to_owned(), json!(encoding(field, schema)));
                }
            }
            compacted
        }
    }
}

/// One schema without prose; an `allOf` of one reference is that reference.
fn schema(full: &Value) -> Value {
    let mut kept = Map::new();
    for name in KEPT {
        if let Some(value) = full.get(*name) {
            kept.insert((*name).to_owned(), value.clone());
        }
    }
    // Zero is what Go has anyway: not a default.
    let zero = [json!(""), json!(0), json!(false), json!({})];
    if let Some(default) = full.get("default").filter(|default| !zero.contains(default)) {
        kept.insert("default".to_owned(), default.clone());
    }
    let reference = full.get("$ref").or_else(|| full.pointer("/allOf/0/$ref")).and_then(Value::as_str);
    if let Some(reference) = reference.and_then(|reference| reference.rsplit('/').next()) {
        kept.insert("$ref".to_owned(), json!(reference));
    }
    for name in ["items", "additionalProperties"] {
        if let Some(child) = full.get(name) {
            kept.insert(name.to_owned(), if child.is_object() { schema(child) } else { child.clone() });
        }
    }
    if let Some(properties) = full.get("properties").and_then(Value::as_object) {
        let properties: Map<_, _> =
            properties.iter().map(|(name, child)| (name.clone(), schema(child))).collect();
        kept.insert("properties".to_owned(), Value::Object(properties));
    }
    Value::Object(kept)
}

/// How Go writes a field: what is never left out, and what is when it is empty.
fn encoding(field: GoField, schema: &Map<String, Value>) -> &'static str {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let primitive = reference.is_none();
    match field.form {
        Form::Pointer if field.omit_empty => "nil",
        Form::Collection if field.omit_empty => "omit",
        Form::Pointer | Form::Collection => "null",
        Form::Value if field.omit_zero => "nil",
        // A named map or slice, or a scalar.
        Form::Value if primitive && field.omit_empty => "omit",
        Form::Value
            if primitive
                && matches!(schema.get("type").and_then(Value::as_str), Some("array" | "object")) =>
        {
            "null"
        }
        Form::Value => match reference {
            // Structs that marshal as something else have null for nothing.
            Some(reference) if reference.ends_with("Time") || reference == RAW_EXTENSION => "null",
            _ => "zero",
        },
    }
}

fn references(schema: &Value, with: &mut impl FnMut(&str)) {
    match schema {
        Value::Object(fields) => {
            if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                with(reference);
            }
            fields.values().for_each(|value| references(value, with));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, with)),
        _ => {}
    }
}
