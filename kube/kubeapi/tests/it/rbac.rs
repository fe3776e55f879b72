//! Who may do what, and the words that say why.

use atoll_kubeapi::authn::User;
use atoll_kubeapi::rbac::{Attributes, Authorizer, Decision, Rule, Target, defaults, denial};
use serde_json::{Value, json};

fn user(name: &str, groups: &[&str]) -> User {
    User::authenticated(name, groups.iter().map(|&group| group.to_owned()))
}

fn on<'a>(group: &'a str, resource: &'a str, namespace: &'a str, name: &'a str) -> Target<'a> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Target::Resource { group, resource, subresource, namespace, name }
}

fn may(authorizer: &Authorizer, user: &User, verb: &str, target: Target<'_>) -> bool {
    authorizer.authorize(&Attributes { user, verb, target }).allows()
}

fn reason(authorizer: &Authorizer, user: &User, verb: &str, target: Target<'_>) -> String {
    match authorizer.authorize(&Attributes { user, verb, target }) {
        Decision::Allow { reason } | Decision::NoOpinion { reason } => reason,
    }
}

fn role(namespace: &str, name: &str, rules: &Value) -> Value {
    json!({ "metadata": { "namespace": namespace, "name": name }, "rules": rules })
}

fn binding(namespace: &str, name: &str, kind: &str, role: &str, subject: &Value) -> Value {
    json!({
        "metadata": { "namespace": namespace, "name": name },
        "roleRef": { "kind": kind, "name": role },
        "subjects": [subject],
    })
}

fn seeded() -> Authorizer {
    let mut authorizer = Authorizer::default();
    for (resource, object) in defaults::objects() {
        authorizer.put(resource, &object);
    }
    authorizer
}

