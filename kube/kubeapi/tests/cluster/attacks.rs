//! What an enemy with a few rights tries, to get more of them: each case is one attempt, and the honest use beside it. What he
//! tries against policies and the garbage collector is in [`crate::evasions`].

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fixtures::{account, core, map, maps, pod};
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    a_writer_of_roles_does_not_aggregate_all_rights,
    a_role_that_aggregates_is_not_changed_by_a_writer_of_roles,
    a_right_to_escalate_one_role_makes_no_other,
    no_patch_adds_a_right_that_its_writer_lacks,
    a_right_to_bind_one_role_binds_no_other,
    a_writer_of_roles_may_release_a_stronger_role,
    impersonation_without_a_user_is_not_served_as_the_caller,
    an_impersonated_uid_group_or_extra_needs_a_right_of_its_own,
    a_token_of_an_account_made_anew_is_no_good,
    a_token_that_says_how_it_is_signed_is_no_good,
    a_token_is_not_bound_to_a_pod_of_another_account,
    odd_paths_are_no_way_around_roles,
    a_collection_is_not_deleted_by_the_right_to_one_name,
    a_list_of_one_name_shows_no_other,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const CLUSTER_BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

fn of_rbac(ns: &str, resource: &str) -> String {
    format!("/apis/{RBAC}/v1/namespaces/{ns}/{resource}")
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": verbs})
}

fn binding(name: &str, kind: &str, role: &str, ns: &str) -> Value {
    json!({
        "metadata": {"name": name}, "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "joe", "namespace": ns}],
    })
}

/// A namespace, and the token of `joe` in it who has these rules across the cluster, by a role of the case's name.
async fn joe_everywhere(api: &Target, rules: Value) -> (String, String) {
    let (ns, name) = (api.namespace().await, api.label());
    let token = account(api, &ns, "joe").await;
    api.post(CLUSTER_ROLES, json!({"metadata": {"name": name}, "rules": rules})).await.created();
    api.post(CLUSTER_BINDINGS, binding(&name, "ClusterRole", &name, &ns)).await.created();
    (ns, token)
}

/// The same in the namespace alone, by the role `r`.
async fn joe_here(api: &Target, rules: Value) -> (String, String) {
    let ns = api.namespace().await;
    let token = account(api, &ns, "joe").await;
    api.post(&of_rbac(&ns, "roles"), json!({"metadata": {"name": "r"}, "rules": rules})).await.created();
    api.post(&of_rbac(&ns, "rolebindings"), binding("b", "Role", "r", &ns)).await.created();
    (ns, token)
}

/// Waits until a call is allowed: roles are read through a cache.
async fn until_allowed(api: &Target, call: Call) {
    api.until_answered(&call, |answer| answer.code != 403).await;
}

const WRITES: [&str; 6] = ["get", "list", "create", "update", "patch", "delete"];

fn everything_labelled(label: &str) -> Value {
    json!({"clusterRoleSelectors": [{"matchExpressions": [{"key": label, "operator": "Exists"}]}]})
}

fn is_no_aggregation(answer: &Answer) {
    answer.refused_with(403, "Forbidden", "must have cluster-admin privileges to use the aggregationRule");
}

