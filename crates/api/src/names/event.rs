//! Reasons of Events. Users see them in `kubectl describe`; Karmada's end-to-end tests wait for them.

/// On a derived Service, an imported EndpointSlice or a ServiceImport: others changed or deleted it, and it was written again. Ours.
pub const DRIFT_REPAIRED: &str = "DriftRepaired";

/// On a ServiceExport. Ours.
pub mod export {
    /// The service is exported; the message names who imports it.
    pub const EXPORTED: &str = "Exported";
    /// The service is exported, and some of its endpoints are not.
    pub const ENDPOINTS_REFUSED: &str = "EndpointsRefused";
    /// The service is not exported; the message says why.
    pub const NOT_EXPORTED: &str = "NotExported";
    /// Clusters disagree about the service.
    pub const CONFLICT: &str = "ExportConflict";
    /// They agree again.
    pub const CONFLICT_RESOLVED: &str = "ExportConflictResolved";
    /// On the Service: its ServiceExport was deleted while other clusters imported it.
    pub const UNEXPORTED: &str = "Unexported";
}

/// On a `MultiClusterService`.
pub mod multi_cluster_service {
    /// The Service is in every provider and consumer.
    pub const SYNC_SERVICE_SUCCEED: &str = "SyncServiceSucceed";
    /// The Service could not be written somewhere.
    pub const SYNC_SERVICE_FAILED: &str = "SyncServiceFailed";
    /// The slices are in every consumer.
    pub const DISPATCH_SUCCEED: &str = "DispatchEndpointSliceSucceed";
    /// The slices could not be written somewhere.
    pub const DISPATCH_FAILED: &str = "DispatchEndpointSliceFailed";
    /// A provider or consumer is no member.
    pub const CLUSTER_NOT_FOUND: &str = "ClusterNotFound";
    /// A member's API lacks a kind that the service needs.
    pub const API_INCOMPATIBLE: &str = "APIIncompatible";
    /// It uses fields that have newer names, which work as before. Ours.
    pub const DEPRECATED_FIELD: &str = "DeprecatedField";
    /// What the load balancer's provider last said.
    pub const LOAD_BALANCER: &str = "MCSLoadBalance";
}

/// On a ServiceImport.
pub mod import {
    /// The import is ready again, or from other clusters. Ours.
    pub const CHANGED: &str = "ImportChanged";
    /// The import is not ready; the message says why. Ours.
    pub const NOT_READY: &str = "ImportNotReady";
    /// The endpoints of some sources may be out of date. Ours.
    pub const SOURCES_STALE: &str = "SourcesStale";
    /// The import was removed; the message says why. Ours.
    pub const REMOVED: &str = "ImportRemoved";
    /// The derived Service is as it should be.
    pub const SYNC_DERIVED_SERVICE_SUCCEED: &str = "SyncDerivedServiceSucceed";
    /// The derived Service could not be written.
    pub const SYNC_DERIVED_SERVICE_FAILED: &str = "SyncDerivedServiceFailed";
}

/// On a policy, or on a template that one has.
pub mod policy {
    /// On a template that no policy selects any more, or never did while policies select its kind. Ours.
    pub const NOT_SELECTED: &str = "NoPolicySelects";
    /// On a policy that can't be read, or that selects nothing.
    pub const APPLY_FAILED: &str = "ApplyPolicyFailed";
    /// On an override policy that can't be read.
    pub const APPLY_OVERRIDE_FAILED: &str = "ApplyOverridePolicyFailed";
    /// On a template for which no cluster was chosen.
    pub const SCHEDULE_FAILED: &str = "ScheduleBindingFailed";
    /// On a template whose policy names a cluster that is no member.
    pub const CLUSTER_NOT_FOUND: &str = "ClusterNotFound";
}

/// On a binding in the hub. Ours.
pub mod binding {
    /// It was not written by the hub, or was changed by others: nothing is copied or deleted because of it.
    pub const NOT_BELIEVED: &str = "BindingNotBelieved";
}

/// On a `Cluster`.
pub mod cluster {
    /// The member has joined, and its API answers. Ours.
    pub const JOINED: &str = "ClusterJoined";
    /// The member's API does not answer, or nothing is heard of it. Ours.
    pub const LOST: &str = "ClusterLost";
    /// It is there again. Ours.
    pub const BACK: &str = "ClusterBack";
    /// It answers, and can't be used; the message says why. Ours.
    pub const NOT_READY: &str = "ClusterNotReady";
    /// What the member says of its networks was pinned when it was first heard. Ours.
    pub const NETWORKS_PINNED: &str = "NetworksPinned";
    /// What the annotations of the `Cluster` say of its networks was copied to its Secret; only what stands there counts from now on. Ours.
    pub const NETWORKS_BOUND: &str = "NetworksBound";
}

/// On a Namespace of the hub.
pub mod namespace {
    /// Its [`super::super::annotation::IMPORT`] has a value that we do not know. Ours.
    pub const UNKNOWN_IMPORT_MODE: &str = "UnknownImportMode";
}
