//! Every name that Atoll shares with other programs or with users: written in one place, each with who reads it.
//!
//! A name that other programs read is theirs: it changes only when they change it. The names under
//! `atoll.dev` are ours, but a rename strands what is already written in members.

pub mod admission;
pub mod annotation;
pub mod code;
pub mod condition;
pub mod event;
pub mod finalizer;
pub mod kind;
pub mod label;
pub mod managed_by;
pub mod namespace;
pub mod prefix;
pub mod property;
pub mod reason;
pub mod secret;
pub mod service;

/// The domain of the names that are ours. Kubernetes reserves its own in the same way: see [`is_reserved`].
pub const DOMAIN: &str = "atoll.dev";

/// Whether a label's or annotation's key has a prefix of Kubernetes or of us. Users' own keys have none.
pub fn is_reserved(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let within =
        |domain: &str| prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    within("kubernetes.io") || within("k8s.io") || within(DOMAIN)
}

/// The keys of labels and annotations by which we know what is ours. Users do not set them: a template that has one is copied
/// without it, and no override writes one.
const MARKS: &[&str] = &[
    label::HUB,
    label::PROPAGATED,
    label::MEMORY,
    label::CLUSTER,
    label::BALANCER,
    label::EXPLAIN,
    annotation::ADOPTED,
    annotation::AUTHOR,
    annotation::CLEANED,
    annotation::HOLDERS,
    annotation::INCARNATION,
    annotation::SEAL,
    annotation::balancing::OWNER,
];

/// Whether a label or annotation says what is ours.
pub fn is_mark(key: &str) -> bool {
    MARKS.contains(&key)
}

/// The owner of our fields in server-side apply, in the hub and in members. The API server reads it; so does whoever
/// asks `kubectl get --show-managed-fields`.
pub const FIELD_MANAGER: &str = "atoll";

/// The owner of fields that a person applies with `atoll apply`. Not the same as ours: what a person leaves out of a file
/// must not take away what the hub wrote.
pub const CLI_FIELD_MANAGER: &str = "atoll-apply";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_kubernetes_and_of_us_are_reserved() {
        for (key, want) in [
            ("kubernetes.io/service-name", true),
            ("endpointslice.kubernetes.io/managed-by", true),
            ("multicluster.x-k8s.io/release-version", false),
            ("about.k8s.io/x", true),
            (annotation::LIVENESS, true),
            ("bench.atoll.dev/x", true),
            ("notatoll.dev/x", false),
            ("example.com/k8s.io", false),
            ("app", false),
        ] {
            assert_eq!(is_reserved(key), want, "{key}");
        }
    }

    #[test]
    fn only_control_planes_have_namespaces_of_their_own() {
        for (name, want) in [
            ("atoll-system", true),
            ("karmada-cluster", true),
            ("kube-system", true),
            ("karmada-es-paris", true),
            ("default", false),
            ("karmada", false),
        ] {
            assert_eq!(namespace::is_control_plane(name), want, "{name}");
        }
        assert!(service::is_kubernetes_api("default", "kubernetes"));
        assert!(!service::is_kubernetes_api("shop", "kubernetes"));
    }
}
