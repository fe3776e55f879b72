//! Finalizers, on objects of the hub only. In a member we set none: a dead hub must not block a namespace's deletion.

/// On a `Cluster`: the member is cleaned before it leaves. Karmada's name, so that either can finish the other's work.
pub const CLUSTER: &str = "karmada.io/cluster-controller";
/// On a `MultiClusterService`: its slices are withdrawn first.
pub const MULTI_CLUSTER_SERVICE: &str = "karmada.io/multiclusterservice-controller";
/// On a `MultiClusterService` of type `LoadBalancer`: the provider takes its load balancer down first.
pub const LOAD_BALANCER: &str = "karmada.io/multi-cluster-service-controller";
/// On a `ResourceBinding`: members let go of their copies first. Karmada's name.
pub const BINDING: &str = "karmada.io/binding-controller";
/// The same on a `ClusterResourceBinding`.
pub const CLUSTER_BINDING: &str = "karmada.io/cluster-resource-binding-controller";
