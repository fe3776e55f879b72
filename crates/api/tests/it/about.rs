//! `ClusterProperty`, against the facts of the About API's CRD.
//!
//! The About API has no releases, and its Go module can't be fetched everywhere, so the facts stand here: those of
//! `config/crd` in github.com/kubernetes-sigs/about-api at commit 970300d6be14 (2026-07-27).

use atoll_api::crds;
use serde_json::{Value, json};

use crate::facts;

fn published() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name,
            "served": true,
            "storage": storage,
            "subresources": { "status": {} },
            "additionalPrinterColumns": [
                { "name": "value", "type": "string", "jsonPath": ".spec.value" },
                { "name": "age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
            ],
            "schema": { "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "required": ["value"],
                        "properties": { "value": { "type": "string", "minLength": 1 } },
                    },
                    "status": { "type": "object" },
                },
            } },
        })
    };
    json!({
        "metadata": {
            "name": "clusterproperties.about.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/3084" },
        },
        "spec": {
            "group": "about.k8s.io",
            "scope": "Cluster",
            "names": {
                "kind": "ClusterProperty",
                "plural": "clusterproperties",
                "singular": "clusterproperty",
                "categories": ["multicluster"],
            },
            "versions": [version("v1alpha1", false), version("v1beta1", true)],
        },
    })
}

#[test]
fn cluster_property_crd_is_as_published() {
    let ours = serde_json::to_value(crds::cluster_property()).unwrap();
    let why = "the Go type asks for it in a marker that is misspelt, so the published CRD lacks it";
    facts::compare(
        &facts::of_crd(&ours),
        &facts::of_crd(&published()),
        &[
            ("+ v1alpha1 spec.value: maxLength = 128000", why),
            ("+ v1beta1 spec.value: maxLength = 128000", why),
        ],
    );
    assert_eq!(ours["metadata"]["annotations"], published()["metadata"]["annotations"]);
}
