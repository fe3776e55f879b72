//! A hub that starts while a member is down changes nothing that came from it.

use atoll_engine::engine::Engine;
use atoll_engine::facts::*;
use atoll_engine::memory::Memory;
use atoll_engine::plan::{
    ImportPlan, Plan, SlicesFrom, StaleMark, Unknown, WhyAbsent, WhyNothing, WhyUntouched,
};
use atoll_engine::reason::{Kept, Withdrawn};
use atoll_engine::time::Time;
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{NOW, addresses, import, plan, plan_at};

fn paris() -> Member {
    member("paris").exports("http:80 more:90", 1).serves("web-1", "http:80", &["10.1.0.1"]).heard()
}

fn tokyo() -> Member {
    member("tokyo").exports("http:81", 2).serves("web-2", "http:81", &["10.2.0.1"]).heard()
}

/// A hub that has been restarted, and what it persisted before.
fn restarted(before: &Engine) -> Engine {
    let text: Vec<(String, String)> = before
        .world()
        .memory
        .iter()
        .map(|(key, memory)| (key.to_string(), serde_json::to_string(memory).unwrap()))
        .collect();
    let memory: Memory =
        text.iter().map(|(name, json)| (key(name), serde_json::from_str(json).unwrap())).collect();
    Engine::new(Settings::default(), memory)
}

#[test]
fn a_hub_started_while_a_member_is_down_changes_nothing_that_came_from_it() {
    let mut first = engine(&[paris(), tokyo()]);
    let before = plan(&mut first);
    let mut second = restarted(&first);
    tell(&mut second, &[tokyo()]);
    let outcome = plan_at(&mut second, Time::from_secs(5000));
    assert_eq!(outcome.memory, None);
    let after = outcome.plan;
    let ((was, _), (is, from)) = (import(&before, "tokyo"), import(&after, "tokyo"));
    assert_eq!((&was.spec, &was.clusters, &was.derived), (&is.spec, &is.clusters, &is.derived));
    // Who imports it is not known yet: a member keeps what stands there.
    let told = |plan: &Plan| plan.clusters[&id("tokyo")].export.clone().unwrap();
    let (was_told, mut is_told) = (told(&before), told(&after));
    assert!(is_told.reach.as_ref().unwrap().awaited && !was_told.reach.as_ref().unwrap().awaited);
    is_told.reach.clone_from(&was_told.reach);
    assert_eq!(was_told, is_told);
    assert_eq!(from[&id("paris")], SlicesFrom::KeepWhatIsThere(Unknown::NotHeard));
    assert_eq!(is.stale[&id("paris")], StaleMark::AsItWas);
    assert_eq!(addresses(&after, "tokyo"), ["10.2.0.1"]);
    assert_eq!(after.clusters[&id("paris")].import, ImportPlan::Untouched(WhyUntouched::NotHeard));

    // Once it is known to be lost, the mark says since when; the policy keeps what is there.
    let _ = second.apply(&id("paris"), Change::Contact(Contact::Lost { since: NOW }));
    let lost = plan(&mut second);
    let kept = Unknown::LostUnheard(Kept::PolicyRetains { since: NOW });
    assert_eq!(import(&lost, "tokyo").1[&id("paris")], SlicesFrom::KeepWhatIsThere(kept));
    assert_eq!(import(&lost, "tokyo").0.stale[&id("paris")], StaleMark::Since(NOW));

    // Back again, all is as it was.
    let _ = second.apply(&id("paris"), Change::Contact(Contact::Alive));
    tell(&mut second, &[paris()]);
    assert_eq!(plan(&mut second), before);
}

#[test]
fn half_a_list_counts_for_nothing() {
    let mut first = engine(&[paris(), tokyo()]);
    let before = plan(&mut first);
    let mut second = restarted(&first);
    tell(&mut second, &[tokyo()]);
    // The namespace and the Service have been listed, the export and the slice have not.
    let part = Member { changes: paris().changes[..3].to_vec(), ..paris() };
    tell(&mut second, &[part]);
    let half = plan(&mut second);
    assert_eq!(import(&half, "tokyo").0.spec, import(&before, "tokyo").0.spec);
    assert!(matches!(import(&half, "tokyo").1[&id("paris")], SlicesFrom::KeepWhatIsThere(_)));
}

#[test]
fn an_export_deleted_while_the_hub_was_down_goes_when_its_cluster_is_heard() {
    let mut first = engine(&[paris(), tokyo()]);
    plan(&mut first);
    let mut second = restarted(&first);
    tell(&mut second, &[tokyo(), member("paris").heard()]);
    let after = plan(&mut second);
    assert_eq!(import(&after, "tokyo").0.spec.ports[0].port, 81);
    assert!(!import(&after, "tokyo").1.contains_key(&id("paris")));
}

#[test]
fn unexporting_works_while_another_member_is_down() {
    let mut first = engine(&[paris(), member("tokyo").heard(), member("lima").heard()]);
    plan(&mut first);
    let mut second = restarted(&first);
    tell(&mut second, &[member("lima"), paris(), member("tokyo").heard()]);
    plan(&mut second);
    let _ = second.apply(&id("paris"), Change::Export(key(WEB), None));
    for _ in 0..2 {
        let after = plan(&mut second);
        assert_eq!(after.clusters[&id("tokyo")].import, ImportPlan::Absent(WhyAbsent::NotExported));
    }
    assert!(second.world().memory.contains_key(&key(WEB)), "a tombstone, while lima is unheard");
    tell(&mut second, &[member("lima").heard()]);
    plan(&mut second);
    assert!(second.world().memory.is_empty());
}

#[test]
fn a_hub_that_lost_its_memory_takes_nothing_away_before_it_has_heard_from_all() {
    let mut engine = engine(&[member("paris"), member("tokyo").heard()]);
    let dark = plan(&mut engine);
    assert_eq!(dark.clusters[&id("tokyo")].import, ImportPlan::Untouched(WhyUntouched::NothingKnown));
    tell(&mut engine, &[member("paris").heard()]);
    let light = plan(&mut engine);
    assert_eq!(light.clusters[&id("tokyo")].import, ImportPlan::Absent(WhyAbsent::NotExported));
}

#[test]
fn what_an_unheard_cluster_may_have_exported_is_kept_even_if_it_is_not_in_memory() {
    let mut engine = engine(&[member("paris"), tokyo()]);
    let plan = plan(&mut engine);
    assert_eq!(import(&plan, "tokyo").1[&id("paris")], SlicesFrom::KeepWhatIsThere(Unknown::NotHeard));
}

#[test]
fn a_policy_that_withdraws_is_remembered_over_a_restart() {
    let gone = ExportFact { liveness: Some(Liveness::Withdraw), ..export(1) };
    let mut first = engine(&[member("paris").exports_as(service(&[("http", 80)]), gone).heard(), tokyo()]);
    plan(&mut first);
    let mut second = restarted(&first);
    tell(&mut second, &[tokyo()]);
    let from = |engine: &mut Engine| import(&plan(engine), "tokyo").1[&id("paris")].clone();
    assert_eq!(from(&mut second), SlicesFrom::KeepWhatIsThere(Unknown::NotHeard));
    let _ = second.apply(&id("paris"), Change::Contact(Contact::Lost { since: NOW }));
    let why = WhyNothing::Withdrawn(Withdrawn::LeaseEnded { at: NOW });
    assert_eq!(from(&mut second), SlicesFrom::Nothing(why));
}
