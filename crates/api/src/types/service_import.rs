//! ServiceImport: what an importing cluster knows of a service of the clusterset.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The service as all its exports together make it.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1beta1",
    kind = "ServiceImport",
    doc = "ServiceImport describes a service that clusters of the clusterset export, as this cluster can use it.",
    namespaced,
    shortname = "svcim",
    shortname = "svcimport",
    status = "ServiceImportStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Type", "type": "string", "jsonPath": ".spec.type",
        "description": "ClusterSetIP or Headless"}"#,
    printcolumn = r#"{"name": "IP", "type": "string", "jsonPath": ".spec.ips",
        "description": "The addresses at which this cluster reaches the service"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether the service can be used in this cluster"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason",
        "description": "Why it is ready or not; SourcesStale if a source is not reached"}"#,
    printcolumn = r#"{"name": "Sources", "type": "string", "jsonPath": ".status.clusters[*].cluster",
        "description": "The clusters that export the service"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "The sources, those that are stale, and what is wrong", "priority": 1}"#
)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct ServiceImportSpec {
    /// The ports of all exports together. May be empty.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<ServicePort>,

    /// The addresses at which this cluster reaches the service, one per IP family. None if the type is Headless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub ips: Vec<String>,

    /// IPv4, IPv6 or both, in the order of ips.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub ip_families: Vec<String>,

    /// ClusterSetIP if the service is reached at an address of its own, Headless if by those of its endpoints.
    #[serde(rename = "type")]
    pub type_: ServiceImportType,

    /// ClientIP if a client is to stay with one endpoint, or None. Ignored if the type is Headless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<String>,

    /// The settings of the session affinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity_config: Option<SessionAffinityConfig>,

    /// Local if only endpoints on the client's own node are used, Cluster if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internal_traffic_policy: Option<String>,

    /// Which endpoints are preferred, for instance PreferClose. Without it there is no preference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<String>,
}

super::absent::spec_may_be_absent!(ServiceImportSpec);

/// How the service is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ServiceImportType {
    /// At an address of its own.
    #[default]
    ClusterSetIP,
    /// By the addresses of its endpoints, through DNS.
    Headless,
}

/// One port of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// A DNS label, unique in the service. May be absent if there is only one port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// TCP, UDP or SCTP. TCP if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,

    /// The application's protocol, as a hint: a name that IANA registered, or one with a prefix, such as
    /// kubernetes.io/h2c.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<String>,

    /// The port at which the service is reached.
    pub port: i32,
}

/// The settings of the session affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionAffinityConfig {
    /// The settings of the affinity ClientIP.
    #[serde(default, rename = "clientIP", skip_serializing_if = "Option::is_none")]
    pub client_ip: Option<ClientIPConfig>,
}

/// The settings of the affinity `ClientIP`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientIPConfig {
    /// How long a client stays with its endpoint, in seconds: more than 0, at most 86400 (a day). 10800 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

/// Where the service comes from, and whether it can be used. Written by the controller only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceImportStatus {
    /// The clusters that export the service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["cluster"]))]
    pub clusters: Vec<SourceCluster>,

    /// Ready: the service can be used in this cluster; the message says what stands in the way if not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::schema::conditions")]
    pub conditions: Vec<Condition>,

    /// Whether EndpointSlices for the service are to be found in this cluster: Present or Absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_slice_objects: Option<EndpointSliceObjects>,
}

/// A cluster that exports the service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceCluster {
    /// The cluster's id, a DNS label.
    pub cluster: String,
}

/// Whether EndpointSlices for the service are to be found in the importing cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EndpointSliceObjects {
    /// Consumers may read endpoints from slices.
    Present,
    /// There are none; the service is reached at its address only.
    Absent,
}