async fn a_writer_of_roles_does_not_aggregate_all_rights(api: Target) {
    let (_, token) = joe_everywhere(&api, json!([rule(&[RBAC], &["clusterroles"], &WRITES)])).await;
    let name = api.label();
    let own = format!("{CLUSTER_ROLES}/{name}");
    until_allowed(&api, Call::get(&own).bearer(&token)).await;
    let all = json!({"aggregationRule": everything_labelled("kubernetes.io/bootstrapping")});
    let new = |metadata: Value| json!({"metadata": metadata, "aggregationRule": all["aggregationRule"], "rules": []});
    let more = format!("{name}-more");
    let mut put = api.get(&own).await.ok();
    put["aggregationRule"] = all["aggregationRule"].clone();
    let add = json!([{"op": "add", "path": "/aggregationRule", "value": all["aggregationRule"]}]);
    let mut applied = new(json!({"name": name}));
    (applied["apiVersion"], applied["kind"]) = (format!("{RBAC}/v1").into(), "ClusterRole".into());
    let mut applied_new = applied.clone();
    applied_new["metadata"]["name"] = more.clone().into();
    for call in [
        Call::post(CLUSTER_ROLES, &new(json!({"name": more}))),
        Call::post(CLUSTER_ROLES, &new(json!({"generateName": format!("{name}-")}))),
        Call::post(CLUSTER_ROLES, &new(json!({"name": more}))).query("dryRun", "All"),
        Call::put(&format!("{CLUSTER_ROLES}/{more}"), &new(json!({"name": more}))),
        Call::put(&own, &put),
        Call::patch(&own, Patch::Merge, &all),
        Call::patch(&own, Patch::Strategic, &all),
        Call::patch(&own, Patch::Json, &add),
        Call::apply(&own, "joe", &applied).force(),
        Call::apply(&format!("{CLUSTER_ROLES}/{more}"), "joe", &applied_new),
    ] {
        is_no_aggregation(&api.send(call.bearer(&token)).await);
    }
    api.send(Call::get("/api/v1/secrets").bearer(&token)).await.is(403);
    // What he has he may grant, and an administrator may aggregate.
    let granted = json!({"metadata": {"name": more}, "rules": [rule(&[RBAC], &["clusterroles"], &["get"])]});
    api.send(Call::post(CLUSTER_ROLES, &granted).bearer(&token)).await.created();
    api.merge(&own, json!({"aggregationRule": everything_labelled(&name)})).await.ok();
}

async fn a_role_that_aggregates_is_not_changed_by_a_writer_of_roles(api: Target) {
    let (_, token) = joe_everywhere(&api, json!([rule(&[RBAC], &["clusterroles"], &WRITES)])).await;
    let whole = format!("{}-whole", api.label());
    let path = format!("{CLUSTER_ROLES}/{whole}");
    let body =
        json!({"metadata": {"name": whole}, "aggregationRule": everything_labelled(&whole), "rules": []});
    api.post(CLUSTER_ROLES, body).await.created();
    until_allowed(&api, Call::get(&path).bearer(&token)).await;
    for change in [
        json!({"aggregationRule": everything_labelled("kubernetes.io/bootstrapping")}),
        json!({"aggregationRule": null}),
        json!({"rules": [rule(&[RBAC], &["clusterroles"], &["get"])]}),
        json!({"metadata": {"labels": {"a": "b"}}}),
    ] {
        is_no_aggregation(&api.send(Call::patch(&path, Patch::Merge, &change).bearer(&token)).await);
    }
}

async fn a_right_to_escalate_one_role_makes_no_other(api: Target) {
    let name = api.label();
    let strong = format!("{name}-strong");
    let mut escalate = rule(&[RBAC], &["clusterroles"], &["escalate"]);
    escalate["resourceNames"] = json!([strong]);
    let (_, token) = joe_everywhere(&api, json!([rule(&[RBAC], &["clusterroles"], &WRITES), escalate])).await;
    until_allowed(&api, Call::get(&format!("{CLUSTER_ROLES}/{name}")).bearer(&token)).await;
    let body =
        |name: &str| json!({"metadata": {"name": name}, "rules": [rule(&[""], &["secrets"], &["get"])]});
    let other = Call::post(CLUSTER_ROLES, &body(&format!("{name}-other"))).bearer(&token);
    api.send(other).await.refused_with(
        403,
        "Forbidden",
        "is attempting to grant RBAC permissions not currently held",
    );
    // A role that is made by POST has no name yet that a right could be for.
    let made = Call::post(CLUSTER_ROLES, &body(&strong)).bearer(&token);
    api.send(made).await.refused_with(
        403,
        "Forbidden",
        "is attempting to grant RBAC permissions not currently held",
    );
    // The one that is there he may make as strong as he likes, and let it aggregate.
    api.post(CLUSTER_ROLES, json!({"metadata": {"name": strong}, "rules": []})).await.created();
    let more = json!({"rules": [rule(&[""], &["secrets"], &["get"])], "aggregationRule": everything_labelled(&name)});
    let path = format!("{CLUSTER_ROLES}/{strong}");
    api.send(Call::patch(&path, Patch::Merge, &more).bearer(&token)).await.ok();
}

