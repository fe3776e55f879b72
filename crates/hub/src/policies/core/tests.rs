//! What is written when, without a hub's API.

use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}

fn see(propagator: &mut Propagator, source: Source, object: Value) -> ObjectKey {
    let key = ObjectKey::of(&object).unwrap();
    propagator.take(Event::Seen(source, key.clone(), Some(Box::new(object))), NOW);
    key
}

/// Two members that run, a policy that brings every `ConfigMap` to both, and one `ConfigMap`; its binding is written.
fn bound() -> (Propagator, ObjectKey) {
    let mut propagator = Propagator::new("atoll-system", false);
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
