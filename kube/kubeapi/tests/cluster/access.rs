//! Who may do what: RBAC, and the reviews that tell.

use serde_json::{Value, json};

use crate::fixtures::{account, core, map, maps};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    an_account_may_nothing_at_first,
    a_role_allows_its_verbs_in_its_namespace,
    a_cluster_role_may_be_bound_in_one_namespace,
    a_cluster_binding_holds_everywhere,
    a_role_can_be_for_named_objects,
    a_role_can_be_for_subresources,
    stars_mean_all,
    groups_of_accounts_are_bound,
    a_binding_removed_allows_nothing,
    paths_that_are_no_resources_are_allowed,
    cluster_roles_aggregate,
    the_default_roles_are_there,
    the_view_role_shows_no_secrets,
    an_edit_may_not_change_roles,
    nobody_may_grant_what_they_may_not_do,
    a_binding_keeps_its_role,
    a_role_needs_verbs,
    a_binding_needs_an_existing_form,
    the_one_who_asks_is_told_their_name,
    the_one_who_asks_is_told_what_they_may,
    rules_of_a_user_are_listed,
    others_are_reviewed,
    a_local_review_needs_its_namespace,
    a_review_needs_one_question,
    anonymous_may_look_at_versions_only,
    an_unknown_token_is_unauthorized,
    a_patch_needs_its_own_verb,
    deleting_a_collection_needs_its_own_verb,
    what_may_be_listed_may_be_watched_only_if_said,
    an_apply_of_a_new_object_needs_create,
}

/// Eventually: authorizers read roles through a cache.
async fn allowed(api: &Target, call: Call, code: u16) {
    api.until_answered(&call, |answer| answer.code == code).await;
}

fn roles(ns: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles")
}

fn bindings(ns: &str) -> String {
    format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings")
}

const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

fn rules(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!([{"apiGroups": groups, "resources": resources, "verbs": verbs}])
}

fn binding(name: &str, kind: &str, role: &str, ns: &str, account: &str) -> Value {
    json!({
        "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": ns}],
    })
}

/// A namespace, and the token of an account in it with these rules there.
async fn role(api: &Target, rules: Value) -> (String, String) {
    let ns = api.namespace().await;
    let token = account(api, &ns, "joe").await;
    api.post(&roles(&ns), json!({"metadata": {"name": "r"}, "rules": rules})).await.created();
    api.post(&bindings(&ns), binding("b", "Role", "r", &ns, "joe")).await.created();
    (ns, token)
}

async fn an_account_may_nothing_at_first(api: Target) {
    let ns = api.namespace().await;
    let token = account(&api, &ns, "joe").await;
    let answer = api.send(Call::get(&maps(&ns)).bearer(&token)).await;
    answer.refused(403, "Forbidden", &format!("configmaps is forbidden: User \"system:serviceaccount:{ns}:joe\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"{ns}\""));
    answer.has("/details", json!({"kind": "configmaps"}));
    let answer = api.send(Call::get("/api/v1/nodes/x").bearer(&token)).await;
    answer.refused(403, "Forbidden", &format!("nodes \"x\" is forbidden: User \"system:serviceaccount:{ns}:joe\" cannot get resource \"nodes\" in API group \"\" at the cluster scope"));
    let answer = api.send(Call::get("/apis/apps/v1/deployments").bearer(&token)).await;
    answer.refused(403, "Forbidden", &format!("deployments.apps is forbidden: User \"system:serviceaccount:{ns}:joe\" cannot list resource \"deployments\" in API group \"apps\" at the cluster scope"));
}

async fn a_role_allows_its_verbs_in_its_namespace(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["get", "list", "create"])).await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    api.send(Call::post(&maps(&ns), &map("a", json!({}))).bearer(&token)).await.created();
    api.send(Call::get(&format!("{}/a", maps(&ns))).bearer(&token)).await.ok();
    let answer = api.send(Call::delete(&format!("{}/a", maps(&ns))).bearer(&token)).await;
    answer.refused(403, "Forbidden", &format!("configmaps \"a\" is forbidden: User \"system:serviceaccount:{ns}:joe\" cannot delete resource \"configmaps\" in API group \"\" in the namespace \"{ns}\""));
    api.send(Call::get(&maps("default")).bearer(&token)).await.is(403);
    api.send(Call::get("/api/v1/configmaps").bearer(&token)).await.is(403);
    api.send(Call::get(&core(&ns, "secrets")).bearer(&token)).await.is(403);
}