async fn no_patch_adds_a_right_that_its_writer_lacks(api: Target) {
    let rules = json!([rule(&[RBAC], &["roles"], &WRITES), rule(&[""], &["configmaps"], &["get"])]);
    let (ns, token) = joe_here(&api, rules).await;
    let roles = of_rbac(&ns, "roles");
    until_allowed(&api, Call::get(&roles).bearer(&token)).await;
    let weak = json!({"metadata": {"name": "weak"}, "rules": [rule(&[""], &["configmaps"], &["get"])]});
    api.send(Call::post(&roles, &weak).bearer(&token)).await.created();
    let path = format!("{roles}/weak");
    let secrets = json!({"rules": [rule(&[""], &["secrets"], &["get"])]});
    let mut applied =
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": {"name": "weak"}});
    applied["rules"] = secrets["rules"].clone();
    let every = rule(&["*"], &["*"], &["*"]);
    let named = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "delete"], "resourceNames": ["x"]});
    for call in [
        Call::patch(&path, Patch::Merge, &secrets),
        Call::patch(&path, Patch::Strategic, &secrets),
        Call::patch(&path, Patch::Json, &json!([{"op": "add", "path": "/rules/-", "value": every}])),
        Call::patch(&path, Patch::Json, &json!([{"op": "add", "path": "/rules/-", "value": named}])),
        Call::patch(
            &path,
            Patch::Json,
            &json!([{"op": "replace", "path": "/rules/0/resources/0", "value": "*"}]),
        ),
        Call::patch(&path, Patch::Merge, &secrets).query("dryRun", "All"),
        Call::apply(&path, "joe", &applied).force(),
        Call::post(&roles, &json!({"metadata": {"generateName": "g-"}, "rules": secrets["rules"]})),
    ] {
        let answer = api.send(call.bearer(&token)).await;
        answer.refused_with(403, "Forbidden", "is attempting to grant RBAC permissions not currently held");
    }
    api.send(Call::get(&core(&ns, "secrets")).bearer(&token)).await.is(403);
}

async fn a_right_to_bind_one_role_binds_no_other(api: Target) {
    let mut bind = rule(&[RBAC], &["clusterroles"], &["bind"]);
    bind["resourceNames"] = json!(["view"]);
    let (ns, token) = joe_here(&api, json!([rule(&[RBAC], &["rolebindings"], &WRITES), bind])).await;
    let bindings = of_rbac(&ns, "rolebindings");
    until_allowed(&api, Call::get(&bindings).bearer(&token)).await;
    let to = |name: &str, kind: &str, role: &str| {
        Call::post(&bindings, &binding(name, kind, role, &ns)).bearer(&token)
    };
    api.send(to("a", "ClusterRole", "cluster-admin")).await.is(403);
    // A role of the namespace with the same name is another.
    let rules = json!([rule(&["*"], &["*"], &["*"])]);
    api.post(&of_rbac(&ns, "roles"), json!({"metadata": {"name": "view"}, "rules": rules})).await.created();
    api.send(to("b2", "Role", "view")).await.is(403);
    api.send(to("c", "ClusterRole", "no-such-role")).await.is(404);
    api.send(to("d", "ClusterRole", "view")).await.created();
    // To whom a role is bound is no loophole: his own rights are what he may give to a group.
    let mut masters = binding("e", "ClusterRole", "cluster-admin", &ns);
    masters["subjects"] = json!([{"kind": "Group", "apiGroup": RBAC, "name": "system:masters"}]);
    api.send(Call::post(&bindings, &masters).bearer(&token)).await.is(403);
}

