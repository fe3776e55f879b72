//! The roles that allow questions. Pure.

use atoll_api::names::kind::explain;
use atoll_api::names::label;
use serde_json::{Value, json};

/// The `ClusterRoles` of the hub in this namespace. Who may view a namespace may ask about its services; what shows all namespaces
/// has to be granted.
pub(super) fn wanted(namespace: &str) -> [Value; 2] {
    let role = |name: &str, labels: Value, rules: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": labels}, "rules": rules})
    };
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [explain::GROUP], "resources": resources, "verbs": verbs});
    [
        role(
            explain::ATOLL_EXPLAIN,
            json!({label::EXPLAIN: namespace, label::AGGREGATE_TO_VIEW: "true"}),
            json!([rule(&[explain::SERVICES], &["get", "list"])]),
        ),
        role(
            explain::ATOLL_EXPLAIN_CLUSTERSET,
            json!({label::EXPLAIN: namespace}),
            json!([
                rule(&[explain::SERVICES, explain::ADDRESSES, explain::CLUSTERSETS], &["get", "list"]),
                rule(&[explain::PLANS], &["create"]),
            ]),
        ),
    ]
}
