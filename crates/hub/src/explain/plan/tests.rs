use std::collections::BTreeMap;

use atoll_engine::facts::{Capabilities, Settings};
use atoll_engine::memory::Memory;
use atoll_engine::names::ClusterId;
use atoll_engine::network::Family;
use atoll_engine::world::Change;
use atoll_member::imagine::Imagined;
use serde_json::json;

use super::*;
use crate::services::fences;

const NOW: Time = Time::from_secs(1_700_000_000);

fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}

/// A clusterset in which what members say counts at once.
struct Set(Engine, BTreeMap<String, Imagined>);

impl Set {
    /// Paris, tokyo and lima, with namespace `shop`; only lima lacks `bank`.
    fn new() -> Self {
        let mut set = Self(Engine::new(Settings::default(), Memory::new()), BTreeMap::new());
        set.0.set_intents(BTreeMap::new());
        let capabilities = Capabilities { families: vec![Family::V4], kubernetes_minor: 36 };
        for name in ["paris", "tokyo", "lima"] {
            let _ = set.0.apply(&id(name), Change::Joined);
            let _ = set.0.apply(&id(name), Change::Heard(capabilities.clone()));
            set.apply(name, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
        }
        for name in ["paris", "tokyo"] {
            set.apply(name, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bank"}}));
        }
        set
    }

    /// With the service `shop/web` of paris, at 10.1.0.1.
    fn with_web() -> Self {
        let mut set = Self::new();
        for object in [web("shop"), slice("shop", &["10.1.0.1"]), export("shop")] {
            set.apply("paris", &object);
        }
        set
    }

    fn apply(&mut self, cluster: &str, object: &Value) {
        let mut tell = Vec::new();
        let world = self.0.world();
        let member = self.1.entry(cluster.to_owned());
        let member = member.or_insert_with(|| Imagined::of(world, &id(cluster), "hub".into(), NOW));
        member.applied(object, &mut tell).unwrap();
        for change in tell {
            let _ = self.0.apply(&id(cluster), change);
        }
        let _ = self.0.plan_dirty(NOW);
    }

    #[allow(clippy::needless_pass_by_value)] // a request is written where it is used
    fn ask(&self, request: Value) -> Result<PlanAnswer, String> {
        let request: PlanRequest = read(Some(&request))
            .map_err(|answered| answered.body["message"].as_str().unwrap_or_default().to_owned())?;
        let engine = self.0.copy(namespaces(&request).as_ref());
        let setting = Setting { hub: "hub".into(), balances: true, now: NOW };
        suppose(engine, None, &request, setting)
            .map(|outcome| answer(outcome, NOW))
            .map_err(|why| why.to_string())
    }

    /// What it says of objects in members, endpoints and conflicts, in short.
    #[allow(clippy::needless_pass_by_value)] // a request is written where it is used
    fn says(&self, request: Value) -> Vec<String> {
        lines(&self.ask(request).unwrap())
    }
}

fn lines(answer: &PlanAnswer) -> Vec<String> {
    let mut lines = Vec::new();
    for cluster in &answer.clusters {
        let at = &cluster.cluster;
        for one in &cluster.objects {
            let fields: Vec<String> =
                one.fields.iter().map(|f| format!("{}: {} -> {}", f.field, f.before, f.after)).collect();
            let name = if one.kind == "EndpointSlice" { "" } else { &one.name };
            lines.push(format!("{at} {} {} {name} {}", one.change.mark(), one.kind, fields.join("; ")));
        }
        for one in &cluster.endpoints {
            let awaited = if one.awaited { " awaited" } else { "" };
            let [added, changed, removed] =
                [&one.added, &one.changed, &one.removed].map(|list| list.join(","));
            lines.push(format!("{at} {} +{added} ~{changed} -{removed}{awaited}", one.source));
        }
        for one in &cluster.conditions {
            let say = |one: &Option<atoll_api::explain::plan::Condition>| {
                one.as_ref().map_or("none".to_owned(), |one| format!("{}/{}", one.status, one.reason))
            };
            lines.push(format!("{at} {} {} -> {}", one.condition, say(&one.before), say(&one.after)));
        }
        for one in &cluster.problems {
            lines.push(format!("{at} ! {:?}", one.remark.code));
        }
    }
    for one in &answer.conflicts {
        lines.push(format!("{} {:?} won by {}", one.change.mark(), one.remark.code, one.winner));
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

fn web(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": namespace},
        "spec": {"ports": [{"name": "http", "port": 80}]}})
}

fn slice(namespace: &str, addresses: &[&str]) -> Value {
    let endpoints: Vec<Value> =
        addresses.iter().map(|one| json!({"addresses": [one], "conditions": {"ready": true}})).collect();
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "web-1", "namespace": namespace, "labels": {"kubernetes.io/service-name": "web"}},
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}], "endpoints": endpoints})
}

