//! Label keys, and the values that are fixed.

/// On EndpointSlices: the multi-cluster service they belong to. DNS servers and gateways select by it.
pub const MCS_SERVICE_NAME: &str = "multicluster.kubernetes.io/service-name";
/// On EndpointSlices: the cluster id of their endpoints. DNS servers make names of it; we never take a slice that
/// has it for a fact.
pub const SOURCE_CLUSTER: &str = "multicluster.kubernetes.io/source-cluster";
/// On EndpointSlices: who writes them; values in [`super::managed_by`]. kube-controller-manager leaves the slices of
/// others alone.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// On EndpointSlices: the Service they back. kube-proxy reads it; in an imported slice it names the derived Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// On slices of headless Services. kube-proxy ignores slices that have it, whatever its value.
pub const HEADLESS: &str = "service.kubernetes.io/headless";

/// On every object that we write in a member: the hub's uid. Our own code reads it before it changes or deletes
/// anything; without it, or with another uid, the object is not ours.
pub const HUB: &str = "atoll.dev/hub";
/// On what brings questions from a Kubernetes API server to the hub (`APIService`, `Service`, `EndpointSlice`, `ClusterRoles`), all in the
/// hub's API: the hub's namespace. Our own code reads it before it changes or deletes any of these.
pub const EXPLAIN: &str = "atoll.dev/explain";
/// On a `ClusterRole`: its rules are also those of the role `view`. Kubernetes reads it.
pub const AGGREGATE_TO_VIEW: &str = "rbac.authorization.k8s.io/aggregate-to-view";
/// On every copy of a hub's template in a member: the hub's uid. Our own code reads it before it changes or deletes a copy.
pub const PROPAGATED: &str = "atoll.dev/propagated-by";

/// On a `ConfigMap` in the hub's namespace: what the built-in balancer should do for one service. Balancers watch them.
pub const BALANCER: &str = "atoll.dev/balancer";
/// The value of [`BALANCER`].
pub const BALANCER_BUILTIN: &str = "builtin";

/// On the CRDs of the MCS API: the release they came with. Every implementation reads it before it replaces them.
pub const MCS_RELEASE: &str = "multicluster.x-k8s.io/release-version";
/// On the CRDs of the MCS API: which schema within a release.
pub const MCS_REVISION: &str = "multicluster.x-k8s.io/crd-schema-revision";
/// On the other CRDs that we install: the same as [`MCS_RELEASE`]. Read by the next Atoll.
pub const RELEASE: &str = "atoll.dev/release-version";
/// On the other CRDs that we install: the same as [`MCS_REVISION`].
pub const REVISION: &str = "atoll.dev/crd-schema-revision";

/// On a `MultiClusterService`: a UUID for life. Karmada's tools read it; our controller sets it where it is absent.
pub const MCS_PERMANENT_ID: &str = "multiclusterservice.karmada.io/permanent-id";
/// On a Service in the hub: which kind claims it. Read by Karmada's propagation, and by ours.
pub const CLAIMED_BY: &str = "resourcetemplate.karmada.io/claimed-by";
/// The value of [`CLAIMED_BY`] for a `MultiClusterService`.
pub const CLAIMED_BY_MCS: &str = "MultiClusterService";
/// On a Namespace in the hub: with the value `true` it is not made in members. Users set it.
pub const SKIP_NAMESPACE: &str = "namespace.karmada.io/skip-auto-propagation";
/// On a template, or on a copy: with the value `true` a copy keeps the replicas that it has in its member. Karmada's users set it.
pub const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

/// On a `ConfigMap` in the hub's namespace: what the hub remembers of one service. Our own code reads it.
pub const MEMORY: &str = "atoll.dev/memory";
/// On what `join` makes in the hub for a member, its Secret: the member's name. `unjoin` reads it.
pub const CLUSTER: &str = "atoll.dev/cluster";

/// On the Job that `atoll check` runs for a moment in a member, and on its pod: the name of that Job. The command itself selects by it.
pub const CHECK: &str = "atoll.dev/check";
