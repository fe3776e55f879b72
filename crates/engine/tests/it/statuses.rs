//! What exports are told changes with exports, members and namespaces, and never with endpoints.

use std::collections::BTreeMap;

use atoll_engine::facts::NamespaceState;
use atoll_engine::plan::{ExportStatus, Plan, Touched};
use atoll_engine::reason::reach::NotImported;
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{NOW, plan, plan_at};

fn statuses(plan: &Plan) -> BTreeMap<String, ExportStatus> {
    let of = plan.clusters.iter().filter_map(|(id, part)| Some((id.to_string(), part.export.clone()?)));
    of.collect()
}

#[test]
fn no_slice_changes_what_an_export_says() {
    let paris = member("paris").exports("http:80", 1).serves("web-1", "http:80", &["10.1.0.1"]).heard();
    let mut engine = engine(&[paris, member("tokyo").exports("http:81", 2).heard(), member("lima").heard()]);
    let before = statuses(&plan(&mut engine));
    assert_eq!(before.len(), 2);
    assert_eq!(before["paris"].conflicts.as_ref().unwrap()[0].who, [id("tokyo")]);
    for n in 0..200_u16 {
        let source = ["paris", "tokyo"][usize::from(n % 2)];
        let addresses: Vec<String> = (0..n % 5).map(|m| format!("10.1.{n}.{}", m + 1)).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let named = slice_name(&format!("web-{}", n % 3));
        let now = (n % 7 != 0).then(|| slice("http:80", &addresses).into());
        let _ = engine.apply(&id(source), Change::Slice(key(WEB), named, now));
        let outcome = plan_at(&mut engine, NOW);
        assert_eq!(statuses(&outcome.plan), before, "after slice {n}");
        assert_ne!(outcome.touched, Touched::Everything, "after slice {n}");
    }
}

#[test]
fn a_namespace_a_member_and_an_export_do() {
    let mut engine = engine(&[member("paris").exports("http:80", 1).heard(), member("tokyo").heard()]);
    let reach = |engine: &mut _| statuses(&plan(engine))["paris"].reach.clone().unwrap();
    assert_eq!(reach(&mut engine).importers, [id("paris"), id("tokyo")]);
    let gone = |name: &str, state| Change::Namespace(namespace(name), state);
    let _ = engine.apply(&id("tokyo"), gone(key(WEB).namespace.as_str(), None));
    let without = reach(&mut engine);
    assert_eq!((without.imported, &without.without[..]), (1, &[(id("tokyo"), NotImported::NoNamespace)][..]));
    let _ = engine.apply(&id("tokyo"), gone(key(WEB).namespace.as_str(), Some(NamespaceState::Active)));
    assert_eq!(reach(&mut engine).imported, 2);
    let _ = engine.apply(&id("lima"), Change::Joined);
    assert!(reach(&mut engine).awaited, "a member that joins has not said what it has");
    tell(&mut engine, &[member("lima").heard()]);
    let all = reach(&mut engine);
    assert!(!all.awaited && all.imported == 3, "{all:?}");
}