async fn a_writer_of_roles_may_release_a_stronger_role(api: Target) {
    let (ns, token) = joe_here(&api, json!([rule(&[RBAC], &["roles"], &WRITES)])).await;
    let roles = of_rbac(&ns, "roles");
    until_allowed(&api, Call::get(&roles).bearer(&token)).await;
    let rules = json!([rule(&[""], &["secrets"], &["get"])]);
    let held = json!({"metadata": {"name": "strong", "finalizers": ["example.com/wait"]}, "rules": rules});
    api.post(&roles, held).await.created();
    let path = format!("{roles}/strong");
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    api.send(Call::patch(&path, Patch::Merge, &labels).bearer(&token)).await.is(403);
    let release = json!({"metadata": {"finalizers": null}});
    api.send(Call::patch(&path, Patch::Merge, &release).bearer(&token)).await.ok();
}

async fn impersonation_without_a_user_is_not_served_as_the_caller(api: Target) {
    for (header, value) in [
        ("impersonate-group", "system:authenticated"),
        ("impersonate-uid", "06f6ce97-e2c5-4ab8-7ba5-7654dd08d52b"),
        ("impersonate-extra-scopes", "view"),
    ] {
        let answer = api.send(Call::post(WHO, &json!({})).header(header, value)).await;
        // A real server calls it an error of its own.
        assert!(if api.real { answer.code >= 400 } else { answer.code == 400 }, "{answer}");
    }
    let answer = api.send(Call::post(WHO, &json!({})).header("impersonate-user", "jane")).await;
    answer.created();
    answer.has("/status/userInfo/username", "jane");
    answer.has("/status/userInfo/groups", json!(["system:authenticated"]));
}

async fn an_impersonated_uid_group_or_extra_needs_a_right_of_its_own(api: Target) {
    let named = |groups: &[&str], resources: &[&str], name: &str| json!({"apiGroups": groups, "resources": resources, "verbs": ["impersonate"], "resourceNames": [name]});
    let own = "authentication.k8s.io";
    let rules = json!([
        named(&[""], &["users"], "jane"),
        named(&[""], &["groups"], "dev"),
        named(&[own], &["userextras/scopes"], "view")
    ]);
    let (_, token) = joe_everywhere(&api, rules).await;
    let ask = |headers: &[(&str, &str)]| {
        let call = Call::post(WHO, &json!({})).bearer(&token);
        headers.iter().fold(call, |call, (name, value)| call.header(name, value))
    };
    let jane = ("impersonate-user", "jane");
    until_allowed(&api, ask(&[jane])).await;
    for more in [
        ("impersonate-uid", "u-1"),
        ("impersonate-group", "system:masters"),
        ("impersonate-extra-scopes", "edit"),
        ("impersonate-extra-other", "view"),
    ] {
        api.send(ask(&[jane, more])).await.is(403);
    }
    api.send(ask(&[("impersonate-user", "system:admin")])).await.is(403);
    let answer =
        api.send(ask(&[jane, ("impersonate-group", "dev"), ("impersonate-extra-scopes", "view")])).await;
    answer.created();
    answer.has("/status/userInfo/groups", json!(["dev", "system:authenticated"]));
    answer.has("/status/userInfo/extra", json!({"scopes": ["view"]}));
    // An administrator may all of it, keys with escapes too.
    let call =
        Call::post(WHO, &json!({})).header("impersonate-user", "jane").header("impersonate-uid", "u-1");
    let answer = api.send(call.header("impersonate-extra-example.com%2fproject", "p")).await;
    answer.has("/status/userInfo/uid", "u-1");
    answer.has("/status/userInfo/extra", json!({"example.com/project": ["p"]}));
}

