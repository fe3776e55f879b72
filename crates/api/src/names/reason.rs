//! Reasons of conditions; the types they go with are in [`super::condition`], under the same module names.

/// On a ServiceExport (KEP-1645). Several reasons of `Conflict` are joined by commas.
pub mod export {
    /// `Valid` is True.
    pub const VALID: &str = "Valid";
    /// `Valid` is False: there is no Service of that name.
    pub const NO_SERVICE: &str = "NoService";
    /// `Valid` is False: the Service is of a type that can't be exported, such as `ExternalName`.
    pub const INVALID_SERVICE_TYPE: &str = "InvalidServiceType";

    /// `Valid` is False: the hub's operator does not let it cross. Ours.
    pub const NOT_ALLOWED: &str = "NotAllowed";
    /// `Valid` is False: it is more than a cluster may export; the message names the limit. Ours.
    pub const LIMIT_EXCEEDED: &str = "LimitExceeded";

    /// `Ready` is True where the hub writes to the members (push).
    pub const EXPORTED: &str = "Exported";
    /// `Ready` is True where members fetch from the hub (pull).
    pub const READY: &str = "Ready";
    /// `Ready` is False or Unknown: not handed over yet.
    pub const PENDING: &str = "Pending";
    /// `Ready` is False: handing over failed; the message says why.
    pub const FAILED: &str = "Failed";

    /// `Conflict` is False.
    pub const NO_CONFLICTS: &str = "NoConflicts";
    /// `Conflict` is True: the ports differ.
    pub const PORT_CONFLICT: &str = "PortConflict";
    /// `Conflict` is True: headless here, with a cluster IP there.
    pub const TYPE_CONFLICT: &str = "TypeConflict";
    /// `Conflict` is True: the session affinity differs.
    pub const SESSION_AFFINITY_CONFLICT: &str = "SessionAffinityConflict";
    /// `Conflict` is True: the settings of the session affinity differ.
    pub const SESSION_AFFINITY_CONFIG_CONFLICT: &str = "SessionAffinityConfigConflict";
    /// `Conflict` is True: the exported labels differ.
    pub const LABELS_CONFLICT: &str = "LabelsConflict";
    /// `Conflict` is True: the exported annotations differ.
    pub const ANNOTATIONS_CONFLICT: &str = "AnnotationsConflict";
    /// `Conflict` is True: the internal traffic policy differs.
    pub const INTERNAL_TRAFFIC_POLICY_CONFLICT: &str = "InternalTrafficPolicyConflict";
    /// `Conflict` is True: the traffic distribution differs.
    pub const TRAFFIC_DISTRIBUTION_CONFLICT: &str = "TrafficDistributionConflict";
    /// `Conflict` is True: the IP families differ so that some backends may be out of reach.
    pub const IP_FAMILY_CONFLICT: &str = "IPFamilyConflict";
}

/// On a ServiceImport (KEP-1645).
pub mod import {
    /// `Ready` is True.
    pub const READY: &str = "Ready";
    /// `Ready` is True, and some sources are not reached: their endpoints may be out of date. The message names them. Ours.
    pub const SOURCES_STALE: &str = "SourcesStale";
    /// `Ready` is False: every source is lost, and its endpoints were withdrawn. Ours.
    pub const SOURCES_LOST: &str = "SourcesLost";
    /// `Ready` is False or Unknown: on its way, not usable yet.
    pub const PENDING: &str = "Pending";
    /// `Ready` is False: the derived Service can't be called anything, since Services of others have its names. Ours.
    pub const NAMES_TAKEN: &str = "DerivedServiceNamesTaken";
    /// `Ready` is False: the API server does not accept the derived Service. Ours.
    pub const REFUSED: &str = "DerivedServiceRefused";
    /// `Ready` is False: the service has none of the ports that the hub's ServiceImport names. Ours.
    pub const NO_SUCH_PORT: &str = "NoSuchPort";
    /// `Ready` is False: this cluster has none of the service's IP families.
    pub const IP_FAMILY_NOT_SUPPORTED: &str = "IPFamilyNotSupported";
}

