//! Who may do what, without a socket.

use super::api;
use atoll_kubeapi::authn::User;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, Error};
use serde_json::json;

fn code(error: &Error) -> u16 {
    match error {
        Error::Api(status) => status.code,
        other => panic!("no Status: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_may_what_roles_say_from_the_moment_that_they_are_bound() {
    let (api, admin) = api().await;
    let joe = Client::new(api.service(User::authenticated("joe", [])), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(joe.clone());
    let refused = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("User \"joe\" cannot list resource \"configmaps\""), "{refused}");

    let roles: Api<Role> = Api::default_namespaced(admin.clone());
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let role = serde_json::from_value(json!({"metadata": {"name": "reader"}, "rules": rules})).unwrap();
    roles.create(&PostParams::default(), &role).await.unwrap();
    let binding = json!({"metadata": {"name": "joe"}, "subjects": [{"kind": "User", "name": "joe", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}});
    let bindings: Api<RoleBinding> = Api::default_namespaced(admin);
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();

    assert!(maps.list(&ListParams::default()).await.is_ok());
    assert_eq!(code(&maps.get("a").await.unwrap_err()), 403);
    let elsewhere: Api<ConfigMap> = Api::namespaced(joe, "kube-system");
    assert_eq!(code(&elsewhere.list(&ListParams::default()).await.unwrap_err()), 403);
}