async fn a_cluster_role_may_be_bound_in_one_namespace(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    let token = account(&api, &ns, "joe").await;
    api.post(
        CLUSTER_ROLES,
        json!({"metadata": {"name": name}, "rules": rules(&[""], &["configmaps"], &["list"])}),
    )
    .await
    .created();
    api.post(&bindings(&ns), binding("b", "ClusterRole", &name, &ns, "joe")).await.created();
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    api.send(Call::get(&maps("default")).bearer(&token)).await.is(403);
}

async fn a_cluster_binding_holds_everywhere(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    let token = account(&api, &ns, "joe").await;
    api.post(CLUSTER_ROLES, json!({"metadata": {"name": name}, "rules": rules(&["", "apps"], &["configmaps", "deployments", "nodes"], &["list"])})).await.created();
    api.post(CLUSTER_BINDINGS, binding(&name, "ClusterRole", &name, &ns, "joe")).await.created();
    for path in [
        maps("default"),
        "/api/v1/configmaps".to_owned(),
        "/api/v1/nodes".to_owned(),
        "/apis/apps/v1/deployments".to_owned(),
    ] {
        allowed(&api, Call::get(&path).bearer(&token), 200).await;
    }
    api.delete(&format!("{CLUSTER_BINDINGS}/{name}")).await.ok();
    allowed(&api, Call::get("/api/v1/nodes").bearer(&token), 403).await;
}

async fn a_role_can_be_for_named_objects(api: Target) {
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"], "resourceNames": ["mine"]}]);
    let (ns, token) = role(&api, rules).await;
    for name in ["mine", "other"] {
        api.post(&maps(&ns), map(name, json!({}))).await.created();
    }
    allowed(&api, Call::get(&format!("{}/mine", maps(&ns))).bearer(&token), 200).await;
    api.send(Call::get(&format!("{}/other", maps(&ns))).bearer(&token)).await.is(403);
    api.send(Call::get(&maps(&ns)).bearer(&token)).await.is(403);
    // A list of that name alone is allowed.
    let call = Call::get(&maps(&ns)).query("fieldSelector", "metadata.name=mine").bearer(&token);
    assert_eq!(api.send(call).await.names(), ["mine"]);
}

async fn a_role_can_be_for_subresources(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["serviceaccounts/token"], &["create"])).await;
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = format!("{}/joe", core(&ns, "serviceaccounts"));
    allowed(&api, Call::post(&format!("{path}/token"), &request).bearer(&token), 201).await;
    let answer = api.send(Call::get(&path).bearer(&token)).await;
    answer.is(403);
}

async fn stars_mean_all(api: Target) {
    let (ns, token) = role(&api, rules(&["*"], &["*"], &["*"])).await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    api.send(Call::get(&format!("/apis/apps/v1/namespaces/{ns}/deployments")).bearer(&token)).await.ok();
    api.send(Call::delete(&core(&ns, "secrets")).bearer(&token)).await.ok();
    api.send(Call::get("/api/v1/configmaps").bearer(&token)).await.is(403);
}

async fn groups_of_accounts_are_bound(api: Target) {
    let ns = api.namespace().await;
    let token = account(&api, &ns, "joe").await;
    api.post(
        &roles(&ns),
        json!({"metadata": {"name": "r"}, "rules": rules(&[""], &["configmaps"], &["list"])}),
    )
    .await
    .created();
    let mut bound = binding("b", "Role", "r", &ns, "joe");
    bound["subjects"] = json!([{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": format!("system:serviceaccounts:{ns}")}]);
    api.post(&bindings(&ns), bound).await.created();
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
}

async fn a_binding_removed_allows_nothing(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["list"])).await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    api.delete(&format!("{}/b", bindings(&ns))).await.ok();
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 403).await;
}