async fn a_token_of_an_account_made_anew_is_no_good(api: Target) {
    let ns = api.namespace().await;
    let token = account(&api, &ns, "joe").await;
    let path = core(&ns, "serviceaccounts");
    let who = Call::post(WHO, &json!({})).bearer(&token);
    api.send(who.clone()).await.created();
    api.delete(&format!("{path}/joe")).await.ok();
    api.post(&path, json!({"metadata": {"name": "joe"}})).await.created();
    api.until_answered(&who, |answer| answer.code == 401).await;
    api.send(who).await.is(401);
}

async fn a_token_that_says_how_it_is_signed_is_no_good(api: Target) {
    let ns = api.namespace().await;
    let token = account(&api, &ns, "joe").await;
    let parts: Vec<&str> = token.split('.').collect();
    // {"alg":"none"}, {"alg":"None"} and {"alg":"HS256"}.
    for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIn0", "eyJhbGciOiJIUzI1NiJ9"] {
        for signature in ["", parts[2]] {
            let forged = format!("{header}.{}.{signature}", parts[1]);
            api.send(Call::post(WHO, &json!({})).bearer(&forged)).await.is(401);
        }
    }
    api.send(Call::post(WHO, &json!({})).bearer(&token)).await.created();
}

async fn a_token_is_not_bound_to_a_pod_of_another_account(api: Target) {
    let ns = api.namespace().await;
    for name in ["joe", "eve"] {
        account(&api, &ns, name).await;
        api.post(&core(&ns, "pods"), pod(&format!("of-{name}"), name)).await.created();
    }
    let bound = |pod: &str, version: &str| {
        let to = json!({"apiVersion": version, "kind": "Pod", "name": pod});
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": to}})
    };
    let path = format!("{}/joe/token", core(&ns, "serviceaccounts"));
    api.post(&path, bound("of-eve", "v1")).await.refused_with(
        400,
        "BadRequest",
        "different serviceaccount name",
    );
    api.post(&path, bound("of-joe", "example.com/v1")).await.is(400);
    api.post(&path, bound("of-joe", "v1")).await.created();
}

async fn odd_paths_are_no_way_around_roles(api: Target) {
    let (ns, token) = joe_here(&api, json!([rule(&["*"], &["*"], &["*"])])).await;
    let secret = json!({"metadata": {"name": format!("s-{}", api.run)}, "stringData": {"k": "v"}});
    api.post(&core("kube-system", "secrets"), secret).await.created();
    until_allowed(&api, Call::get(&maps(&ns)).bearer(&token)).await;
    let name = format!("s-{}", api.run);
    for path in [
        "/api/v1/secrets".to_owned(),
        "//api/v1/secrets".to_owned(),
        "/api/v1//secrets".to_owned(),
        "/api//v1/secrets".to_owned(),
        "/api/v1/secrets/".to_owned(),
        "/api/v1/Secrets".to_owned(),
        "/API/v1/secrets".to_owned(),
        "/api/v1/watch/secrets".to_owned(),
        "/api/v1/namespaces//secrets".to_owned(),
        format!("/api/v1/namespaces/kube-system/secrets/{name}"),
        format!("/api/v1/namespaces/kube-system/secrets/{name}/"),
        format!("/api/v1/namespaces/kube-system//secrets/{name}"),
        format!("/api/v1/namespaces/{ns}/../kube-system/secrets/{name}"),
        format!("/api/v1/namespaces/{ns}/%2e%2e/kube-system/secrets/{name}"),
        format!("/api/v1/namespaces/{ns}/..%2fkube-system%2fsecrets%2f{name}"),
        format!("/api/v1/namespaces/{ns}/secrets/..%2f..%2fkube-system%2fsecrets%2f{name}"),
        format!("/api/v1/namespaces/{ns}%2f..%2fkube-system/secrets/{name}"),
        format!("/api/v1/namespaces/{ns}/namespaces/kube-system/secrets/{name}"),
        format!("/api/v1/namespaces/KUBE-SYSTEM/secrets/{name}"),
        format!("/api/v1/namespaces/kube-system%00/secrets/{name}"),
        format!("/apis/core/v1/namespaces/{ns}/secrets/{name}"),
        format!("/apis//v1/namespaces/kube-system/secrets/{name}"),
        format!("/apis/{RBAC}/v1/namespaces/{ns}/clusterroles/cluster-admin"),
        format!("/api/v1/namespaces/{ns}/namespaces"),
        format!("/api/v1/namespaces/{ns}/nodes"),
    ] {
        let answer = api.send(Call::get(&path).bearer(&token)).await;
        assert!(!(200..300).contains(&answer.code), "{answer}");
        assert!(!answer.text().contains("\"data\""), "{answer}");
    }
    api.send(Call::get(&core(&ns, "secrets")).bearer(&token)).await.ok();
}

