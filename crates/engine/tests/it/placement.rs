//! Where templates go, and what their copies look like.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_engine::names::ClusterId;
use atoll_engine::placement::access::Stamp;
use atoll_engine::placement::affinity::{ClusterFact, Effect, Taint};
use atoll_engine::placement::copies::Withheld;
use atoll_engine::placement::object::ObjectKey;
use atoll_engine::placement::overrides::Overriding;
use atoll_engine::placement::policy::PolicyId;
use atoll_engine::placement::select::Nowhere;
use atoll_engine::placement::{Change, Outcome, Placed, Placer, Policy};
use serde_json::{Value, json};

pub(crate) fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}

pub(crate) fn ready() -> ClusterFact {
    ClusterFact { ready: true, ..ClusterFact::default() }
}

pub(crate) fn with_clusters(names: &[&str]) -> Placer {
    let mut placer = Placer::default();
    for name in names {
        placer.apply(Change::Cluster(id(name), Some(ready())));
    }
    placer
}

pub(crate) fn policy(name: &str, spec: Value) -> Change {
    policy_by(Stamp::Unchecked, name, spec)
}

pub(crate) fn policy_by(stamp: Stamp, name: &str, spec: Value) -> Change {
    let id = match name.split_once('/') {
        Some((namespace, name)) => PolicyId { namespace: Some(namespace.to_owned()), name: name.to_owned() },
        None => PolicyId { namespace: None, name: name.to_owned() },
    };
    let written = Arc::new(spec["placement"].clone());
    let spec = serde_json::from_value(spec).unwrap();
    Change::Policy(id, Some(Box::new(Policy { spec, written, stamp })))
}

pub(crate) fn overriding(name: &str, spec: Value) -> Change {
    overriding_by(Stamp::Unchecked, name, spec)
}

pub(crate) fn overriding_by(stamp: Stamp, name: &str, spec: Value) -> Change {
    let (namespace, name) = name.split_once('/').unwrap();
    let id = PolicyId { namespace: Some(namespace.to_owned()), name: name.to_owned() };
    let spec = serde_json::from_value(spec).unwrap();
    Change::Override(id, Some(Box::new(Overriding { spec, stamp })))
}

pub(crate) fn template(object: Value) -> (ObjectKey, Change) {
    let key = ObjectKey::of(&object).unwrap();
    (key.clone(), Change::Template(key, Some(Arc::new(object))))
}

pub(crate) fn config_map(name: &str) -> (ObjectKey, Change) {
    template(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}),
    )
}

fn deployment(replicas: i64) -> (ObjectKey, Change) {
    template(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7", "labels": {"tier": "front"}},
        "spec": {"replicas": replicas, "template": {"spec": {
            "serviceAccountName": "web",
            "containers": [{"name": "web", "image": "nginx:1", "args": ["-v"],
                "envFrom": [{"configMapRef": {"name": "settings"}}]}],
            "volumes": [{"name": "keys", "secret": {"secretName": "keys"}}],
        }}},
        "status": {"replicas": 9},
    }))
}

fn selecting(kind: &str) -> Value {
    let version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    json!([{"apiVersion": version, "kind": kind}])
}

pub(crate) fn placed(placer: &mut Placer, key: &ObjectKey) -> Placed {
    match placer.plan(key) {
        Outcome::Placed(placed) => *placed,
        other @ (Outcome::Nowhere { .. } | Outcome::Undecided) => panic!("{other:?}"),
    }
}

fn replicas(placed: &Placed) -> BTreeMap<&str, i64> {
    let copies = placed.copies.iter();
    copies
        .map(|(id, copy)| (id.as_str(), copy.object.as_ref().unwrap()["spec"]["replicas"].as_i64().unwrap()))
        .collect()
}

fn names(placed: &Placed) -> Vec<&str> {
    placed.copies.keys().map(ClusterId::as_str).collect()
}

