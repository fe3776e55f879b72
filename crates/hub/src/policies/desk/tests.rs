//! What is written when, without a hub's API.

use super::*;

const NOW: &str = "2026-01-01T00:00:00Z";

fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}

fn see(desk: &mut Desk, source: Source, object: Value) -> ObjectKey {
    let key = ObjectKey::of(&object).unwrap();
    desk.take(Event::Seen(source, key.clone(), Some(Box::new(object))), NOW);
    key
}

/// Two members that run, a policy that brings every `ConfigMap` to both, and one `ConfigMap`; its binding is written.
fn bound() -> (Desk, ObjectKey) {
    let mut desk = Desk::new("atoll-system", false);
    Source::FIXED.into_iter().for_each(|source| desk.take(Event::Listed(source), NOW));
    for name in ["a", "b"] {
        let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {"syncMode": "Push"}});
        see(&mut desk, Source::Clusters, cluster);
        desk.take(Event::Started(id(name)), NOW);
    }
    let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "all", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}]}});
    see(&mut desk, Source::Propagation(Scope::Namespace), policy);
    let kind = Kind::new("v1", "ConfigMap");
    // What it says of imports is another's subject.
    let mut first = desk.work(NOW);
    first.retain(|command| !matches!(command, Command::Imports(_)));
    assert_eq!(first, [Command::Watch(kind.clone())]);
    let template =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}});
    let key = see(&mut desk, Source::Templates(kind.clone()), template);
    desk.take(Event::Listed(Source::Templates(kind)), NOW);
    let commands = desk.work(NOW);
    let [Command::PutBinding { object, .. }] = &commands[..] else { panic!("{commands:?}") };
    desk.take(Event::Written(key.clone(), object.clone()), NOW);
    let ordered = desk.work(NOW);
    assert!(matches!(&ordered[..], [Command::Order(..), Command::Order(..)]), "{ordered:?}");
    (desk, key)
}

fn applied(desk: &mut Desk, by: &str, key: &ObjectKey) -> Vec<Command> {
    let state = CopyState::Applied { status: Value::Null, healthy: None };
    desk.take(Event::Copy(id(by), CopyReport { key: key.clone(), state }), NOW);
    desk.work(NOW)
}

/// The word of the condition `FullyApplied` in the one status that is written.
fn shown(commands: &[Command]) -> (&str, &str) {
    let [Command::PutStatus(_, status)] = commands else { panic!("{commands:?}") };
    let fully = &status["conditions"][1];
    (fully["status"].as_str().unwrap(), fully["message"].as_str().unwrap())
}

#[test]
fn a_template_costs_the_hub_one_binding_and_one_status() {
    let (mut desk, key) = bound();
    assert_eq!(applied(&mut desk, "a", &key), [], "b runs, and will say something");
    let commands = applied(&mut desk, "b", &key);
    assert_eq!(shown(&commands).0, "True");
    assert!(!desk.waits());
    assert_eq!(applied(&mut desk, "b", &key), [], "nothing new");
}

#[test]
fn a_member_that_runs_and_says_nothing_is_named_after_a_while() {
    let (mut desk, key) = bound();
    applied(&mut desk, "a", &key);
    assert!(desk.waits());
    desk.take(Event::Waited, NOW);
    assert_eq!(desk.work(NOW), [], "it may have been a moment only");
    desk.take(Event::Waited, NOW);
    let commands = desk.work(NOW);
    assert_eq!(shown(&commands), ("False", "b: the cluster has not reported yet"));
    assert!(!desk.waits());
    assert_eq!(shown(&applied(&mut desk, "b", &key)).0, "True");
}

#[test]
fn a_member_that_does_not_run_is_not_waited_for() {
    let (mut desk, key) = bound();
    desk.take(Event::Stopped(id("b")), NOW);
    let commands = applied(&mut desk, "a", &key);
    assert_eq!(shown(&commands), ("False", "b: the cluster has not reported yet"));
}
