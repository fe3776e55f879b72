//! Attacks by those who may write policies and little else: what follows from a policy is what its author could have made.

use std::sync::Arc;

use atoll_engine::placement::access::{Author, Question, Refused, Stamp, Verdict};
use atoll_engine::placement::affinity::ClusterFact;
use atoll_engine::placement::copies::Withheld;
use atoll_engine::placement::object::ObjectKey;
use atoll_engine::placement::{Change, Outcome, Placer};
use serde_json::{Value, json};

use crate::placement::{
    config_map, id, overriding, overriding_by, placed, policy, policy_by, ready, template, with_clusters,
};

fn by(name: &str) -> Stamp {
    Stamp::By(Arc::new(Author { username: name.to_owned(), ..Author::default() }))
}

/// Answers what is asked until nothing is: `may` says who may do what.
fn answered(placer: &mut Placer, key: &ObjectKey, may: impl Fn(&Question) -> bool) -> Outcome {
    loop {
        let outcome = placer.plan(key);
        let questions = placer.questions();
        if questions.is_empty() {
            return outcome;
        }
        for question in questions {
            let verdict = if may(&question) { Verdict::Allowed } else { Verdict::Denied("no".to_owned()) };
            placer.apply(Change::Verdict(question, verdict));
        }
    }
}

fn copies(outcome: &Outcome) -> Vec<&str> {
    let Outcome::Placed(placed) = outcome else { return Vec::new() };
    placed.copies.iter().filter(|(_, copy)| copy.object.is_ok()).map(|(id, _)| id.as_str()).collect()
}

fn role(name: &str) -> (ObjectKey, Change) {
    template(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": name, "namespace": "shop"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}))
}

fn all(api_version: &str, kind: &str) -> Value {
    json!({"resourceSelectors": [{"apiVersion": api_version, "kind": kind}]})
}

#[test]
fn nothing_is_copied_before_the_authors_rights_are_known_and_nothing_if_there_are_none() {
    let mut placer = with_clusters(&["one"]);
    placer.apply(policy_by(by("bob"), "shop/all", all("v1", "ConfigMap")));
    let (key, change) = config_map("c");
    placer.apply(change);
    assert_eq!(placer.plan(&key), Outcome::Undecided);
    let asked = placer.questions();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(placer.plan(&key), Outcome::Undecided);
    assert_eq!(placer.questions(), [], "it is asked once");
    placer.apply(Change::Verdict(asked[0].clone(), Verdict::Denied("no role".to_owned())));
    assert_eq!(placer.plan(&key), Outcome::Nowhere { preserve: false });
    let refused = placer.refusals();
    assert!(matches!(&refused[..], [one] if !one.overrides && one.policy.name == "all"), "{refused:?}");
    // He is given the right, and is asked about again from time to time.
    assert_eq!(placer.stale_questions(), asked);
    placer.apply(Change::Verdict(asked[0].clone(), Verdict::Allowed));
    let (next, outcome) = placer.plan_next().unwrap();
    assert_eq!((next, copies(&outcome)), (key, vec!["one"]));
}

#[test]
fn a_policy_without_an_author_changes_nothing_and_copies_stay() {
    let mut placer = with_clusters(&["one", "two"]);
    let spec = json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
        "placement": {"clusterAffinity": {"clusterNames": ["one"]}}});
    placer.apply(policy("shop/all", spec.clone()));
    let (key, change) = config_map("c");
    placer.apply(change);
    assert_eq!(copies(&placer.plan(&key)), ["one"]);
    // The same policy, moved by an unknown author; and another one without an author, which would take it.
    let mut moved = spec;
    moved["placement"]["clusterAffinity"]["clusterNames"] = json!(["two"]);
    placer.apply(policy_by(Stamp::Missing, "shop/all", moved.clone()));
    (moved["priority"], moved["preemption"]) = (9.into(), "Always".into());
    placer.apply(policy_by(Stamp::Missing, "shop/more", moved));
    assert_eq!(copies(&placer.plan(&key)), ["one"], "it stays where it is");
    let refused = placer.refusals();
    assert!(refused.iter().all(|one| one.why == Refused::NoAuthor) && refused.len() == 2, "{refused:?}");
}