/// On a `Cluster` (Karmada): reasons of `Ready`.
pub mod cluster {
    /// True: its API answers and says that it is healthy.
    pub const READY: &str = "ClusterReady";
    /// False: its API answers and says that it is not healthy.
    pub const NOT_READY: &str = "ClusterNotReady";
    /// False: its API does not answer.
    pub const NOT_REACHABLE: &str = "ClusterNotReachable";
    /// False: it answers, but its version or nodes could not be read.
    pub const STATUS_COLLECTION_FAILED: &str = "StatusCollectionFailed";
    /// Unknown: nothing was heard of it for too long.
    pub const STATUS_UNKNOWN: &str = "ClusterStatusUnknown";
    /// False: the Secret that it names was made for another `Cluster`, or for none. Nothing is sent. Ours.
    pub const CREDENTIALS_NOT_FOR_THIS_CLUSTER: &str = "CredentialsNotForThisCluster";
    /// False: its endpoint, proxy or identity differs from what its Secret says. Nothing is sent. Ours.
    pub const ENDPOINT_NOT_ALLOWED: &str = "EndpointNotAllowed";
    /// False: the certificate of its API could not be checked, and the hub's operator does not allow that. Nothing is sent. Ours.
    pub const INSECURE_NOT_ALLOWED: &str = "InsecureNotAllowed";
    /// False: it answers as another cluster than the one that joined. Ours.
    pub const IDENTITY_MISMATCH: &str = "IdentityMismatch";
    /// False: another `Cluster` is the same cluster. Ours.
    pub const ALREADY_A_MEMBER: &str = "AlreadyAMember";
    /// `NetworksDeclared` is True: the operator has declared the pod networks. Ours.
    pub const NETWORKS_DECLARED: &str = "Declared";
    /// `NetworksDeclared` is True: they were read off the member at join. Ours.
    pub const NETWORKS_READ_AT_JOIN: &str = "ReadAtJoin";
    /// `NetworksDeclared` is True: they were read off the member when it was first heard. Ours.
    pub const NETWORKS_READ_AT_FIRST_CONTACT: &str = "ReadAtFirstContact";
    /// `NetworksDeclared` is False: they are not known, and every address that is no other's passes. Ours.
    pub const NETWORKS_NOT_DECLARED: &str = "NotDeclared";
}

/// On a `MultiClusterService` (Karmada).
pub mod multi_cluster_service {
    /// `ServiceApplied` is True.
    pub const SERVICE_APPLIED_SUCCEED: &str = "ServiceAppliedSucceed";
    /// `ServiceApplied` is False; the message names the members that lack it.
    pub const SERVICE_APPLIED_FAILED: &str = "ServiceAppliedFailed";
    /// `EndpointSliceDispatched` is True.
    pub const DISPATCHED_SUCCEED: &str = "EndpointSliceDispatchedSucceed";
    /// `EndpointSliceDispatched` is False; the message names the members that lack them.
    pub const DISPATCHED_FAILED: &str = "EndpointSliceDispatchedFailed";
    /// `LoadBalancerReady` is True.
    pub const BALANCED: &str = "Balanced";
    /// `LoadBalancerReady` is False: the provider could not be asked what there is. As the next three, the message says when it is tried again.
    pub const GET_FAILED: &str = "GetFailed";
    /// `LoadBalancerReady` is False: the provider could not make the balancer, or change it.
    pub const ENSURE_FAILED: &str = "EnsureFailed";
    /// `LoadBalancerReady` is False: the provider could not delete the balancer.
    pub const DELETE_FAILED: &str = "DeleteFailed";
    /// `LoadBalancerReady` is False: the object itself could not be written.
    pub const WRITE_FAILED: &str = "WriteFailed";
    /// `LoadBalancerReady` is False: the balancer has no address yet.
    pub const NO_ADDRESS_YET: &str = "NoAddressYet";
    /// `LoadBalancerReady` is False: it has an address, and no provider has an endpoint that can be used.
    pub const NOBODY_ANSWERS: &str = "NobodyAnswers";
}

/// On a `ResourceBinding` or a `ClusterResourceBinding` (Karmada).
pub mod binding {
    /// `Scheduled` is True.
    pub const SCHEDULED: &str = "Success";
    /// `Scheduled` is False: no cluster fits.
    pub const NO_CLUSTER_FIT: &str = "NoClusterFit";
    /// `Scheduled` is False: clusters fit, but not as the policy wants them.
    pub const UNSCHEDULABLE: &str = "Unschedulable";
    /// `FullyApplied` is True.
    pub const FULLY_APPLIED: &str = "FullyAppliedSuccess";
    /// `FullyApplied` is False; the message names the members that lack it.
    pub const NOT_FULLY_APPLIED: &str = "FullyAppliedFailed";
}