#[test]
fn the_policy_with_the_higher_priority_then_the_closer_meaning_then_the_first_name_has_it() {
    let to = |cluster: &str| json!({"clusterAffinity": {"clusterNames": [cluster]}});
    let by_name = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    for (others, want) in [
        (
            vec![
                ("b", json!({"resourceSelectors": selecting("ConfigMap"), "placement": to("one")})),
                ("a", json!({"resourceSelectors": selecting("ConfigMap"), "placement": to("two")})),
            ],
            "two",
        ),
        (
            vec![
                ("a", json!({"resourceSelectors": selecting("ConfigMap"), "placement": to("one")})),
                ("b", json!({"resourceSelectors": by_name, "placement": to("two")})),
            ],
            "two",
        ),
        (
            vec![
                ("a", json!({"resourceSelectors": by_name, "placement": to("one")})),
                (
                    "b",
                    json!({"resourceSelectors": selecting("ConfigMap"), "priority": 1, "placement": to("two")}),
                ),
            ],
            "two",
        ),
        (
            vec![
                ("a", json!({"resourceSelectors": by_name, "priority": 9, "placement": to("one")})),
                ("shop/z", json!({"resourceSelectors": selecting("ConfigMap"), "placement": to("two")})),
            ],
            "two",
        ),
        (
            vec![
                ("other/a", json!({"resourceSelectors": by_name, "priority": 9, "placement": to("one")})),
                ("z", json!({"resourceSelectors": selecting("ConfigMap"), "placement": to("two")})),
            ],
            "two",
        ),
    ] {
        let mut placer = with_clusters(&["one", "two"]);
        for (name, spec) in &others {
            placer.apply(policy(name, spec.clone()));
        }
        let (key, settings) = config_map("settings");
        placer.apply(settings);
        assert_eq!(names(&placed(&mut placer, &key)), [want], "{others:?}");
    }
}

#[test]
fn only_a_policy_that_preempts_takes_a_template_from_another() {
    let mut placer = with_clusters(&["one", "two"]);
    let (key, settings) = config_map("settings");
    placer.apply(settings);
    let spec = |priority: i32, preemption: &str, to: &str| {
        json!({"resourceSelectors": selecting("ConfigMap"), "priority": priority, "preemption": preemption,
            "placement": {"clusterAffinity": {"clusterNames": [to]}}})
    };
    placer.apply(policy("low", spec(0, "Never", "one")));
    assert_eq!(names(&placed(&mut placer, &key)), ["one"]);
    placer.apply(policy("high", spec(5, "Never", "two")));
    assert_eq!(names(&placed(&mut placer, &key)), ["one"]);
    placer.apply(policy("high", spec(5, "Always", "two")));
    assert_eq!(names(&placed(&mut placer, &key)), ["two"]);
}

#[test]
fn a_template_stays_where_it_is_when_its_policy_goes_and_goes_when_it_goes() {
    let mut placer = with_clusters(&["one", "two"]);
    let (key, web) = deployment(2);
    placer.apply(web);
    placer.apply(policy(
        "all",
        json!({"resourceSelectors": selecting("Deployment"),
        "placement": {"clusterAffinity": {"clusterNames": ["one"]}}}),
    ));
    assert_eq!(replicas(&placed(&mut placer, &key)), BTreeMap::from([("one", 2)]));
    placer.apply(Change::Policy(PolicyId { namespace: None, name: "all".to_owned() }, None));
    let after = placed(&mut placer, &key);
    assert_eq!(after.decision.as_ref().unwrap().policy, None);
    assert_eq!(replicas(&after), BTreeMap::from([("one", 2)]));
    placer.apply(deployment(5).1);
    assert_eq!(replicas(&placed(&mut placer, &key)), BTreeMap::from([("one", 5)]), "it is still followed");
    placer.apply(Change::Template(key.clone(), None));
    assert_eq!(placer.plan(&key), Outcome::Nowhere { preserve: false });
}

#[test]
fn replicas_are_divided_by_weight_and_again_when_rescaled() {
    let weights = json!({"resourceSelectors": selecting("Deployment"), "placement": {
        "clusterAffinity": {"clusterNames": ["one", "two"]},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": [
                {"targetCluster": {"clusterNames": ["one"]}, "weight": 2},
                {"targetCluster": {"clusterNames": ["two"]}, "weight": 1}]}}}});
    let mut placer = with_clusters(&["one", "two", "three"]);
    placer.apply(policy("divide", weights));
    for (all, want) in [
        (3, vec![("one", 2), ("two", 1)]),
        (9, vec![("one", 6), ("two", 3)]),
        (1, vec![("one", 1)]),
        (0, vec![("one", 0), ("two", 0)]),
    ] {
        let (key, web) = deployment(all);
        placer.apply(web);
        assert_eq!(replicas(&placed(&mut placer, &key)), want.into_iter().collect(), "{all}");
    }
}

