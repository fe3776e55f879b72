//! An object of a member as a template of the hub, and the policy that leads it back to that member. Pure.

use atoll_api::names::{kind, label};
use atoll_engine::placement::object::ObjectKey;
use atoll_engine::placement::{prune, travels};
use serde_json::{Value, json};

use super::text;

/// Why an object can't become a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotPromotable {
    /// It is a copy of a template already.
    Copy,
    /// Something else makes it: this.
    Made { kind: String, name: String },
    /// It belongs to one cluster, by its kind, its name or its namespace.
    Stays,
    /// It is on its way out.
    Deleted,
}

impl NotPromotable {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Copy => "it already is a copy of a template of a hub".to_owned(),
            Self::Made { kind, name } => format!("it is managed by {kind}/{name}"),
            Self::Stays => {
                "objects of this kind, name or namespace belong to one cluster and are never propagated"
                    .to_owned()
            }
            Self::Deleted => "it is being deleted".to_owned(),
        }
    }

    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Copy => "see `atoll get resourcebindings -A` in the hub".to_owned(),
            Self::Made { kind, name } => format!("promote {kind}/{name} instead"),
            Self::Stays | Self::Deleted => "promote another object".to_owned(),
        }
    }
}

/// The template: without what a server wrote into it, and without what belongs to one cluster.
pub(crate) fn template(object: &Value) -> Result<Value, NotPromotable> {
    let meta = &object["metadata"];
    if !meta["deletionTimestamp"].is_null() {
        return Err(NotPromotable::Deleted);
    }
    if meta["labels"].get(label::PROPAGATED).is_some() {
        return Err(NotPromotable::Copy);
    }
    let owners = meta["ownerReferences"].as_array();
    if let Some(owner) = owners.into_iter().flatten().find(|owner| owner["controller"] == true) {
        let name = text(owner, "/name").to_owned();
        return Err(NotPromotable::Made { kind: text(owner, "/kind").to_lowercase(), name });
    }
    match ObjectKey::of(object) {
        Some(key) if travels(&key, object) => Ok(prune::prune(object)),
        Some(_) | None => Err(NotPromotable::Stays),
    }
}

/// A name for the policy of a template.
pub(crate) fn policy_name(template: &Value) -> String {
    let name = format!("{}-{}", text(template, "/metadata/name"), text(template, "/kind"));
    // Names of roles have colons, those of policies can't.
    name.to_lowercase().replace(':', ".")
}

/// The policy that leads the template to the member it came from, and takes over what is there.
pub(crate) fn policy(template: &Value, member: &str, name: &str) -> Value {
    let namespace = text(template, "/metadata/namespace");
    let mut selector = json!({
        "apiVersion": template["apiVersion"], "kind": template["kind"], "name": template["metadata"]["name"],
    });
    let (kind, metadata) = match namespace {
        "" => (kind::policy::CLUSTER_PROPAGATION_POLICY, json!({ "name": name })),
        _ => (kind::policy::PROPAGATION_POLICY, json!({ "name": name, "namespace": namespace })),
    };
    if !namespace.is_empty() {
        selector["namespace"] = namespace.into();
    }
    json!({
        "apiVersion": format!("{}/{}", kind::policy::GROUP, kind::policy::V1ALPHA1),
        "kind": kind,
        "metadata": metadata,
        "spec": {
            "conflictResolution": "Overwrite",
            "resourceSelectors": [selector],
            "placement": { "clusterAffinity": { "clusterNames": [member] } },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "generation": 1,
                "creationTimestamp": "2027-01-15T08:00:00Z", "labels": {"app": "web"},
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "shop"}},
            "spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "type": "NodePort", "selector": {"app": "web"},
                "ports": [{"port": 80, "nodePort": 30123}]},
            "status": {"loadBalancer": {}},
        })
    }

    #[test]
    fn a_template_is_what_its_owner_wrote_and_its_policy_leads_back() {
        let template = template(&service()).unwrap();
        let want = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"team": "shop"}},
            "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]},
        });
        assert_eq!(template, want);
        let policy = policy(&template, "paris", &policy_name(&template));
        assert_eq!(policy["kind"], "PropagationPolicy");
        assert_eq!(policy["metadata"], json!({"name": "web-service", "namespace": "shop"}));
        let want = json!({
            "conflictResolution": "Overwrite",
            "resourceSelectors": [{"apiVersion": "v1", "kind": "Service", "name": "web", "namespace": "shop"}],
            "placement": {"clusterAffinity": {"clusterNames": ["paris"]}},
        });
        assert_eq!(policy["spec"], want);
    }

    #[test]
    fn what_has_no_namespace_gets_a_policy_of_the_clusterset() {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "shop:Edit"}});
        let policy = policy(&template(&role).unwrap(), "paris", &policy_name(&role));
        assert_eq!(policy["kind"], "ClusterPropagationPolicy");
        assert_eq!(policy["metadata"], json!({"name": "shop.edit-clusterrole"}));
        assert_eq!(policy["spec"]["resourceSelectors"][0].get("namespace"), None);
    }

    #[test]
    fn what_others_make_is_not_promoted() {
        let with = |path: &str, value: Value| {
            let mut object = service();
            object["metadata"][path] = value;
            template(&object)
        };
        let owner = json!([{"kind": "ReplicaSet", "name": "web-1", "controller": true}]);
        assert_eq!(
            with("ownerReferences", owner),
            Err(NotPromotable::Made { kind: "replicaset".to_owned(), name: "web-1".to_owned() })
        );
        assert_eq!(with("labels", json!({label::PROPAGATED: "hub"})), Err(NotPromotable::Copy));
        assert_eq!(with("deletionTimestamp", json!("2027-01-15T08:00:00Z")), Err(NotPromotable::Deleted));
        assert_eq!(with("namespace", json!("kube-system")), Err(NotPromotable::Stays));
    }
}
