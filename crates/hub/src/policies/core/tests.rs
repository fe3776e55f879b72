//! What is written when, without a hub's API.

use super::*;
use crate::options::Unstamped;
use crate::policies::Stamps;

const NOW: &str = "2026-01-01T00:00:00Z";

fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}

fn see(propagator: &mut Propagator, source: Source, object: Value) -> ObjectKey {
    let key = ObjectKey::of(&object).unwrap();
    propagator.take(Event::Seen(source, key.clone(), Some(Box::new(object))), NOW);
    key
}

fn propagator() -> Propagator {
    let rules = Rules {
        namespace: "atoll-system".to_owned(),
        sync_namespaces: false,
        external_ips: false,
        stamps: Stamps { genuine: true, unstamped: Unstamped::Allow },
        ask_again: Duration::from_secs(60),
    };
    Propagator::new(rules, Sealer::new(b"key", false))
}

/// Two members that run, a policy that brings every `ConfigMap` to both, and one `ConfigMap`; its binding is written.
fn bound() -> (Propagator, ObjectKey) {
    let mut propagator = propagator();
    Source::FIXED.into_iter().for_each(|source| propagator.take(Event::Listed(source), NOW));
    for name in ["a", "b"] {
        let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {"syncMode": "Push"}});
        see(&mut propagator, Source::Clusters, cluster);
        propagator.take(Event::Started(id(name)), NOW);
    }
    let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}]}});
    see(&mut propagator, Source::Propagation(Scope::Namespace), policy);
    let kind = Kind::new("v1", "ConfigMap");
    // What it says of imports is another's subject.
    let mut first = propagator.work(NOW);
    first.retain(|command| !matches!(command, Command::Imports(_)));
    assert_eq!(first, [Command::Watch(kind.clone())]);
    let template =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}});
    let key = see(&mut propagator, Source::Templates(kind.clone()), template);
    propagator.take(Event::Listed(Source::Templates(kind)), NOW);
    let commands = propagator.work(NOW);
    let [Command::PutBinding { object, .. }] = &commands[..] else { panic!("{commands:?}") };
    propagator.take(Event::Written(key.clone(), object.clone()), NOW);
    let ordered = propagator.work(NOW);
    assert!(matches!(&ordered[..], [Command::Order(..), Command::Order(..)]), "{ordered:?}");
    (propagator, key)
}

fn applied(propagator: &mut Propagator, by: &str, key: &ObjectKey) -> Vec<Command> {
    let state = CopyState::Applied { status: Value::Null, healthy: None };
    propagator.take(Event::Copy(id(by), CopyReport { key: key.clone(), state }), NOW);
    propagator.work(NOW)
}

/// The word of the condition `FullyApplied` in the one status that is written.
fn shown(commands: &[Command]) -> (&str, &str) {
    let [Command::PutStatus(_, status)] = commands else { panic!("{commands:?}") };
    let fully = &status["conditions"][1];
    (fully["status"].as_str().unwrap(), fully["message"].as_str().unwrap())
}

#[test]
fn a_template_costs_the_hub_one_binding_and_one_status() {
    let (mut propagator, key) = bound();
    assert_eq!(applied(&mut propagator, "a", &key), [], "b runs, and will say something");
    let commands = applied(&mut propagator, "b", &key);
    assert_eq!(shown(&commands).0, "True");
    assert!(!propagator.waits());
    assert_eq!(applied(&mut propagator, "b", &key), [], "nothing new");
}

#[test]
fn a_member_that_runs_and_says_nothing_is_named_after_a_while() {
    let (mut propagator, key) = bound();
    applied(&mut propagator, "a", &key);
    assert!(propagator.waits());
    propagator.take(Event::Waited, NOW);
    assert_eq!(propagator.work(NOW), [], "it may have been a moment only");
    propagator.take(Event::Waited, NOW);
    let commands = propagator.work(NOW);
    assert_eq!(shown(&commands), ("False", "b: the cluster has not reported yet"));
    assert!(!propagator.waits());
    assert_eq!(shown(&applied(&mut propagator, "b", &key)).0, "True");
}

#[test]
fn a_member_that_does_not_run_is_not_waited_for() {
    let (mut propagator, key) = bound();
    propagator.take(Event::Stopped(id("b")), NOW);
    let commands = applied(&mut propagator, "a", &key);
    assert_eq!(shown(&commands), ("False", "b: the cluster has not reported yet"));
}