#[test]
fn an_override_cannot_give_its_author_more_rights() {
    let mut placer = with_clusters(&["one"]);
    placer.apply(policy("shop/all", all("rbac.authorization.k8s.io/v1", "Role")));
    let (key, change) = role("reader");
    placer.apply(change);
    let everything = json!({"overriders": {"plaintext": [{"path": "/rules/0/verbs", "operator": "replace", "value": ["*"]}]}});
    placer.apply(overriding_by(by("bob"), "shop/more", everything.clone()));
    // He may write Roles, but not this one.
    let may = |question: &Question| match question {
        Question::Right(..) | Question::There(..) => true,
        Question::Content(_, _, object) => !object.contains("\"*\""),
    };
    let outcome = answered(&mut placer, &key, may);
    let Outcome::Placed(held) = &outcome else { panic!("{outcome:?}") };
    assert!(matches!(held.copies[&id("one")].object, Err(Withheld::Refused { .. })), "{held:?}");
    assert!(placer.refusals().iter().any(|one| one.overrides && one.policy.name == "more"));
    // Honest: the same from one who may.
    placer.apply(overriding_by(by("alice"), "shop/more", everything));
    assert_eq!(copies(&answered(&mut placer, &key, |_| true)), ["one"]);
    // One without a stamp freezes the copy as it is, rather than take the override off it.
    let rules = json!({"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}});
    placer.apply(overriding_by(Stamp::Missing, "shop/more", rules));
    let frozen = placed(&mut placer, &key);
    assert!(matches!(frozen.copies[&id("one")].object, Err(Withheld::Refused { .. })), "{frozen:?}");
}

#[test]
fn a_member_that_is_asked_too_gets_only_what_its_authors_may_make_there() {
    let mut placer = with_clusters(&["one"]);
    let asks = ClusterFact { asks_authors: true, ..ready() };
    placer.apply(Change::Cluster(id("two"), Some(asks)));
    placer.apply(policy_by(by("bob"), "shop/all", all("v1", "ConfigMap")));
    let asked = std::cell::RefCell::new(Vec::new());
    let there = |question: &Question| {
        let there = matches!(question, Question::There(..));
        asked.borrow_mut().extend(there.then(|| question.clone()));
        !there
    };
    for name in ["a", "b"] {
        let (key, change) = config_map(name);
        placer.apply(change);
        assert_eq!(copies(&answered(&mut placer, &key, there)), ["one"]);
    }
    assert_eq!(asked.borrow().len(), 1, "once for all objects of a kind in a namespace: {asked:?}");
    let [question] = asked.take().try_into().expect("one");
    placer.apply(Change::Verdict(question, Verdict::Allowed));
    let (_, outcome) = placer.plan_next().expect("what depends on it is planned again");
    assert_eq!(copies(&outcome), ["one", "two"]);
    // An override by one who may not there freezes the copy there, and no other.
    let mut placer = with_clusters(&["one"]);
    placer.apply(Change::Cluster(id("two"), Some(ClusterFact { asks_authors: true, ..ready() })));
    placer.apply(policy("shop/all", all("v1", "ConfigMap")));
    let (key, change) = config_map("a");
    placer.apply(change);
    assert_eq!(copies(&placer.plan(&key)), ["one", "two"], "who may do everything is not asked about");
    let rules = json!({"overriders": {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}});
    placer.apply(overriding_by(by("bob"), "shop/more", rules));
    assert_eq!(copies(&answered(&mut placer, &key, there)), ["one"]);
}

#[test]
fn a_role_is_brought_only_by_one_who_could_have_written_it() {
    let mut placer = with_clusters(&["one"]);
    placer.apply(policy_by(by("bob"), "shop/all", all("rbac.authorization.k8s.io/v1", "Role")));
    let (key, change) = role("reader");
    placer.apply(change);
    let outcome = answered(&mut placer, &key, |question| matches!(question, Question::Right(..)));
    assert_eq!(copies(&outcome), Vec::<&str>::new());
    let mut placer = with_clusters(&["one"]);
    placer.apply(policy_by(by("bob"), "shop/all", all("rbac.authorization.k8s.io/v1", "Role")));
    let (key, change) = role("reader");
    placer.apply(change);
    assert_eq!(copies(&answered(&mut placer, &key, |_| true)), ["one"]);
}

#[test]
fn dependencies_do_not_bring_secrets_that_the_author_may_not_have() {
    let mut placer = with_clusters(&["one"]);
    let mut spec = all("v1", "Pod");
    spec["propagateDeps"] = true.into();
    placer.apply(policy_by(by("bob"), "shop/pods", spec));
    let (pod, change) =
        template(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"},
        "spec": {"volumes": [{"secret": {"secretName": "keys"}}, {"configMap": {"name": "settings"}}]}}));
    placer.apply(change);
    let (keys, secret) = template(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "shop"}}),
    );
    let (settings, map) = config_map("settings");
    placer.apply(secret);
    placer.apply(map);
    let may = |question: &Question| !matches!(question, Question::Right(_, kind, _) if kind.kind == "Secret");
    assert_eq!(copies(&answered(&mut placer, &pod, may)), ["one"]);
    assert_eq!(copies(&answered(&mut placer, &settings, may)), ["one"]);
    assert_eq!(copies(&answered(&mut placer, &keys, may)), Vec::<&str>::new());
}

