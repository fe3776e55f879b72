//! Cluster, against Karmada's `swagger.json` and its printer. There it is an aggregated API: it has no CRD.

use std::path::PathBuf;

use atoll_api::crds;
use serde_json::Value;

use crate::{facts, published};

pub(crate) fn release() -> Option<PathBuf> {
    published::module("github.com/karmada-io/karmada@v1.18.2")
}

const CLUSTER: &str = "com.github.karmada-io.karmada.pkg.apis.cluster.v1alpha1.Cluster";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Puts a definition where it is referred to, and drops the zero values that openapi-gen calls defaults.
fn inline(definitions: &Value, schema: &Value) -> Value {
    let reference = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/definitions/"));
    if reference == Some(QUANTITY) {
        // What every CRD has for a quantity: manifests write `min: 0` and `max: 4Gi`.
        return serde_json::json!({ "x-kubernetes-int-or-string": true });
    }
    let schema = reference.map_or(schema, |name| &definitions[name]);
    let mut inlined = facts::without(schema, &["default", "x-kubernetes-group-version-kind"]);
    if let Some(properties) = inlined.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| name != "metadata");
        properties.values_mut().for_each(|property| *property = inline(definitions, property));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = inlined.get_mut(key) {
            *inner = inline(definitions, inner);
        }
    }
    inlined
}

#[test]
fn cluster_schema_is_as_published() {
    let Some(module) = release() else { return };
    let openapi: Value =
        serde_json::from_str(&published::read(&module, "api/openapi-spec/swagger.json")).unwrap();
    let theirs = inline(&openapi["definitions"], &openapi["definitions"][CLUSTER]);
    let crd = serde_json::to_value(crds::cluster()).unwrap();
    let ours = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let marker = "in a marker of the Go type, which the OpenAPI document does not carry";
    let condition = "metav1.Condition's own marker, which the OpenAPI document does not carry";
    let shared = "so that several writers can each apply their condition";
    facts::compare(
        &facts::of_schema(ours),
        &facts::of_schema(&theirs),
        &[
            ("+ spec.id: maxLength = 128000", marker),
            (r#"+ spec.syncMode: enum = {"\"Pull\"", "\"Push\""}"#, marker),
            ("+ status.conditions: x-kubernetes-list-map-keys = [\"type\"]", shared),
            ("+ status.conditions: x-kubernetes-list-type = \"map\"", shared),
            ("+ status.conditions[].message: maxLength = 32768", condition),
            ("+ status.conditions[].observedGeneration: minimum = 0", condition),
            ("+ status.conditions[].reason: maxLength = 1024", condition),
            ("+ status.conditions[].reason: minLength = 1", condition),
            (
                "+ status.conditions[].reason: pattern = \"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$\"",
                condition,
            ),
            (r#"+ status.conditions[].status: enum = {"\"False\"", "\"True\"", "\"Unknown\""}"#, condition),
            ("+ status.conditions[].type: maxLength = 316", condition),
            (
                concat!(
                    r#"+ status.conditions[].type: pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?"#,
                    r#"(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$""#,
                ),
                condition,
            ),
        ],
    );
}

#[test]
fn cluster_crd_has_karmadas_markers_and_columns() {
    let Some(module) = release() else { return };
    let crd = serde_json::to_value(crds::cluster()).unwrap();
    let version = &crd["spec"]["versions"][0];
    let types = published::read(&module, "pkg/apis/cluster/v1alpha1/types.go");
    for (marker, ours) in [
        ("+kubebuilder:resource:scope=\"Cluster\"", crd["spec"]["scope"] == "Cluster"),
        ("+kubebuilder:subresource:status", version["subresources"]["status"].is_object()),
    ] {
        assert!(types.contains(marker) && ours, "{marker}");
    }

    let printer = published::read(&module, "pkg/printers/internalversion/printers.go");
    let theirs: Vec<_> = printer.lines().filter_map(column).filter(|(name, _)| name != "Name").collect();
    let ours: Vec<_> = version["additionalPrinterColumns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap().to_owned(), column["priority"].as_i64().unwrap_or(0)))
        .collect();
    assert_eq!(ours, theirs);
}

/// Name and priority in a line like `{Name: "Region", Type: "string", Priority: 1, …`.
fn column(line: &str) -> Option<(String, i64)> {
    let (name, rest) = line.trim().strip_prefix("{Name: \"")?.split_once('"')?;
    let priority = rest.split_once("Priority: ").and_then(|(_, rest)| rest.split(',').next()?.parse().ok());
    Some((name.to_owned(), priority.unwrap_or(0)))
}
