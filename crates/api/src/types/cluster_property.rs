//! `ClusterProperty`: one fact that a cluster knows about itself.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the cluster says of itself.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "about.k8s.io",
    version = "v1beta1",
    kind = "ClusterProperty",
    plural = "clusterproperties",
    doc = "ClusterProperty is one fact about this cluster, such as its id, for multi-cluster tools to read.",
    category = "multicluster",
    status = "ClusterPropertyStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "value", "type": "string", "jsonPath": ".spec.value"}"#,
    printcolumn = r#"{"name": "age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct ClusterPropertySpec {
    /// The property's value. The object's name says which property it is.
    #[schemars(length(min = 1, max = 128_000))]
    pub value: String,
}

super::absent::spec_may_be_absent!(ClusterPropertySpec);

/// Nothing so far; the published schema has the field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterPropertyStatus {}