fn export(namespace: &str) -> Value {
    json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": "web", "namespace": namespace}})
}

fn apply(cluster: &str, objects: &[Value]) -> Value {
    let change = |object: &Value| json!({"cluster": cluster, "action": "Apply", "object": object});
    json!({"changes": objects.iter().map(change).collect::<Vec<_>>()})
}

fn delete(cluster: &str, object: &Value) -> Value {
    json!({"changes": [{"cluster": cluster, "action": "Delete", "object": object}]})
}

#[test]
fn an_export_of_a_service_that_the_hub_does_not_know_uses_what_is_sent_along() {
    let set = Set::new();
    let mut request = apply("paris", &[export("shop")]);
    assert!(set.says(request.clone()).contains(&"paris Valid none -> False/NoService".to_owned()));
    request["current"] = json!([
        {"cluster": "paris", "object": web("shop")}, {"cluster": "paris", "object": slice("shop", &["10.1.0.1"])},
    ]);
    let answer = set.ask(request).unwrap();
    let lines = lines(&answer);
    for member in ["paris", "tokyo", "lima"] {
        for line in ["+ Service derived-web", "+ ServiceImport web", "+ EndpointSlice", "paris +10.1.0.1 ~ -"]
        {
            let line = format!("{member} {line}");
            assert!(lines.contains(&line), "{line} in {lines:#?}");
        }
    }
    assert!(lines.contains(&"paris Ready none -> True/Exported".to_owned()), "{lines:#?}");
    assert_eq!((answer.summary.made, answer.summary.endpoints_added, answer.summary.deleted), (9, 3, 0));
    assert!(answer.summary.changes() && answer.ignored.is_empty());
}

#[test]
fn endpoints_that_cannot_be_known_are_awaited_and_not_guessed() {
    let lines = Set::new().says(apply("paris", &[web("shop"), export("shop")]));
    assert!(lines.contains(&"tokyo paris + ~ - awaited".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"tokyo + Service derived-web".to_owned()), "{lines:#?}");
}

#[test]
fn what_is_there_already_changes_nothing() {
    let set = Set::with_web();
    let answer =
        set.ask(apply("paris", &[web("shop"), slice("shop", &["10.1.0.1"]), export("shop")])).unwrap();
    assert_eq!(lines(&answer), Vec::<String>::new());
    assert!(!answer.summary.changes());
    assert!(!set.ask(json!({})).unwrap().summary.changes());
}

#[test]
fn a_slice_that_changes_is_one_change_per_importer() {
    let lines = Set::with_web().says(apply("paris", &[slice("shop", &["10.1.0.2", "10.1.0.3"])]));
    let of = |member: &str| {
        [
            format!("{member} ~ EndpointSlice  endpoints: 1 -> 2"),
            format!("{member} paris +10.1.0.2,10.1.0.3 ~ -10.1.0.1"),
        ]
    };
    assert_eq!(lines, [of("lima"), of("paris"), of("tokyo")].concat());
}

#[test]
fn a_deleted_export_service_or_namespace_takes_away_what_it_brought() {
    let set = Set::with_web();
    let whole = ["- Service derived-web", "- ServiceImport web", "- EndpointSlice", "paris + ~ -10.1.0.1"];
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    for (object, of_tokyo) in [(export("shop"), &whole[..]), (web("shop"), &whole), (namespace, &whole)] {
        let lines = set.says(delete("paris", &object));
        for line in of_tokyo {
            assert!(lines.contains(&format!("tokyo {line}")), "{object}: {line} in {lines:#?}");
        }
    }
    let kept = set.says(delete("tokyo", &export("shop")));
    assert_eq!(kept, Vec::<String>::new(), "tokyo exports nothing");
}

#[test]
fn a_namespace_that_an_importer_lacks_is_a_problem_until_it_is_made() {
    let mut set = Set::new();
    let all = [web("bank"), slice("bank", &["10.1.0.1"]), export("bank")];
    let answer = set.ask(apply("paris", &all)).unwrap();
    assert!(lines(&answer).contains(&"lima ! NoNamespace".to_owned()), "{:#?}", lines(&answer));
    assert_eq!(answer.summary.problems, 1);
    all.iter().for_each(|object| set.apply("paris", object));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bank"}});
    let lines = set.says(apply("lima", &[namespace]));
    assert!(lines.contains(&"lima + Service derived-web".to_owned()), "{lines:#?}");
    assert!(
        !lines.iter().any(|line| line.contains("NoNamespace") || line.starts_with("tokyo")),
        "{lines:#?}"
    );
}