#[test]
fn a_rule_allows_what_it_names_and_nothing_else() {
    let rules = json!([
        { "verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps", "pods/log"] },
        { "verbs": ["update"], "apiGroups": ["apps"], "resources": ["*/scale"] },
        { "verbs": ["*"], "apiGroups": ["batch"], "resources": ["*"] },
        { "verbs": ["delete"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"] },
    ]);
    let mut authorizer = Authorizer::default();
    authorizer.put("clusterroles", &json!({ "metadata": { "name": "r" }, "rules": rules }));
    let jane = user("jane", &[]);
    let subject = json!({ "kind": "User", "name": "jane" });
    authorizer.put("rolebindings", &binding("shop", "b", "ClusterRole", "r", &subject));
    for (verb, target, allowed) in [
        ("get", on("", "configmaps", "shop", "a"), true),
        ("list", on("", "configmaps", "shop", ""), true),
        ("watch", on("", "configmaps", "shop", ""), false),
        ("get", on("", "configmaps", "other", "a"), false),
        ("list", on("", "configmaps", "", ""), false),
        ("get", on("apps", "configmaps", "shop", "a"), false),
        ("get", on("", "pods/log", "shop", "a"), true),
        ("get", on("", "pods", "shop", "a"), false),
        ("update", on("apps", "deployments/scale", "shop", "a"), true),
        ("update", on("apps", "deployments", "shop", "a"), false),
        ("update", on("apps", "deployments/upscale", "shop", "a"), false),
        ("deletecollection", on("batch", "jobs/status", "shop", ""), true),
        ("delete", on("", "secrets", "shop", "one"), true),
        ("delete", on("", "secrets", "shop", "two"), false),
        ("delete", on("", "secrets", "shop", ""), false),
        ("get", Target::Path("/version"), false),
    ] {
        assert_eq!(may(&authorizer, &jane, verb, target), allowed, "{verb} {target:?}");
    }
    assert!(!may(&authorizer, &user("joe", &[]), "get", on("", "configmaps", "shop", "a")));
}

#[test]
fn reasons_name_binding_role_and_subject() {
    let mut authorizer = Authorizer::default();
    let all = json!([{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }]);
    authorizer.put("roles", &role("shop", "all", &all));
    authorizer.put("clusterroles", &role("", "all", &all));
    let account = json!({ "kind": "ServiceAccount", "name": "web" });
    authorizer.put("rolebindings", &binding("shop", "b", "Role", "all", &account));
    let group = json!({ "kind": "Group", "name": "dev" });
    authorizer.put("clusterrolebindings", &binding("", "c", "ClusterRole", "all", &group));
    let target = on("", "configmaps", "shop", "a");
    let web = User::service_account("shop", "web", "u");
    assert_eq!(
        reason(&authorizer, &web, "get", target),
        r#"RBAC: allowed by RoleBinding "b/shop" of Role "all" to ServiceAccount "web/shop""#
    );
    assert_eq!(
        reason(&authorizer, &user("jane", &["dev"]), "get", target),
        r#"RBAC: allowed by ClusterRoleBinding "c" of ClusterRole "all" to Group "dev""#
    );
    let elsewhere = User::service_account("other", "web", "u");
    assert!(!may(&authorizer, &elsewhere, "get", target));
    authorizer.remove("roles", "shop", "all");
    assert_eq!(
        authorizer.authorize(&Attributes { user: &web, verb: "get", target }),
        Decision::NoOpinion { reason: r#"RBAC: role.rbac.authorization.k8s.io "all" not found"#.into() }
    );
    authorizer.remove("rolebindings", "shop", "b");
    assert_eq!(reason(&authorizer, &web, "get", target), "");
}

#[test]
fn refusals_are_worded_as_the_real_server_does() {
    let jane = user("jane", &[]);
    let said = |verb, target, reason| denial(&Attributes { user: &jane, verb, target }, reason);
    assert_eq!(
        said("list", on("", "pods/log", "shop", ""), ""),
        r#"User "jane" cannot list resource "pods/log" in API group "" in the namespace "shop""#
    );
    assert_eq!(
        said("get", on("apps", "deployments", "", "web"), "RBAC: x"),
        r#"User "jane" cannot get resource "deployments" in API group "apps" at the cluster scope: RBAC: x"#
    );
    assert_eq!(said("get", Target::Path("/a<b>"), ""), r#"User "jane" cannot get path "/a&lt;b&gt;""#);
}

#[test]
fn default_roles_let_everybody_discover_and_only_masters_do_all() {
    let authorizer = seeded();
    let (jane, nobody) = (user("jane", &[]), User::anonymous());
    for (path, known, unknown) in [
        ("/version", true, true),
        ("/healthz", true, true),
        ("/apis/apps/v1", true, false),
        ("/metrics", false, false),
    ] {
        assert_eq!(may(&authorizer, &jane, "get", Target::Path(path)), known, "{path}");
        assert_eq!(may(&authorizer, &nobody, "get", Target::Path(path)), unknown, "{path}");
    }
    let review = on("authorization.k8s.io", "selfsubjectaccessreviews", "", "");
    assert!(may(&authorizer, &jane, "create", review));
    assert!(!may(&authorizer, &nobody, "create", review));
    let secrets = on("", "secrets", "", "");
    assert!(!may(&authorizer, &jane, "list", secrets));
    assert!(may(&authorizer, &user("root", &["system:masters"]), "list", secrets));
    assert_eq!(reason(&authorizer, &user("root", &["system:masters"]), "list", secrets), "");
}

#[test]
fn view_sees_no_secrets_and_edit_grants_nothing() {
    let mut authorizer = seeded();
    for (name, role) in [("viewer", "view"), ("editor", "edit"), ("boss", "admin")] {
        let subject = json!({ "kind": "User", "name": name });
        authorizer.put("rolebindings", &binding("shop", name, "ClusterRole", role, &subject));
    }
    let rolebindings = on("rbac.authorization.k8s.io", "rolebindings", "shop", "");
    for (name, secrets, writes, grants) in
        [("viewer", false, false, false), ("editor", true, true, false), ("boss", true, true, true)]
    {
        let user = user(name, &[]);
        assert!(may(&authorizer, &user, "list", on("", "configmaps", "shop", "")), "{name}");
        assert_eq!(may(&authorizer, &user, "list", on("", "secrets", "shop", "")), secrets, "{name}");
        assert_eq!(
            may(&authorizer, &user, "create", on("apps", "deployments", "shop", "")),
            writes,
            "{name}"
        );
        assert_eq!(may(&authorizer, &user, "create", rolebindings), grants, "{name}");
        assert!(!may(&authorizer, &user, "list", on("", "configmaps", "other", "")), "{name}");
    }
    let mine = json!({
        "metadata": { "name": "mine", "labels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
        "rules": [{ "verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"] }],
    });
    authorizer.put("clusterroles", &mine);
    for name in ["viewer", "editor", "boss"] {
        assert!(
            may(&authorizer, &user(name, &[]), "get", on("example.com", "things", "shop", "a")),
            "{name}"
        );
    }
    let gathered = authorizer.aggregated("admin").unwrap();
    assert!(gathered.iter().any(|rule| rule.api_groups == ["example.com"]));
    assert_eq!(authorizer.aggregating().collect::<Vec<_>>(), ["admin", "edit", "view"]);
}

#[test]
fn roles_that_gather_each_other_end() {
    let mut authorizer = Authorizer::default();
    for name in ["a", "b"] {
        authorizer.put(
            "clusterroles",
            &json!({
                "metadata": { "name": name, "labels": { "x": "y" } },
                "aggregationRule": { "clusterRoleSelectors": [
                    { "matchExpressions": [{ "key": "x", "operator": "Exists" }] },
                ] },
            }),
        );
    }
    let own = json!({ "metadata": { "name": "c", "labels": { "x": "" } }, "rules": [{ "verbs": ["get"] }] });
    authorizer.put("clusterroles", &own);
    assert_eq!(authorizer.aggregated("a").unwrap().len(), 1);
    assert_eq!(authorizer.aggregated("c"), None);
}

#[test]
fn nobody_grants_what_they_do_not_have() {
    let mut authorizer = seeded();
    let subject = json!({ "kind": "User", "name": "jane" });
    authorizer.put("rolebindings", &binding("shop", "b", "ClusterRole", "view", &subject));
    let jane = user("jane", &["dev"]);
    let rules = |rules: Value| serde_json::from_value::<Vec<Rule>>(rules).unwrap();
    let own = rules(
        json!([{ "verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "deployments"] }]),
    );
    let refused = authorizer.uncovered(&jane, "shop", &own).unwrap_err().to_string();
    assert_eq!(
        refused,
        "user \"jane\" (groups=[\"dev\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"deployments\"], Verbs:[\"get\" \"list\"]}\n\
         {APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}"
    );
    let own = rules(
        json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods", "pods/log"], "resourceNames": ["a"] }]),
    );
    assert_eq!(authorizer.uncovered(&jane, "shop", &own), Ok(()));
    assert!(
        authorizer.uncovered(&jane, "", &own).is_err(),
        "what is held in one namespace isn't held everywhere"
    );
    let path = rules(json!([{ "verbs": ["get"], "nonResourceURLs": ["/healthz", "/metrics"] }]));
    let refused = authorizer.uncovered(&jane, "shop", &path).unwrap_err().to_string();
    assert!(refused.ends_with("\n{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}"), "{refused}");
}