/// A binding of the `ConfigMap` shop/`name`, with its seal.
fn sealed(name: &str, cluster: &str) -> Value {
    let mut binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": format!("{name}-configmap"), "namespace": "shop", "uid": "u",
            "annotations": {"atoll.dev/holders": cluster}},
        "spec": {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name},
            "placement": {}, "clusters": [{"name": cluster}]}});
    Sealer::new(b"key", false).seal(&mut binding);
    binding
}

fn of_binding(name: &str) -> ObjectKey {
    let kind = Kind::new("work.karmada.io/v1alpha2", "ResourceBinding");
    ObjectKey { kind, namespace: "shop".to_owned(), name: format!("{name}-configmap") }
}

#[test]
fn a_forged_binding_copies_nothing_and_deletes_nothing() {
    let mut forged = sealed("theirs", "a");
    forged["spec"]["resource"]["kind"] = "Secret".into();
    forged["metadata"]["name"] = "theirs-secret".into();
    let mut unsealed = sealed("d", "a");
    unsealed["metadata"]["annotations"].as_object_mut().unwrap().remove("atoll.dev/seal");
    let mut more = sealed("e", "a");
    more["spec"]["clusters"] = json!([{"name": "a"}, {"name": "b"}]);
    for binding in [forged, unsealed, more] {
        let (mut propagator, _) = bound();
        see(&mut propagator, Source::Bindings(Scope::Namespace), binding.clone());
        let commands = propagator.work(NOW);
        assert!(
            matches!(&commands[..], [Command::Tell { reason: "BindingNotBelieved", warning: true, .. }]),
            "{binding:#} {commands:?}"
        );
        propagator.take(Event::Started(id("a")), NOW);
        let orders: Vec<_> = propagator.work(NOW);
        assert!(
            orders.iter().all(|one| matches!(one, Command::Order(_, key, _) if key.name == "c")),
            "{orders:?}"
        );
    }
    // Honest: what the hub wrote is known again, and what no policy wants any more is dropped.
    let (mut propagator, _) = bound();
    see(&mut propagator, Source::Bindings(Scope::Namespace), sealed("d", "a"));
    let commands = propagator.work(NOW);
    let dropped = |one: &Command| matches!(one, Command::Order(_, key, Order::Drop) if key.name == "d");
    assert!(commands.iter().any(dropped), "{commands:?}");
}

#[test]
fn what_was_forged_in_its_place_leaves_no_trace_in_the_hubs_own_binding() {
    let (mut propagator, key) = bound();
    let mut forged = sealed("c", "b");
    forged["metadata"]["annotations"]["atoll.dev/holders"] = "a,b,elsewhere".into();
    see(&mut propagator, Source::Bindings(Scope::Namespace), forged);
    let commands = propagator.work(NOW);
    let put = commands.iter().find_map(|one| match one {
        Command::PutBinding { of, object, anew: true, .. } if *of == key => Some(object.clone()),
        _ => None,
    });
    let put = put.unwrap_or_else(|| panic!("{commands:?}"));
    assert_eq!(put["metadata"]["annotations"]["atoll.dev/holders"], "a,b");
    assert!(Sealer::new(b"key", false).believe(&of_binding("c"), &put).is_ok());
    // Until that is done every newer one replaces it too; then none has to.
    propagator.take(Event::Written(key, put), NOW);
    assert!(!propagator.work(NOW).iter().any(|one| matches!(one, Command::PutBinding { .. })));
}

#[test]
fn a_forged_binding_that_a_user_deletes_is_let_go_of() {
    let (mut propagator, _) = bound();
    let mut forged = sealed("d", "a");
    forged["metadata"]["annotations"]["atoll.dev/seal"] = "00".into();
    forged["metadata"]["deletionTimestamp"] = NOW.into();
    see(&mut propagator, Source::Bindings(Scope::Namespace), forged);
    let commands = propagator.work(NOW);
    assert!(commands.contains(&Command::DeleteBinding(of_binding("d"))), "{commands:?}");
}

