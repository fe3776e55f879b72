//! The Service that is each cluster's own.

/// Its namespace.
pub const KUBERNETES_NAMESPACE: &str = "default";
/// Its name.
pub const KUBERNETES: &str = "kubernetes";

/// Whether it is the Service of the cluster's own API. It is in every cluster and another one in each, so it never leaves one.
pub fn is_kubernetes_api(namespace: &str, name: &str) -> bool {
    namespace == KUBERNETES_NAMESPACE && name == KUBERNETES
}
