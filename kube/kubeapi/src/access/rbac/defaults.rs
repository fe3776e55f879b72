//! The cluster roles and bindings that a new store starts with: those of kube-apiserver 1.36 that are for people and
//! for clients of any kind; not those for its own components.

use super::{Authorizer, GROUP, Rule};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Facts {
    roles: Vec<RoleFact>,
    bindings: Vec<BindingFact>,
}

#[derive(Deserialize)]
struct RoleFact {
    name: String,
    /// The role that gathers this one.
    into: Option<String>,
    /// The label that this one gathers by.
    gathers: Option<String>,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct BindingFact {
    name: String,
    groups: Vec<String>,
}

/// Each with its resource. Roles that gather have their rules filled in.
pub fn objects() -> Vec<(&'static str, Value)> {
    let facts: Facts = serde_json::from_str(include_str!("defaults.json"))
        .unwrap_or(Facts { roles: Vec::new(), bindings: Vec::new() });
    let mut roles: Vec<Value> = facts.roles.iter().map(role).collect();
    let mut known = Authorizer::default();
    for role in &roles {
        known.put("clusterroles", role);
    }
    for role in &mut roles {
        if let Some(rules) = role["metadata"]["name"].as_str().and_then(|name| known.aggregated(name)) {
            role["rules"] = json!(rules);
        }
    }
    let bindings = facts.bindings.iter().map(|fact| ("clusterrolebindings", binding(fact)));
    roles.into_iter().map(|role| ("clusterroles", role)).chain(bindings).collect()
}

fn role(fact: &RoleFact) -> Value {
    let label = |name: &str| format!("{GROUP}/aggregate-to-{name}");
    let mut role = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRole",
        "metadata": metadata(&fact.name),
        "rules": fact.rules,
    });
    if let Some(into) = &fact.into {
        role["metadata"]["labels"][label(into)] = json!("true");
    }
    if let Some(by) = &fact.gathers {
        role["aggregationRule"] =
            json!({ "clusterRoleSelectors": [{ "matchLabels": { label(by): "true" } }] });
    }
    role
}

fn binding(fact: &BindingFact) -> Value {
    let subject = |name: &String| json!({ "apiGroup": GROUP, "kind": "Group", "name": name });
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": metadata(&fact.name),
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": fact.name },
        "subjects": fact.groups.iter().map(subject).collect::<Vec<_>>(),
    })
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::authn::MASTERS;

    #[test]
    fn the_facts_are_read_whole() {
        let objects = objects();
        let named = |wanted: &str| {
            let mut all = objects.iter().map(|(_, object)| object);
            all.find(|object| object["metadata"]["name"] == wanted && object["kind"] == "ClusterRole")
                .unwrap()
        };
        assert_eq!(named("cluster-admin")["rules"][0]["resources"], json!(["*"]));
        assert_eq!(named("cluster-admin")["rules"][1]["nonResourceURLs"], json!(["*"]));
        let count = |name: &str| named(name)["rules"].as_array().unwrap().len();
        assert!(count("view") > 10 && count("edit") > count("view") && count("admin") > count("edit"));
        let masters = objects.iter().find(|(resource, _)| *resource == "clusterrolebindings").unwrap();
        assert_eq!(masters.1["subjects"][0]["name"], MASTERS);
    }
}