#[test]
fn a_conflict_that_arises_names_the_winner_and_one_that_ends_is_said_too() {
    let mut set = Set::with_web();
    let mut other = web("shop");
    other["spec"]["ports"][0]["port"] = 81.into();
    let both = [other, export("shop")];
    let lines = set.says(apply("tokyo", &both));
    assert!(lines.contains(&"+ PortConflict won by paris".to_owned()), "{lines:#?}");
    assert!(
        lines.contains(&"paris Conflict False/NoConflicts -> True/PortConflict".to_owned()),
        "{lines:#?}"
    );
    both.iter().for_each(|object| set.apply("tokyo", object));
    let lines = set.says(delete("tokyo", &export("shop")));
    assert!(lines.contains(&"- PortConflict won by paris".to_owned()), "{lines:#?}");
}

#[test]
fn a_member_that_is_unjoined_loses_all_and_others_lose_its_endpoints() {
    let lines = Set::with_web().says(json!({"without": ["paris"]}));
    for line in ["paris - ServiceImport web", "tokyo - Service derived-web", "lima paris + ~ -10.1.0.1"] {
        assert!(lines.contains(&line.to_owned()), "{line} in {lines:#?}");
    }
}

#[test]
fn a_sharing_policy_closes_and_its_end_opens_again() {
    let policy = |into: &[&str]| {
        json!({"apiVersion": "atoll.dev/v1alpha1", "kind": "SharingPolicy", "metadata": {"name": "shop"},
            "spec": {"namespaces": ["shop"], "exportFrom": ["*"], "importInto": into}})
    };
    let mut set = Set::with_web();
    let hub = |action: &str, object: Value| json!({"changes": [{"action": action, "object": object}]});
    let lines = set.says(hub("Apply", policy(&["paris", "lima"])));
    assert!(lines.contains(&"tokyo - ServiceImport web".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"tokyo ! NotAllowed".to_owned()) && !lines[0].starts_with("lima"), "{lines:#?}");
    let closed = fences::read(&serde_json::from_value(policy(&["paris"])).unwrap());
    set.0.set_fences(atoll_engine::fences::Fences { policies: vec![closed], ..Default::default() });
    let _ = set.0.plan_dirty(NOW);
    for (action, object) in [("Delete", policy(&[])), ("Apply", policy(&["*"]))] {
        let mut request = hub(action, object);
        request["current"] = json!([{"object": policy(&["paris"])}]);
        let lines = set.says(request);
        for member in ["tokyo", "lima"] {
            assert!(lines.contains(&format!("{member} + ServiceImport web")), "{action} {lines:#?}");
        }
    }
}

#[test]
fn a_multi_cluster_service_brings_what_its_providers_are_known_to_have() {
    let mcs = json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"types": ["CrossCluster"], "providerClusters": [{"name": "paris"}], "consumerClusters": [{"name": "tokyo"}, {"name": "oslo"}]}});
    let answer = Set::with_web().ask(json!({"changes": [{"action": "Apply", "object": mcs}]})).unwrap();
    let fields: Vec<_> = answer.hub[0].fields.iter().map(|one| (&*one.field, &*one.after)).collect();
    assert_eq!(fields, [("providers", "paris"), ("consumers", "tokyo")]);
    assert!(answer.hub[0].remarks.iter().any(|one| one.message.contains("oslo")), "{answer:#?}");
}

#[test]
fn what_atoll_does_not_read_is_named_and_what_can_not_be_read_is_an_error() {
    let set = Set::with_web();
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}});
    let answer = set.ask(apply("paris", &[config])).unwrap();
    assert!(!answer.summary.changes());
    assert_eq!(answer.ignored[0].object, "ConfigMap shop/a");
    let named = |name: &str| {
        let mut object = web("shop");
        object["metadata"]["name"] = name.into();
        object
    };
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    for (request, want) in [
        (apply("oslo", &[web("shop")]), "`oslo` is not a member of this clusterset"),
        (apply("paris", &[named("No Name")]), "Service shop/No Name (in paris): "),
        (apply("paris", &[named(&"x".repeat(100_000))]), "Service shop/xxxx"),
        (
            apply("paris", &[json!({"apiVersion": "v1", "kind": "Service"})]),
            "Service without a name (in paris): ",
        ),
        (
            apply("paris", &[json!({"apiVersion": "v1", "kind": "Service", "metadata": 3, "spec": deep})]),
            "Service without",
        ),
        (json!({"change": []}), "not a PlanRequest: unknown field `change`"),
        (json!({"without": ["oslo"]}), "`oslo` is not a member"),
        (apply("paris", &vec![web("shop"); OBJECTS + 1]), "the request has 2001 objects"),
        (apply("paris", &[named(&"x".repeat(BYTES))]), "the request has more than 8 MB"),
    ] {
        let error = set.ask(request).unwrap_err();
        assert!(error.starts_with(want) && error.len() < 1000, "{want:?} is not in {error:.200}");
    }
    let error = read(None).unwrap_err();
    assert_eq!(error.status, 400);
}
