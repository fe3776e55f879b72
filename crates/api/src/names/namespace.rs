//! Namespaces of control planes. What is in them is never a template.

/// Where the hub keeps what is its own; the default of `--namespace`.
pub const HUB: &str = "atoll-system";
/// Of Karmada's control plane: its components, and its `Cluster` objects' Secrets.
pub const KARMADA: [&str; 2] = ["karmada-system", "karmada-cluster"];
/// How the namespaces of Kubernetes' control plane begin.
pub const KUBERNETES_PREFIX: &str = "kube-";
/// How the namespaces begin in which Karmada keeps the work of one member each.
pub const KARMADA_WORK_PREFIX: &str = "karmada-es-";

/// Whether a namespace is a control plane's.
pub fn is_control_plane(name: &str) -> bool {
    name == HUB
        || KARMADA.contains(&name)
        || name.starts_with(KUBERNETES_PREFIX)
        || name.starts_with(KARMADA_WORK_PREFIX)
}
