//! Cluster: a member of the clusterset, in the hub. Karmada's kind, whole: the API server drops unknown fields, so
//! what is not honoured is here too.

mod resources;
mod status;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use resources::{AllocatableModeling, Quantity, ResourceModel, ResourceModelRange, ResourceSummary};
pub use status::{APIEnablement, APIResource, ClusterStatus, NodeSummary};

/// How the hub reaches the member, and where it is.
#[derive(Clone, Debug, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.karmada.io",
    version = "v1alpha1",
    kind = "Cluster",
    doc = "Cluster is a member of the clusterset: how the hub reaches it, and what is known of its state.",
    status = "ClusterStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".status.kubernetesVersion",
        "description": "The member's Kubernetes version"}"#,
    printcolumn = r#"{"name": "Mode", "type": "string", "jsonPath": ".spec.syncMode",
        "description": "Push if the hub writes to the member, Pull if the member fetches from the hub"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the member is reachable and healthy"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Zones", "type": "string", "priority": 1, "jsonPath": ".spec.zones"}"#,
    printcolumn = r#"{"name": "Region", "type": "string", "priority": 1, "jsonPath": ".spec.region"}"#,
    printcolumn = r#"{"name": "Provider", "type": "string", "priority": 1, "jsonPath": ".spec.provider"}"#,
    printcolumn = r#"{"name": "API-Endpoint", "type": "string", "priority": 1, "jsonPath": ".spec.apiEndpoint"}"#,
    printcolumn = r#"{"name": "Proxy-URL", "type": "string", "priority": 1, "jsonPath": ".spec.proxyURL"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSpec {
    /// Tells this cluster from any other that ever has its name: the uid of its namespace kube-system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128_000))]
    pub id: Option<String>,

    /// Push if the hub writes to the member, Pull if an agent in the member fetches from the hub.
    pub sync_mode: SyncMode,

    /// The member's API: hostname, hostname:port, IP or IP:port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_endpoint: Option<String>,

    /// The Secret with the hub's credentials for the member, under the keys token and caBundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalSecretReference>,

    /// The Secret with the token that may impersonate users in the member, under the key token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impersonator_secret_ref: Option<LocalSecretReference>,

    /// Do not check the certificate of the member's API. Whoever is in between can then read and change everything.
    #[serde(default, rename = "insecureSkipTLSVerification", skip_serializing_if = "Option::is_none")]
    pub insecure_skip_tls_verification: Option<bool>,

    /// The proxy through which the hub reaches the member.
    #[serde(default, rename = "proxyURL", skip_serializing_if = "Option::is_none")]
    pub proxy_url: Option<String>,

    /// HTTP headers for the proxy. Several values of one header are separated by commas.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proxy_header: BTreeMap<String, String>,

    /// The cloud provider, which policies can select by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,

    /// The region, which policies can select by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,

    /// Deprecated and without effect: use zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,

    /// The failure zones that the member spans, which policies can select by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,

    /// Keep what does not tolerate them away from the member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,

    /// Grades of nodes by their resources, for Karmada's scheduler. Kept, but without effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_models: Vec<ResourceModel>,
}

/// Who carries changes between hub and member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SyncMode {
    /// The hub, with the credentials in `secretRef`.
    Push,
    /// An agent in the member.
    Pull,
}

/// A Secret in the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalSecretReference {
    /// The Secret's namespace.
    pub namespace: String,
    /// The Secret's name.
    pub name: String,
}

/// Keeps what does not tolerate it away from the member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What tolerations match, with the value.
    pub key: String,

    /// What tolerations match, with the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,

    /// What happens to that which does not tolerate the taint: NoSchedule, PreferNoSchedule or NoExecute.
    pub effect: TaintEffect,

    /// When the taint was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::time")]
    pub time_added: Option<Time>,
}

/// What happens to that which does not tolerate a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// What is there leaves, and nothing new comes.
    NoExecute,
    /// Nothing new comes.
    NoSchedule,
    /// Something new comes only if there is no better place.
    PreferNoSchedule,
}
