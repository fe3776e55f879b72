//! Types of conditions; the reasons that go with each are in [`super::reason`], under the same module names.
//!
//! Users and their tools read them in `status.conditions`; the MCS conformance suite waits for those of [`export`].

/// On a ServiceExport (KEP-1645).
pub mod export {
    /// The export names a Service that can be exported.
    pub const VALID: &str = "Valid";
    /// The service has been handed to the other clusters.
    pub const READY: &str = "Ready";
    /// Clusters disagree about the service's properties. On all its exports alike.
    pub const CONFLICT: &str = "Conflict";
}

/// On a ServiceImport (KEP-1645).
pub mod import {
    /// The service can be used in this cluster.
    pub const READY: &str = "Ready";
}

/// On a `Cluster` (Karmada).
pub mod cluster {
    /// The member is reachable and healthy.
    pub const READY: &str = "Ready";
    /// `status.apiEnablements` lists everything that the member serves.
    pub const COMPLETE_API_ENABLEMENTS: &str = "CompleteAPIEnablements";
    /// It is known where the member's endpoints may be, and nothing else passes. Ours.
    pub const NETWORKS_DECLARED: &str = "NetworksDeclared";
}

/// On a `MultiClusterService` (Karmada).
pub mod multi_cluster_service {
    /// The Service is in every provider and consumer.
    pub const SERVICE_APPLIED: &str = "ServiceApplied";
    /// The slices are in every consumer.
    pub const DISPATCHED: &str = "EndpointSliceDispatched";
    /// Clients reach it through its load balancer. Ours, and of type `LoadBalancer` only.
    pub const LOAD_BALANCER_READY: &str = "LoadBalancerReady";
}

/// On a `ResourceBinding` or a `ClusterResourceBinding` (Karmada).
pub mod binding {
    /// Clusters were chosen for the object.
    pub const SCHEDULED: &str = "Scheduled";
    /// Every chosen cluster holds it.
    pub const FULLY_APPLIED: &str = "FullyApplied";
}