#[test]
fn aggregated_replicas_stay_together_where_most_of_them_are() {
    let spec = |names: Value| {
        json!({"resourceSelectors": selecting("Deployment"), "placement": {
        "clusterAffinity": {"clusterNames": names},
        "replicaScheduling": {"replicaDivisionPreference": "Aggregated"}}})
    };
    let mut placer = with_clusters(&["one", "two"]);
    let (key, web) = deployment(4);
    placer.apply(web);
    placer.apply(policy("together", spec(json!(["two"]))));
    assert_eq!(replicas(&placed(&mut placer, &key)), BTreeMap::from([("two", 4)]));
    placer.apply(policy("together", spec(json!(["one", "two"]))));
    assert_eq!(replicas(&placed(&mut placer, &key)), BTreeMap::from([("two", 4)]));
}

#[test]
fn taints_keep_new_copies_away_and_the_harder_ones_drive_out() {
    let mut placer = with_clusters(&["one", "two"]);
    let (key, settings) = config_map("settings");
    placer.apply(settings);
    placer.apply(policy("all", json!({"resourceSelectors": selecting("ConfigMap")})));
    assert_eq!(names(&placed(&mut placer, &key)), ["one", "two"]);
    let tainted = |effect| {
        let taint = Taint { key: "maintenance".to_owned(), value: String::new(), effect };
        Change::Cluster(id("two"), Some(ClusterFact { taints: vec![taint], ..ready() }))
    };
    placer.apply(tainted(Effect::NoSchedule));
    assert_eq!(names(&placed(&mut placer, &key)), ["one", "two"], "it is there already");
    let (late, change) = config_map("late");
    placer.apply(change);
    assert_eq!(names(&placed(&mut placer, &late)), ["one"]);
    placer.apply(tainted(Effect::NoExecute));
    assert_eq!(names(&placed(&mut placer, &key)), ["one"]);
    placer.apply(policy(
        "all",
        json!({"resourceSelectors": selecting("ConfigMap"), "placement":
        {"clusterTolerations": [{"key": "maintenance", "operator": "Exists"}]}}),
    ));
    assert_eq!(names(&placed(&mut placer, &key)), ["one", "two"]);
}

#[test]
fn the_first_group_of_clusters_that_fits_is_taken_and_none_says_why() {
    let mut placer = with_clusters(&["one", "two"]);
    let (key, settings) = config_map("settings");
    placer.apply(settings);
    placer.apply(policy("groups", json!({"resourceSelectors": selecting("ConfigMap"), "placement": {"clusterAffinities": [
        {"affinityName": "gone", "clusterNames": ["nine"]}, {"affinityName": "here", "clusterNames": ["two"]}]}})));
    let found = placed(&mut placer, &key);
    assert_eq!(
        (names(&found), found.decision.as_ref().unwrap().affinity.as_deref()),
        (vec!["two"], Some("here"))
    );
    assert_eq!(found.unknown.iter().collect::<Vec<_>>(), ["nine"]);
    placer.apply(policy(
        "groups",
        json!({"resourceSelectors": selecting("ConfigMap"), "placement": {
        "clusterAffinity": {"clusterNames": ["nine"]}}}),
    ));
    let none = placed(&mut placer, &key);
    assert!(none.copies.is_empty());
    let Some(why @ Nowhere::NoneFits(_)) = &none.nowhere else { panic!("{none:?}") };
    assert_eq!(why.text(), "0/2 clusters fit: one is not in clusterNames, two is not in clusterNames");
}

#[test]
fn clusters_are_spread_over_regions() {
    let mut placer = Placer::default();
    for (name, region) in [("a", "eu"), ("b", "eu"), ("c", "us"), ("d", "asia")] {
        let fact = ClusterFact { region: Some(region.to_owned()), ..ready() };
        placer.apply(Change::Cluster(id(name), Some(fact)));
    }
    let (key, settings) = config_map("settings");
    placer.apply(settings);
    let spread = |max: usize, min: usize, clusters: usize| {
        policy(
            "spread",
            json!({"resourceSelectors": selecting("ConfigMap"), "placement": {"spreadConstraints": [
            {"spreadByField": "region", "maxGroups": max, "minGroups": min},
            {"spreadByField": "cluster", "maxGroups": clusters}]}}),
        )
    };
    placer.apply(spread(2, 2, 2));
    let two = placed(&mut placer, &key);
    let regions: Vec<_> = names(&two);
    assert_eq!(regions, ["a", "d"], "the largest region first, then by name; one of each");
    placer.apply(spread(9, 4, 9));
    assert_eq!(
        placed(&mut placer, &key).nowhere,
        Some(Nowhere::TooFew { field: "region", wanted: 4, found: 3 })
    );
}