async fn paths_that_are_no_resources_are_allowed(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    let token = account(&api, &ns, "joe").await;
    let answer = api.send(Call::get("/metrics").bearer(&token)).await;
    answer.refused(
        403,
        "Forbidden",
        &format!("forbidden: User \"system:serviceaccount:{ns}:joe\" cannot get path \"/metrics\""),
    );
    let rules = json!([{"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}]);
    api.post(CLUSTER_ROLES, json!({"metadata": {"name": name}, "rules": rules})).await.created();
    api.post(CLUSTER_BINDINGS, binding(&name, "ClusterRole", &name, &ns, "joe")).await.created();
    let review = |path: &str| json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"path": path, "verb": "get"}}});
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let metrics = Call::post(reviews, &review("/metrics")).bearer(&token);
    api.until_answered(&metrics, |answer| answer.at("/status/allowed") == true).await;
    api.send(Call::post(reviews, &review("/logs/a/b")).bearer(&token)).await.has("/status/allowed", true);
    api.send(Call::post(reviews, &review("/other")).bearer(&token)).await.has("/status/allowed", false);
}

async fn cluster_roles_aggregate(api: Target) {
    let name = api.label();
    let (whole, part) = (format!("{name}-whole"), format!("{name}-part"));
    let body = json!({"metadata": {"name": whole}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part-of": name}}]}, "rules": []});
    api.post(CLUSTER_ROLES, body).await.created();
    let body = json!({"metadata": {"name": part, "labels": {"part-of": name}}, "rules": rules(&[""], &["configmaps"], &["get"])});
    api.post(CLUSTER_ROLES, body).await.created();
    let path = format!("{CLUSTER_ROLES}/{whole}");
    api.until(&path, |role| role.at("/rules/0/resources/0") == "configmaps").await;
}

async fn the_default_roles_are_there(api: Target) {
    for name in [
        "cluster-admin",
        "admin",
        "edit",
        "view",
        "system:discovery",
        "system:basic-user",
        "system:public-info-viewer",
    ] {
        api.get(&format!("{CLUSTER_ROLES}/{name}"))
            .await
            .has("/metadata/labels/kubernetes.io~1bootstrapping", "rbac-defaults");
    }
    let all = api.get(&format!("{CLUSTER_ROLES}/cluster-admin")).await;
    all.has("/rules", json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]));
    let masters = api.get(&format!("{CLUSTER_BINDINGS}/cluster-admin")).await;
    masters.has("/subjects/0/name", "system:masters").has("/roleRef/name", "cluster-admin");
}

/// A namespace, and the token of an account with a default role there.
async fn with_default_role(api: &Target, role: &str) -> (String, String) {
    let ns = api.namespace().await;
    let token = account(api, &ns, "joe").await;
    api.post(&bindings(&ns), binding("b", "ClusterRole", role, &ns, "joe")).await.created();
    (ns, token)
}

async fn may(api: &Target, token: &str, ns: &str, verb: &str, group: &str, resource: &str) -> bool {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
        "resourceAttributes": {"namespace": ns, "verb": verb, "group": group, "resource": resource},
    }});
    let call = Call::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).bearer(token);
    api.send(call).await.created()["status"]["allowed"] == true
}

async fn the_view_role_shows_no_secrets(api: Target) {
    let (ns, token) = with_default_role(&api, "view").await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    assert!(may(&api, &token, &ns, "list", "apps", "deployments").await);
    for (verb, resource) in [("get", "secrets"), ("create", "configmaps"), ("delete", "pods")] {
        assert!(!may(&api, &token, &ns, verb, "", resource).await, "{verb} {resource}");
    }
}

async fn an_edit_may_not_change_roles(api: Target) {
    let (ns, token) = with_default_role(&api, "edit").await;
    allowed(&api, Call::post(&maps(&ns), &map("a", json!({}))).bearer(&token), 201).await;
    assert!(may(&api, &token, &ns, "get", "", "secrets").await);
    assert!(!may(&api, &token, &ns, "create", "rbac.authorization.k8s.io", "roles").await);
}

async fn nobody_may_grant_what_they_may_not_do(api: Target) {
    let (ns, token) =
        role(&api, rules(&["rbac.authorization.k8s.io"], &["roles", "rolebindings"], &["list", "create"]))
            .await;
    allowed(&api, Call::get(&roles(&ns)).bearer(&token), 200).await;
    let wanted = json!({"metadata": {"name": "more"}, "rules": rules(&[""], &["secrets"], &["get"])});
    let answer = api.send(Call::post(&roles(&ns), &wanted).bearer(&token)).await;
    answer.refused_with(403, "Forbidden", &format!("roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"system:serviceaccount:{ns}:joe\" (groups=[\"system:serviceaccounts\" \"system:serviceaccounts:{ns}\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:"));
    answer.refused_with(403, "Forbidden", "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}");
    let bound = binding("more", "ClusterRole", "cluster-admin", &ns, "joe");
    let answer = api.send(Call::post(&bindings(&ns), &bound).bearer(&token)).await;
    answer.refused_with(403, "Forbidden", "is attempting to grant RBAC permissions not currently held:");
}

