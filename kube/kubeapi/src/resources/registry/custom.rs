//! The resources that a CRD brings: one for each version that is served.

use super::versions;
use crate::http::encode;
use crate::resources::resource::{Custom, Names, Resource, Scale, SchemaRef, Stored, Subresource};
use crate::resources::strategy::{Generation, KindRules, has_condition, strings};
use atoll_apimachinery::builtin;
use atoll_apimachinery::schema::{self, Rules, Schema};
use bytes::Bytes;
use serde_json::Value;
use std::sync::LazyLock;

/// What a CRD serves once its names are accepted. `since` is the revision that its schemas hold from.
pub(crate) fn resources(definition: &Value, since: u64) -> Vec<Resource> {
    let spec = &definition["spec"];
    let accepted = &definition["status"]["acceptedNames"];
    let names =
        if accepted["plural"].as_str().unwrap_or_default().is_empty() { &spec["names"] } else { accepted };
    let versions = || spec["versions"].as_array().into_iter().flatten();
    let storage = versions().find(|version| version["storage"] == true).map(Version::of);
    versions()
        .filter(|version| version["served"] == true)
        .map(|version| {
            let kept_as = storage.as_ref().filter(|storage| version["name"] == *storage.name);
            let own = kept_as.cloned().unwrap_or_else(|| Version::of(version));
            resource(definition, names, version, &own, storage.as_ref().unwrap_or(&own), since)
        })
        .collect()
}

/// A version, and what its objects look like.
#[derive(Clone)]
struct Version {
    name: String,
    document: Bytes,
    schema: SchemaRef,
}

impl Version {
    fn of(version: &Value) -> Self {
        // Copied, so that it takes no more room than it needs.
        let document = Bytes::copy_from_slice(&encode::write(&version["schema"]["openAPIV3Schema"]));
        let text = document.clone();
        let schema = SchemaRef::custom(move || schema_of(&encode::read(&text)));
        Self { name: version["name"].as_str().unwrap_or_default().to_owned(), document, schema }
    }
}

fn resource(
    definition: &Value,
    names: &Value,
    version: &Value,
    own: &Version,
    kept_as: &Version,
    since: u64,
) -> Resource {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| strings(value).map(str::to_owned).collect::<Vec<_>>();
    let (group, name) = (text(&spec["group"]), own.name.clone());
    let names = Names {
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        plural: text(&names["plural"]),
        singular: text(&names["singular"]),
        short: list(&names["shortNames"]),
        categories: list(&names["categories"]),
    };
    let subresources = subresources(&version["subresources"]);
    let has_status = subresources.contains(&Subresource::Status);
    let rules = KindRules {
        generation: Generation::Content,
        unconditional_update: false,
        resets: builtin::custom_resets(has_status, None),
        status_resets: builtin::custom_resets(has_status, Some("status")),
        ..KindRules::default()
    };
    let stored = Stored { group: group.clone(), plural: names.plural.clone(), version: kept_as.name.clone() };
    let deprecation = (version["deprecated"] == true).then(|| {
        let said = version["deprecationWarning"].as_str().map(str::to_owned);
        said.unwrap_or_else(|| {
            let kind = &names.kind;
            let instead = replacement(spec, &name).map(|better| format!("; use {group}/{better} {kind}"));
            format!("{group}/{name} {kind} is deprecated{}", instead.unwrap_or_default())
        })
    });
    let described = own.schema.clone();
    let custom = Custom {
        selectable: version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
            .collect(),
        columns: version["additionalPrinterColumns"].clone(),
        document: own.document.clone(),
        stored_schema: kept_as.schema.clone(),
        deprecation,
        terminating: has_condition(definition, "Terminating"),
        since,
        rules: LazyLock::new(Box::new(move || Rules::compile(&described))),
    };
    let namespaced = spec["scope"] == "Namespaced";
    let schema = own.schema.clone();
    let mut resource = Resource::new(&group, &name, names, namespaced, schema, rules, subresources, stored);
    resource.custom = Some(custom);
    resource.verbs = VERBS;
    resource
}

/// The order that discovery has them in, for custom resources.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The version to be used in place of a deprecated one.
fn replacement(spec: &Value, deprecated: &str) -> Option<String> {
    let versions = spec["versions"].as_array().into_iter().flatten();
    let better = versions.filter(|version| version["served"] == true && version["deprecated"] != true);
    let mut names: Vec<&str> = better.filter_map(|version| version["name"].as_str()).collect();
    names.retain(|name| versions::preference(name, deprecated).is_gt());
    names.sort_by(|a, b| versions::preference(b, a));
    names.first().map(|name| (*name).to_owned())
}

/// A version's schema, with what every object has.
fn schema_of(document: &Value) -> Schema {
    // A CRD with a schema that can't be read was refused when it was written.
    let mut schema = schema::parse(document).unwrap_or_else(|_| Schema {
        kind: schema::Kind::Object,
        preserve_unknown: true,
        ..Schema::default()
    });
    let text = || Schema { kind: schema::Kind::String, ..Schema::default() };
    schema.properties.entry("apiVersion".to_owned()).or_insert_with(text);
    schema.properties.entry("kind".to_owned()).or_insert_with(text);
    // Rules on the metadata's fields (name, generateName) are the version's own.
    let own = schema.properties.remove("metadata").unwrap_or_default();
    let mut whole = builtin::object_meta().clone();
    whole.rules = own.rules;
    for (name, field) in own.properties {
        if let Some(known) = whole.properties.get_mut(&name) {
            known.limits = field.limits;
            known.rules = field.rules;
        }
    }
    schema.properties.insert("metadata".to_owned(), whole);
    schema
}

fn subresources(given: &Value) -> Vec<Subresource> {
    let mut all = Vec::new();
    if given["status"].is_object() {
        all.push(Subresource::Status);
    }
    if given["scale"].is_object() {
        let path =
            |field: &str| given["scale"][field].as_str().map(|path| path.trim_start_matches('.').to_owned());
        all.push(Subresource::Scale(Scale {
            spec: path("specReplicasPath").unwrap_or_default(),
            status: path("statusReplicasPath").unwrap_or_default(),
            selector: path("labelSelectorPath"),
        }));
    }
    all
}