#[test]
fn what_a_workload_needs_goes_along_and_leaves_with_it() {
    let mut placer = with_clusters(&["one", "two"]);
    let (web, change) = deployment(1);
    placer.apply(change);
    let (settings, change) = config_map("settings");
    placer.apply(change);
    placer.apply(policy(
        "all",
        json!({"resourceSelectors": selecting("Deployment"), "propagateDeps": true,
        "placement": {"clusterAffinity": {"clusterNames": ["two"]}}}),
    ));
    let mut outcomes: BTreeMap<ObjectKey, Outcome> = std::iter::from_fn(|| placer.plan_next()).collect();
    let Some(Outcome::Placed(along)) = outcomes.remove(&settings) else { panic!("{outcomes:?}") };
    assert_eq!((names(&along), along.required_by.iter().collect::<Vec<_>>()), (vec!["two"], vec![&web]));
    let kinds: Vec<_> = placer.new_kinds().into_iter().map(|kind| kind.kind).collect();
    assert_eq!(kinds, ["Deployment", "ConfigMap", "Secret", "ServiceAccount"]);
    placer.apply(Change::Template(web, None));
    let outcomes: BTreeMap<ObjectKey, Outcome> = std::iter::from_fn(|| placer.plan_next()).collect();
    assert_eq!(outcomes[&settings], Outcome::Nowhere { preserve: false });
}

#[test]
fn a_copy_has_nothing_of_the_hubs_own_and_is_overridden_in_order() {
    let mut placer = with_clusters(&["one", "two"]);
    let (key, web) = deployment(1);
    placer.apply(web);
    placer.apply(policy("all", json!({"resourceSelectors": selecting("Deployment")})));
    placer.apply(overriding("shop/a", json!({"overrideRules": [{
        "targetCluster": {"clusterNames": ["one"]},
        "overriders": {
            "plaintext": [{"path": "/spec/template/spec/containers/0/image", "operator": "replace", "value": "plain:3"}],
            "imageOverrider": [{"component": "Tag", "operator": "replace", "value": "2"}],
            "argsOverrider": [{"containerName": "web", "operator": "add", "value": ["-x"]}],
            "labelsOverrider": [{"operator": "add", "value": {"where": "one"}}, {"operator": "remove", "value": {"tier": ""}}],
        }}]})));
    let found = placed(&mut placer, &key);
    let one = found.copies[&id("one")].object.clone().unwrap();
    assert_eq!(one["metadata"], json!({"name": "web", "namespace": "shop", "labels": {"where": "one"}}));
    assert_eq!(one["status"], Value::Null);
    let container = &one["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["args"]),
        (&json!("plain:3"), &json!(["-v", "-x"])),
        "plaintext comes last"
    );
    let two = found.copies[&id("two")].object.clone().unwrap();
    assert_eq!(two["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1");
    placer.apply(overriding(
        "shop/b",
        json!({"overriders": {"plaintext":
        [{"path": "/spec/nothing/here", "operator": "remove"}]}}),
    ));
    let broken = placed(&mut placer, &key);
    let why = broken.copies[&id("two")].object.clone().unwrap_err();
    assert!(matches!(&why, Withheld::Broken(broken) if broken.policy.name == "b"), "{why}");
}

#[test]
fn what_went_along_in_a_former_life_does_so_until_its_parent_is_known() {
    let mut placer = with_clusters(&["one"]);
    let (web, change) = deployment(1);
    placer.apply(change);
    placer.apply(policy("all", json!({"resourceSelectors": selecting("Deployment"), "propagateDeps": true})));
    let decision = placed(&mut placer, &web).decision.unwrap();

    let mut next = with_clusters(&["one"]);
    let (settings, change) = config_map("settings");
    next.apply(change);
    next.apply(Change::Recalled(web.clone(), Box::new(decision)));
    next.apply(Change::RecalledAlong(settings.clone(), [web.clone()].into()));
    assert_eq!(names(&placed(&mut next, &settings)), ["one"], "its parent has not been read yet");
    assert_eq!(next.plan(&web), Outcome::Nowhere { preserve: false }, "it was deleted meanwhile");
    assert_eq!(next.plan(&settings), Outcome::Nowhere { preserve: false });
}