async fn a_binding_keeps_its_role(api: Target) {
    let (ns, _) = role(&api, rules(&[""], &["configmaps"], &["get"])).await;
    let answer = api.merge(&format!("{}/b", bindings(&ns)), json!({"roleRef": {"name": "other"}})).await;
    answer.refused_with(
        422,
        "Invalid",
        "RoleBinding.rbac.authorization.k8s.io \"b\" is invalid: roleRef: Invalid value: ",
    );
    answer.refused_with(422, "Invalid", "cannot change roleRef");
}

async fn a_role_needs_verbs(api: Target) {
    let ns = api.namespace().await;
    let answer = api
        .post(
            &roles(&ns),
            json!({"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}),
        )
        .await;
    answer.refused(422, "Invalid", "Role.rbac.authorization.k8s.io \"r\" is invalid: rules[0].verbs: Required value: verbs must contain at least one value");
    let answer = api
        .post(
            &roles(&ns),
            json!({"metadata": {"name": "r"}, "rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]}),
        )
        .await;
    answer.refused_with(422, "Invalid", "namespaced rules cannot apply to non-resource URLs");
}

async fn a_binding_needs_an_existing_form(api: Target) {
    let ns = api.namespace().await;
    let mut bound = binding("b", "Role", "r", &ns, "joe");
    bound["subjects"] = json!([{"kind": "Robot", "name": "x"}]);
    let answer = api.post(&bindings(&ns), bound).await;
    answer.refused_with(422, "Invalid", "subjects[0].kind: Unsupported value: \"Robot\": supported values: \"ServiceAccount\", \"User\", \"Group\"");
    let mut bound = binding("b", "Thing", "r", &ns, "joe");
    bound["subjects"] = json!([]);
    let answer = api.post(&bindings(&ns), bound).await;
    answer.refused_with(
        422,
        "Invalid",
        "roleRef.kind: Unsupported value: \"Thing\": supported values: \"Role\", \"ClusterRole\"",
    );
}

async fn the_one_who_asks_is_told_their_name(api: Target) {
    let ns = api.namespace().await;
    let token = account(&api, &ns, "joe").await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let answer = api.send(Call::post(path, &review).bearer(&token)).await;
    answer.created();
    answer.has("/status/userInfo/username", format!("system:serviceaccount:{ns}:joe"));
    answer.has(
        "/status/userInfo/groups",
        json!(["system:serviceaccounts", format!("system:serviceaccounts:{ns}"), "system:authenticated"]),
    );
    let groups = api.post(path, review).await.at("/status/userInfo/groups");
    assert!(groups.as_array().is_some_and(|groups| groups.contains(&json!("system:masters"))), "{groups}");
}

async fn the_one_who_asks_is_told_what_they_may(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["list"])).await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    assert!(may(&api, &token, &ns, "list", "", "configmaps").await);
    assert!(!may(&api, &token, &ns, "get", "", "configmaps").await);
    assert!(!may(&api, &token, "default", "list", "", "configmaps").await);
    let review =
        json!({"spec": {"resourceAttributes": {"namespace": ns, "verb": "list", "resource": "configmaps"}}});
    let answer = api
        .send(Call::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).bearer(&token))
        .await;
    answer.has(
        "/status/reason",
        format!("RBAC: allowed by RoleBinding \"b/{ns}\" of Role \"r\" to ServiceAccount \"joe/{ns}\""),
    );
}

async fn rules_of_a_user_are_listed(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["list", "get"])).await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": ns}});
    let answer = api
        .send(Call::post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &review).bearer(&token))
        .await;
    answer.created();
    answer.has("/status/incomplete", false);
    let rules = answer.at("/status/resourceRules").as_array().cloned().unwrap_or_default();
    assert!(
        rules.contains(&json!({"verbs": ["list", "get"], "apiGroups": [""], "resources": ["configmaps"]})),
        "{rules:#?}"
    );
    let paths = answer.at("/status/nonResourceRules").to_string();
    assert!(paths.contains("/healthz"), "{paths}");
}

