//! Names of the `ClusterProperty` objects that we write in a member. Every multi-cluster tool there may read them.

/// The cluster's id, unique in the clusterset; does not change while the cluster is a member.
pub const CLUSTER_ID: &str = "cluster.clusterset.k8s.io";
/// The clusterset that the cluster is a member of; absent while it is in none.
pub const CLUSTERSET: &str = "clusterset.k8s.io";