#[test]
fn a_question_about_a_template_is_answered_with_policies_clusters_and_copies() {
    use atoll_api::names::code::Code;

    let (mut propagator, key) = bound();
    let policy = |name: &str, priority: i32| {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"priority": priority, "placement": {"clusterAffinity": {"clusterNames": ["a"]}},
                "preemption": if priority > 5 { "Always" } else { "Never" },
                "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}]}})
    };
    let codes = |propagator: &Propagator| {
        let said = propagator.explain(&key).unwrap();
        let policies: Vec<(String, Code)> =
            said.policies.iter().map(|part| (part.policy.clone(), part.remark.code)).collect();
        let clusters: Vec<(String, Vec<Code>)> = said
            .placements
            .iter()
            .map(|one| (one.cluster.clone(), one.remarks.iter().map(|remark| remark.code).collect()))
            .collect();
        (policies, clusters)
    };
    let name = |name: &str| format!("PropagationPolicy shop/{name}");
    applied(&mut propagator, "a", &key);
    let (policies, clusters) = codes(&propagator);
    assert_eq!(policies, [(name("all"), Code::Propagated)]);
    let of = |id: &str, codes: &[Code]| (id.to_owned(), codes.to_vec());
    assert_eq!(
        clusters,
        [of("a", &[Code::Chosen, Code::Copied]), of("b", &[Code::Chosen, Code::CopyPending])]
    );
    let why = CopyState::NotApplied(atoll_link::WhyNot::Foreign);
    propagator.take(Event::Copy(id("b"), CopyReport { key: key.clone(), state: why }), NOW);
    assert_eq!(codes(&propagator).1[1], of("b", &[Code::Chosen, Code::CopyFailed]));
    // One that came later and does not preempt does not get it; one that preempts does.
    see(&mut propagator, Source::Propagation(Scope::Namespace), policy("later", 5));
    propagator.work(NOW);
    assert_eq!(codes(&propagator).0, [(name("all"), Code::Propagated), (name("later"), Code::PolicyBeaten)]);
    see(&mut propagator, Source::Propagation(Scope::Namespace), policy("stronger", 9));
    propagator.work(NOW);
    let (policies, clusters) = codes(&propagator);
    assert_eq!(policies[0], (name("stronger"), Code::Propagated));
    assert!(policies[1..].iter().all(|(_, code)| *code == Code::PolicyBeaten), "{policies:?}");
    assert_eq!((clusters[0].1[0], clusters[1].1[0]), (Code::Chosen, Code::NotChosen));
    let unclaimed =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "test"}});
    let unclaimed = see(&mut propagator, Source::Templates(Kind::new("v1", "ConfigMap")), unclaimed);
    propagator.work(NOW);
    let said = propagator.explain(&unclaimed).unwrap();
    assert_eq!(said.remarks.iter().map(|remark| remark.code).collect::<Vec<_>>(), [Code::NoPolicy]);
    let strange = ObjectKey { name: "strange".to_owned(), ..unclaimed };
    assert_eq!(propagator.explain(&strange), None);
}

/// What users are told, as reason and object.
fn told(commands: &[Command]) -> Vec<(&'static str, bool, String)> {
    let told = commands.iter().filter_map(|command| match command {
        Command::Tell { of, warning, reason, .. } => Some((*reason, *warning, of.name.clone())),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_new_template_that_no_policy_selects_is_told_once_and_so_is_one_that_lost_its_policy() {
    let mut propagator = bound().0;
    let policy = |name: &str| {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": "deployments", "namespace": "shop"},
            "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}]}})
    };
    let template = |name: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"}});
    let kind = Kind::new("apps/v1", "Deployment");
    see(&mut propagator, Source::Propagation(Scope::Namespace), policy("web"));
    propagator.work(NOW);
    see(&mut propagator, Source::Templates(kind.clone()), template("old"));
    propagator.take(Event::Listed(Source::Templates(kind.clone())), NOW);
    assert!(!told(&propagator.work(NOW)).iter().any(|(_, _, name)| name == "old"), "it was there before");
    see(&mut propagator, Source::Templates(kind.clone()), template("wbe"));
    assert!(told(&propagator.work(NOW)).contains(&("NoPolicySelects", false, "wbe".to_owned())));
    see(&mut propagator, Source::Templates(kind.clone()), template("wbe"));
    assert_eq!(told(&propagator.work(NOW)), [], "once");
    see(&mut propagator, Source::Templates(kind), template("web"));
    assert_eq!(told(&propagator.work(NOW)), []);
    // The policy turns away from it: that is a loss.
    see(&mut propagator, Source::Propagation(Scope::Namespace), policy("other"));
    assert!(told(&propagator.work(NOW)).contains(&("NoPolicySelects", true, "web".to_owned())));
    let configmap =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "root", "namespace": "else"}});
    see(&mut propagator, Source::Templates(Kind::new("v1", "ConfigMap")), configmap);
    assert_eq!(told(&propagator.work(NOW)), [], "Kubernetes makes ConfigMaps everywhere");
}