async fn others_are_reviewed(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["list"])).await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    let review = |user: &str, groups: Value| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": user, "groups": groups, "resourceAttributes": {"namespace": ns, "verb": "list", "resource": "configmaps"},
        }})
    };
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let joe = format!("system:serviceaccount:{ns}:joe");
    api.post(path, review(&joe, json!([]))).await.has("/status/allowed", true);
    api.post(path, review("jane", json!([]))).await.has("/status/allowed", false);
    let answer = api.post(path, review("jane", json!(["system:masters"]))).await;
    answer.has("/status/allowed", true);
    let answer = api.send(Call::post(path, &review("jane", json!([]))).bearer(&token)).await;
    answer.is(403);
}

async fn a_local_review_needs_its_namespace(api: Target) {
    let ns = api.namespace().await;
    let review = |namespace: &str| {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "metadata": {"namespace": ns}, "spec": {
            "user": "jane", "resourceAttributes": {"namespace": namespace, "verb": "list", "resource": "configmaps"},
        }})
    };
    let path = format!("/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews");
    api.post(&path, review(&ns)).await.has("/status/allowed", false);
    let answer = api.post(&path, review("other")).await;
    answer.refused_with(422, "Invalid", "spec.resourceAttributes.namespace");
}

async fn a_review_needs_one_question(api: Target) {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = api.post(path, json!({"spec": {}})).await;
    answer.refused_with(
        422,
        "Invalid",
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
    );
    let both = json!({"spec": {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let answer = api.post(path, both).await;
    answer.refused_with(422, "Invalid", "cannot be specified in combination with resourceAttributes");
}

async fn anonymous_may_look_at_versions_only(api: Target) {
    api.send(Call::get("/version").authorization("")).await.ok();
    let answer = api.send(Call::get("/api/v1/namespaces").authorization("")).await;
    answer.refused(403, "Forbidden", "namespaces is forbidden: User \"system:anonymous\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope");
    let answer = api.send(Call::get("/apis").authorization("")).await;
    answer.refused(403, "Forbidden", "forbidden: User \"system:anonymous\" cannot get path \"/apis\"");
}

async fn an_unknown_token_is_unauthorized(api: Target) {
    for authorization in ["Bearer nonsense", "Bearer a.b.c"] {
        let answer = api.send(Call::get("/api/v1/namespaces").authorization(authorization)).await;
        answer.refused(401, "Unauthorized", "Unauthorized");
    }
    // What is no bearer token is nobody's.
    let answer = api.send(Call::get("/api/v1/namespaces").authorization("Basic YTpi")).await;
    answer.is(403);
}

async fn a_patch_needs_its_own_verb(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["get", "update"])).await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let path = format!("{}/a", maps(&ns));
    allowed(&api, Call::get(&path).bearer(&token), 200).await;
    api.send(Call::put(&path, &map("a", json!({"k": "v"}))).bearer(&token)).await.ok();
    let answer = api.send(Call::patch(&path, crate::target::Patch::Merge, &json!({})).bearer(&token)).await;
    answer.refused_with(403, "Forbidden", "cannot patch resource \"configmaps\"");
}

async fn deleting_a_collection_needs_its_own_verb(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["list", "delete"])).await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    let answer = api.send(Call::delete(&maps(&ns)).bearer(&token)).await;
    answer.refused_with(403, "Forbidden", "cannot deletecollection resource \"configmaps\"");
}

async fn what_may_be_listed_may_be_watched_only_if_said(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["list"])).await;
    allowed(&api, Call::get(&maps(&ns)).bearer(&token), 200).await;
    let answer = api.send(Call::get(&format!("{}?watch=1", maps(&ns))).bearer(&token)).await;
    answer.refused_with(403, "Forbidden", "cannot watch resource \"configmaps\"");
}

async fn an_apply_of_a_new_object_needs_create(api: Target) {
    let (ns, token) = role(&api, rules(&[""], &["configmaps"], &["patch", "get"])).await;
    allowed(&api, Call::get(&format!("{}/a", maps(&ns))).bearer(&token), 404).await;
    let answer =
        api.send(Call::apply(&format!("{}/a", maps(&ns)), "m", &map("a", json!({}))).bearer(&token)).await;
    answer.refused_with(403, "Forbidden", "cannot create resource \"configmaps\"");
}
