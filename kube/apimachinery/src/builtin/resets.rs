//! Which fields a way of writing never changes.

/// The fields that a write to a kind's `subresource` (none: to the object itself) does not touch; for
/// [`crate::apply::Manager::resets`].
#[must_use]
pub fn resets(group: &str, kind: &str, subresource: Option<&str>) -> Vec<String> {
    if !has_status(group, kind) {
        return Vec::new();
    }
    let more: &[&str] = match (group, kind) {
        ("apps", "Deployment") => &["metadata.labels"],
        ("", "Pod") => &["metadata.deletionTimestamp", "metadata.ownerReferences"],
        ("networking.k8s.io", "ServiceCIDR")
        | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
        | ("apiregistration.k8s.io", "APIService") => &["metadata"],
        _ => &[],
    };
    match subresource {
        None | Some("finalize") => vec!["status".to_owned()],
        Some("status") => ["spec"].iter().chain(more).map(|path| (*path).to_owned()).collect(),
        Some(_) => Vec::new(),
    }
}

/// The fields that a write to a custom resource does not touch, when it has the subresource `status`.
#[must_use]
pub fn custom_resets(has_status: bool, subresource: Option<&str>) -> Vec<String> {
    match subresource {
        None if has_status => vec!["status".to_owned()],
        Some("status") => vec!["metadata".to_owned(), "spec".to_owned()],
        _ => Vec::new(),
    }
}

fn has_status(group: &str, kind: &str) -> bool {
    match group {
        "" => matches!(
            kind,
            "Namespace"
                | "Node"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "Pod"
                | "ReplicationController"
                | "ResourceQuota"
                | "Service"
        ),
        "admissionregistration.k8s.io" => kind == "ValidatingAdmissionPolicy",
        "apiextensions.k8s.io" => kind == "CustomResourceDefinition",
        "apiregistration.k8s.io" => kind == "APIService",
        "apps" => kind != "ControllerRevision",
        "autoscaling" => kind == "HorizontalPodAutoscaler",
        "batch" => true,
        "networking.k8s.io" => matches!(kind, "Ingress" | "ServiceCIDR"),
        "policy" => kind == "PodDisruptionBudget",
        _ => false,
    }
}