#[test]
fn a_policy_of_one_namespace_reaches_no_other_and_no_cluster_wide_object() {
    let mut placer = with_clusters(&["one"]);
    placer.apply(policy(
        "mine/all",
        json!({"resourceSelectors": [
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop"},
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "c"},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}]}),
    ));
    let (theirs, change) = config_map("c");
    placer.apply(change);
    let (role, change) =
        template(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "cluster-admin"}}));
    placer.apply(change);
    for key in [theirs, role] {
        assert_eq!(placer.plan(&key), Outcome::Nowhere { preserve: false }, "{key}");
    }
}

#[test]
fn what_the_hub_keeps_for_itself_is_never_a_template() {
    let mut placer = with_clusters(&["one"]);
    placer
        .apply(policy("everything", json!({"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}]})));
    for namespace in ["atoll-system", "karmada-cluster", "kube-system"] {
        let (key, change) = template(json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "paris", "namespace": namespace}, "data": {"token": "eA=="}}));
        placer.apply(change);
        assert_eq!(placer.plan(&key), Outcome::Nowhere { preserve: false }, "{key}");
    }
}

#[test]
fn an_override_that_breaks_an_object_is_said_and_stops_no_others() {
    let mut placer = with_clusters(&["one"]);
    placer.apply(policy("shop/all", all("v1", "ConfigMap")));
    let (key, change) = config_map("c");
    placer.apply(change);
    // The second would write into what the first has broken.
    let label = json!({"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]});
    for (path, value) in [("/metadata/labels", json!("x")), ("/metadata", json!(5)), ("", json!([]))] {
        let rules = json!({"overrideRules": [
            {"overriders": {"plaintext": [{"path": path, "operator": "add", "value": value}]}}, {"overriders": label}]});
        placer.apply(overriding("shop/broken", rules));
        let held = placed(&mut placer, &key);
        assert!(matches!(held.copies[&id("one")].object, Err(Withheld::Broken(_))), "{path}: {held:?}");
    }
}

#[test]
fn a_decision_about_a_template_that_was_replaced_does_not_hold() {
    let old = |uid: &str| {
        template(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop", "uid": uid}}),
        )
    };
    let mut placer = with_clusters(&["one"]);
    placer.apply(policy("shop/all", all("v1", "Secret")));
    let (key, change) = old("1");
    placer.apply(change);
    let decision = placed(&mut placer, &key).decision.unwrap();
    // Put back by a user, after the policy has gone and another Secret has come.
    for (uid, want) in [("1", vec!["one"]), ("2", vec![])] {
        let mut next = with_clusters(&["one"]);
        next.apply(Change::Recalled(key.clone(), Box::new(decision.clone())));
        next.apply(old(uid).1);
        assert_eq!(copies(&next.plan(&key)), want, "{uid}");
    }
}

#[test]
fn services_lose_external_ips_unless_the_operator_allows_them() {
    let service = || {
        template(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"externalIPs": ["192.0.2.1"], "ports": [{"port": 80}]}}),
        )
    };
    for (kept, want) in [(false, Value::Null), (true, json!(["192.0.2.2"]))] {
        let mut placer = Placer::with_external_ips(kept);
        placer.apply(Change::Cluster(id("one"), Some(ready())));
        placer.apply(policy("shop/all", all("v1", "Service")));
        let rules = json!({"overriders": {"plaintext": [{"path": "/spec/externalIPs", "operator": "replace", "value": ["192.0.2.2"]}]}});
        placer.apply(overriding("shop/steal", rules));
        let (key, change) = service();
        placer.apply(change);
        let copy = placed(&mut placer, &key).copies[&id("one")].object.clone().unwrap();
        assert_eq!(copy["spec"]["externalIPs"], want);
    }
}

#[test]
fn a_template_cannot_pretend_to_be_the_hubs_own_object_in_a_member() {
    let mut placer = with_clusters(&["one"]);
    placer.apply(policy("shop/all", all("v1", "ConfigMap")));
    let (key, change) = template(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop",
        "labels": {"atoll.dev/hub": "h", "app": "web"},
        "annotations": {"atoll.dev/adopted": "true", "atoll.dev/locality": "anywhere"}}}),
    );
    placer.apply(change);
    let copy = placed(&mut placer, &key).copies[&id("one")].object.clone().unwrap();
    assert_eq!(copy["metadata"]["labels"], json!({"app": "web"}));
    assert_eq!(copy["metadata"]["annotations"], json!({"atoll.dev/locality": "anywhere"}));
}