async fn a_collection_is_not_deleted_by_the_right_to_one_name(api: Target) {
    let mut rights = rule(&[""], &["configmaps"], &["get", "list", "watch", "delete", "deletecollection"]);
    rights["resourceNames"] = json!(["mine"]);
    let (ns, token) = joe_here(&api, json!([rights])).await;
    for name in ["mine", "other"] {
        api.post(&maps(&ns), map(name, json!({}))).await.created();
    }
    until_allowed(&api, Call::get(&format!("{}/mine", maps(&ns))).bearer(&token)).await;
    for selector in ["", "metadata.name=mine", "metadata.name=other"] {
        let call = Call::delete(&maps(&ns)).query("fieldSelector", selector).bearer(&token);
        api.send(call).await.refused_with(
            403,
            "Forbidden",
            "cannot deletecollection resource \"configmaps\"",
        );
    }
    api.send(Call::delete(&format!("{}/other", maps(&ns))).bearer(&token)).await.is(403);
    api.send(Call::delete(&format!("{}/mine", maps(&ns))).bearer(&token)).await.ok();
    api.get(&format!("{}/other", maps(&ns))).await.ok();
}

async fn a_list_of_one_name_shows_no_other(api: Target) {
    let mut rights = rule(&[""], &["secrets"], &["get", "list", "watch"]);
    rights["resourceNames"] = json!(["mine"]);
    let (ns, token) = joe_here(&api, json!([rights])).await;
    let secrets = core(&ns, "secrets");
    for name in ["mine", "mine-too", "other"] {
        api.post(&secrets, json!({"metadata": {"name": name}})).await.created();
    }
    until_allowed(&api, Call::get(&format!("{secrets}/mine")).bearer(&token)).await;
    let list = |query: &str| Call::get(&format!("{secrets}?{query}")).bearer(&token);
    assert_eq!(api.send(list("fieldSelector=metadata.name%3Dmine")).await.names(), ["mine"]);
    for query in [
        // The first counts, for the right as for the list.
        "fieldSelector=metadata.name%3Dmine&fieldSelector=metadata.name%3Dother",
        "fieldSelector=metadata.name%3Dmine&fieldSelector=",
        "fieldSelector=metadata.name%3Dmine,metadata.name%3Dother",
        "fieldSelector=metadata.name%3Dmine&limit=1&continue=",
    ] {
        let answer = api.send(list(query)).await;
        assert!(answer.code != 200 || answer.names().iter().all(|name| name == "mine"), "{answer}");
    }
    for query in [
        "fieldSelector=metadata.name!%3Dmine",
        "fieldSelector=metadata.name%3Dother",
        "fieldSelector=&fieldSelector=metadata.name%3Dmine",
        "labelSelector=a%3Db",
        "watch=1",
        "watch=1&fieldSelector=metadata.name%3Dother",
    ] {
        api.send(list(query)).await.is(403);
    }
}
