//! The rights of a balancer that runs elsewhere: it follows the `ConfigMaps` of the hub's namespace, and may do nothing else. No Secret is in
//! its reach, and nothing that it could write.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// The account and the role of balancers, if nothing else is chosen.
pub const ROLE: &str = "atoll-lb";
/// Whose fields these are.
const MANAGER: &str = "atoll-lb-credentials";

/// What a balancer proves itself with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The token.
    pub token: String,
    /// When it ends, as the API says; an API may shorten what was asked for.
    pub ends: Option<String>,
}

/// The account of a balancer and its rights, in the order in which they should be made.
pub fn objects(namespace: &str, account: &str) -> Vec<Value> {
    let metadata = |name: &str| json!({"name": name, "namespace": namespace});
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(account),
            // It proves itself by its own token; no pod needs it.
            "automountServiceAccountToken": false,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata(ROLE),
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata(account),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }),
    ]
}

/// Makes the account and its rights, or brings them up to date, and gets a token for it.
pub async fn grant(
    client: Client,
    namespace: &str,
    account: &str,
    lifetime: Duration,
) -> Result<Credentials, kube::Error> {
    for object in objects(namespace, account) {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
        let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object)).await?;
    }
    let seconds = i64::try_from(lifetime.as_secs()).unwrap_or(i64::MAX);
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let accounts = Api::<ServiceAccount>::namespaced(client, namespace);
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    let status = answer.status.unwrap_or_default();
    let token = status.token.unwrap_or_default();
    Ok(Credentials { token, ends: status.expiration_timestamp.map(|time| time.0.to_string()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balancer_may_follow_configmaps_of_the_hubs_namespace_and_nothing_else() {
        let all = objects("atoll-system", "edge-1");
        let kinds: Vec<_> = all.iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["ServiceAccount", "Role", "RoleBinding"], "no rights outside of the namespace");
        assert!(all.iter().all(|one| one["metadata"]["namespace"] == "atoll-system"));
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]);
        assert_eq!(all[1]["rules"], rules);
        assert_eq!(
            (&all[2]["subjects"][0]["name"], &all[2]["roleRef"]["name"]),
            (&json!("edge-1"), &json!(ROLE))
        );
    }
}
