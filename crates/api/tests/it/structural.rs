//! What an API server demands of a structural schema, and what `kubectl explain` needs.

use atoll_api::crds;
use atoll_api::names::kind;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The CRDs that are derived from our own types; Karmada's are as it publishes them.
fn own() -> Vec<CustomResourceDefinition> {
    let theirs: Vec<_> = crds::policies().collect();
    crds::all().into_iter().filter(|crd| !theirs.contains(crd)).collect()
}

/// Every schema of every CRD with its path, the root's being the CRD's name.
fn schemas() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for crd in own() {
        let crd = serde_json::to_value(crd).expect("a CRD is plain data");
        for version in crd["spec"]["versions"].as_array().expect("versions") {
            let path = format!("{} {}", crd["metadata"]["name"], version["name"]);
            descend(&version["schema"]["openAPIV3Schema"], path, &mut found);
        }
    }
    found
}

fn descend(schema: &Value, path: String, found: &mut Vec<(String, Value)>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        descend(property, format!("{path}.{name}"), found);
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            descend(&schema[inner], format!("{path}.{inner}"), found);
        }
    }
    found.push((path, schema.clone()));
}

#[test]
fn schemas_are_structural_and_default_nothing() {
    for (path, schema) in schemas() {
        let typed = schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == true;
        assert!(typed, "{path} has no type: {schema}");
        for unwanted in
            ["nullable", "default", "title", "anyOf", "oneOf", "allOf", "not", "$ref", "uniqueItems"]
        {
            assert!(schema.get(unwanted).is_none(), "{path} has {unwanted}: {schema}");
        }
        let format = schema["format"].as_str();
        assert!(matches!(format, None | Some("int32" | "int64" | "date-time")), "{path}: {format:?}");
    }
}

#[test]
fn every_field_has_a_description_in_plain_text() {
    for (path, schema) in schemas() {
        let is_field = !path.ends_with(".items") && !path.ends_with(".additionalProperties");
        let description = schema["description"].as_str().unwrap_or_default();
        assert!(!is_field || description.ends_with('.'), "{path}: {description:?}");
        assert!(!description.contains('\n') && !description.contains('`'), "{path}: {description:?}");
    }
}

#[test]
fn crds_have_the_names_that_the_constants_say() {
    let found: Vec<_> = own()
        .into_iter()
        .map(|crd| {
            let versions: Vec<_> = crd.spec.versions.iter().map(|v| v.name.clone()).collect();
            (crd.spec.group, crd.spec.names.kind, crd.spec.names.plural, versions)
        })
        .collect();
    let wanted = [
        (
            kind::about::GROUP,
            kind::about::CLUSTER_PROPERTY,
            kind::about::CLUSTER_PROPERTIES,
            &[kind::about::V1ALPHA1, kind::about::V1BETA1][..],
        ),
        (kind::cluster::GROUP, kind::cluster::CLUSTER, kind::cluster::CLUSTERS, &[kind::cluster::V1ALPHA1]),
        (
            kind::mcs::GROUP,
            kind::mcs::SERVICE_EXPORT,
            kind::mcs::SERVICE_EXPORTS,
            &[kind::mcs::V1ALPHA1, kind::mcs::V1BETA1],
        ),
        (
            kind::mcs::GROUP,
            kind::mcs::SERVICE_IMPORT,
            kind::mcs::SERVICE_IMPORTS,
            &[kind::mcs::V1ALPHA1, kind::mcs::V1BETA1],
        ),
        (
            kind::networking::GROUP,
            kind::networking::MULTI_CLUSTER_SERVICE,
            kind::networking::MULTI_CLUSTER_SERVICES,
            &[kind::networking::V1ALPHA1],
        ),
        (kind::own::GROUP, kind::own::SHARING_POLICY, kind::own::SHARING_POLICIES, &[kind::own::V1ALPHA1]),
    ]
    .map(|(group, kind, plural, versions)| {
        (
            group.to_owned(),
            kind.to_owned(),
            plural.to_owned(),
            versions.iter().map(ToString::to_string).collect(),
        )
    });
    assert_eq!(found, wanted);
}
