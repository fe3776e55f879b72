//! MultiClusterService: a Service of some clusters that others use under its own name. Karmada's kind, whole, with the deprecated
//! fields that old manifests have; `status.clusters` and the three counts are ours.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which clusters provide the Service of the same name, and which use it.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "networking.karmada.io",
    version = "v1alpha1",
    kind = "MultiClusterService",
    doc = "MultiClusterService makes the Service of the same name reach over clusters: consumers call it by its native name \
        and are answered by the providers.",
    namespaced,
    shortname = "mcs",
    category = "karmada-io",
    status = "MultiClusterServiceStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Providers", "type": "integer", "jsonPath": ".status.providers",
        "description": "How many clusters provide the service"}"#,
    printcolumn = r#"{"name": "Consumers", "type": "integer", "jsonPath": ".status.consumers",
        "description": "How many clusters use it"}"#,
    printcolumn = r#"{"name": "Endpoints", "type": "integer", "jsonPath": ".status.endpoints",
        "description": "How many endpoints the providers have together"}"#,
    printcolumn = r#"{"name": "Applied", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"ServiceApplied\")].status",
        "description": "Whether the Service is in every provider and consumer"}"#,
    printcolumn = r#"{"name": "Dispatched", "type": "string",
        "jsonPath": ".status.conditions[?(@.type==\"EndpointSliceDispatched\")].status",
        "description": "Whether every consumer has the providers' endpoints"}"#,
    printcolumn = r#"{"name": "Address", "type": "string", "jsonPath": ".status.loadBalancer.ingress[0].ip",
        "description": "The first address of its load balancer"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Types", "type": "string", "priority": 1, "jsonPath": ".spec.types"}"#,
    printcolumn = r#"{"name": "Stale", "type": "string", "priority": 1,
        "jsonPath": ".status.clusters[?(@.staleSince)].name",
        "description": "The first provider whose endpoints may be out of date"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterServiceSpec {
    /// How the service is exposed: CrossCluster or LoadBalancer. Can't be changed.
    #[schemars(length(max = 8), inner(length(max = 64)))]
    pub types: Vec<String>,

    /// The ports that are exposed; all of them if there are none here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 250))]
    pub ports: Vec<ExposurePort>,

    /// The clusters whose endpoints are used; all clusters if there are none here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000))]
    pub provider_clusters: Vec<ClusterSelector>,

    /// The clusters that can use the service; all clusters if there are none here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5000))]
    pub consumer_clusters: Vec<ClusterSelector>,

    /// Deprecated: use providerClusters and consumerClusters. Honoured for whichever of them is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ExposureRange>,

    /// Deprecated: use providerClusters. Honoured if that is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_provision_clusters: Vec<String>,

    /// Deprecated: use consumerClusters. Honoured if that is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_consumption_clusters: Vec<String>,
}

/// A port that is exposed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExposurePort {
    /// The name that the port has in the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// The Service's port, as clients see it.
    pub port: i32,
}

/// A cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterSelector {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
}

/// Deprecated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExposureRange {
    /// The clusters that provide the service and use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_names: Vec<String>,
}

/// What became of it. Written by the hub only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MultiClusterServiceStatus {
    /// ServiceApplied: every provider and consumer has the Service. EndpointSliceDispatched: every consumer has the providers'
    /// endpoints. The message names the clusters that have not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The load balancer, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancerStatus>,

    /// How many clusters provide the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub providers: Option<i32>,

    /// How many clusters use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumers: Option<i32>,

    /// How many endpoints the providers have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<i32>,

    /// Each provider and consumer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub clusters: Vec<ClusterState>,
}

/// One provider or consumer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterState {
    /// Its name.
    pub name: String,
    /// Provider, Consumer or Both.
    pub role: String,
    /// How many endpoints it gives to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<i32>,
    /// How many slices of others it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<i32>,
    /// Since when its endpoints may be out of date, because it can't be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::time")]
    pub stale_since: Option<Time>,
    /// What is wrong there, or worth knowing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The load balancer of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadBalancerStatus {
    /// Where traffic for the service is to be sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ingress: Vec<LoadBalancerIngress>,
}

/// One way into a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerIngress {
    /// Its name, where it is known by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Its address, where it is known by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// VIP if packets arrive with the load balancer's address, Proxy if with a node's or a pod's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_mode: Option<String>,
    /// Each port, and what is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ports: Vec<PortStatus>,
}

/// A port of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortStatus {
    /// What is wrong with it: one CamelCase word, or foo.example.com/CamelCase.
    #[schemars(
        length(max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
        )
    )]
    pub error: String,
    /// Its number.
    pub port: i32,
    /// TCP, UDP or SCTP.
    pub protocol: String,
}
