//! The policy that a `MultiClusterService` implies: its Service goes to every provider and consumer, before any other policy, and
//! takes over what is there. When it goes, the Service stays where it is, as with every policy.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_engine::intent::{Clusters, CrossCluster};
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::placement::Policy;
use atoll_engine::placement::access::Stamp;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_engine::placement::policy::PolicyId;
use serde_json::json;

/// The template that it speaks of.
pub(super) fn template(key: &ServiceKey) -> ObjectKey {
    ObjectKey {
        kind: Kind::new("v1", "Service"),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}

/// Its name, which no user's policy can have.
pub(super) fn id(key: &ServiceKey) -> PolicyId {
    PolicyId { namespace: Some(key.namespace.to_string()), name: format!("multiclusterservice:{}", key.name) }
}

/// The policy; none if it goes nowhere.
pub(super) fn policy(key: &ServiceKey, intent: &CrossCluster, stamp: Stamp) -> Option<Policy> {
    if key.is_kubernetes_api() {
        return None; // each cluster's own
    }
    if intent.balanced {
        return None; // where its pods and its Service are is for the user's own policies
    }
    let mut placement = json!({ "clusterTolerations": [{ "operator": "Exists" }] });
    if let (Clusters::Named(providers), Clusters::Named(consumers)) = (&intent.providers, &intent.consumers) {
        let names: BTreeSet<&str> = providers.union(consumers).map(ClusterId::as_str).collect();
        if names.is_empty() {
            return None; // no name at all would mean every cluster
        }
        placement["clusterAffinity"] = json!({ "clusterNames": names });
    }
    let spec = json!({
        "resourceSelectors": [{
            "apiVersion": "v1", "kind": "Service",
            "namespace": key.namespace.as_str(), "name": key.name.as_str(),
        }],
        "placement": placement,
        "priority": i32::MAX,
        "preemption": "Always",
        "conflictResolution": "Overwrite",
    });
    let spec = serde_json::from_value(spec).ok()?;
    Some(Policy { spec, written: Arc::new(placement), stamp })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_to_providers_and_consumers_and_to_all_where_all_are_meant() {
        let key = ServiceKey::parse("shop", "web").unwrap();
        let some =
            |ids: &[&str]| Clusters::Named(ids.iter().map(|id| ClusterId::parse(*id).unwrap()).collect());
        let of = |providers, consumers| {
            policy(&key, &CrossCluster { providers, consumers, ..CrossCluster::default() }, Stamp::Unchecked)
                .map(|policy| policy.written["clusterAffinity"]["clusterNames"].clone())
        };
        assert_eq!(of(some(&["a"]), some(&["b", "a"])), Some(json!(["a", "b"])));
        assert_eq!(of(some(&["a"]), Clusters::All), Some(json!(null)));
        assert_eq!(of(some(&[]), some(&[])), None);
        let api = ServiceKey::parse("default", "kubernetes").unwrap();
        assert_eq!(policy(&api, &CrossCluster::default(), Stamp::Unchecked), None);
    }
}
