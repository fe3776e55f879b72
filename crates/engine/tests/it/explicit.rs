//! `ServiceImports` of the hub beside the automatic imports of KEP-1645.

use atoll_engine::engine::Engine;
use atoll_engine::facts::Protocol;
use atoll_engine::intent::imports::{Asked, HubImports, ImportPort, ImportTo};
use atoll_engine::names::PortName;
use atoll_engine::plan::{ImportPlan, Plan, SlicesFrom, Touched, WhyAbsent, WhyNothing, WhyUntouched};
use atoll_engine::reason::{ImportNote, ImportReady};
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{import, plan, plan_at, slices};

/// `paris` exports two ports, `tokyo` and `lima` only have the namespace.
fn set() -> Engine {
    let paris = member("paris").exports("http:80 dns:53/udp", 1).serves(
        "web-1",
        "http:8080 dns:8053/udp",
        &["10.1.0.1"],
    );
    engine(&[paris.heard(), member("tokyo").heard(), member("lima").heard()])
}

fn to(clusters: &[&str], ports: &[(Option<&str>, Protocol, u16)]) -> ImportTo {
    let port = |(name, protocol, port): &(Option<&str>, Protocol, u16)| ImportPort {
        name: name.map(|name| PortName::parse(name).unwrap()),
        protocol: *protocol,
        port: *port,
    };
    ImportTo {
        clusters: clusters.iter().map(|name| id(name)).collect(),
        ports: ports.iter().map(port).collect(),
    }
}

/// Who imports.
fn importers(plan: &Plan) -> Vec<String> {
    let present = |import: &ImportPlan| matches!(import, ImportPlan::Present { .. });
    let those = plan.clusters.iter().filter(|(_, part)| present(&part.import));
    those.map(|(id, _)| id.to_string()).collect()
}

#[test]
fn in_an_explicit_namespace_only_those_import_to_whom_the_hubs_import_goes() {
    let all = &["lima", "paris", "tokyo"][..];
    for (explicit, asked, want) in [
        (false, None, all),
        (false, Some(&["tokyo"][..]), all),
        (true, None, &[]),
        (true, Some(&[]), &[]),
        (true, Some(&["tokyo"]), &["tokyo"]),
        (true, Some(&["paris", "tokyo", "stranger"]), &["paris", "tokyo"]),
    ] {
        let mut engine = set();
        engine.set_explicit(if explicit { [namespace("shop")].into() } else { [].into() });
        engine.ask_import(key(WEB), asked.map(|clusters| to(clusters, &[])));
        assert_eq!(importers(&plan(&mut engine)), want, "explicit: {explicit}, asked: {asked:?}");
    }
}

#[test]
fn another_namespace_is_left_alone() {
    let mut engine = set();
    engine.set_explicit([namespace("office")].into());
    assert_eq!(importers(&plan(&mut engine)).len(), 3);
}

#[test]
fn a_change_of_mind_is_planned_and_says_why() {
    let mut engine = set();
    assert_eq!(importers(&plan(&mut engine)).len(), 3);
    engine.set_explicit([namespace("shop")].into());
    let [outcome] = &engine.plan_dirty(crate::NOW)[..] else { panic!("one service is concerned") };
    assert_eq!(outcome.plan.clusters[&id("tokyo")].import, ImportPlan::Absent(WhyAbsent::NotAsked));
    engine.ask_import(key(WEB), Some(to(&["tokyo"], &[])));
    assert_eq!(importers(&engine.plan_dirty(crate::NOW)[0].plan), ["tokyo"]);
    // The template goes: what it brought goes with it.
    engine.ask_import(key(WEB), None);
    assert_eq!(importers(&engine.plan_dirty(crate::NOW)[0].plan), [""; 0]);
    // The namespace is automatic again; saying so twice is no news.
    engine.set_explicit([].into());
    assert_eq!(importers(&engine.plan_dirty(crate::NOW)[0].plan).len(), 3);
    engine.set_explicit([].into());
    engine.ask_import(key(WEB), None);
    assert_eq!(engine.dirty().count(), 0);
}

#[test]
fn until_it_is_known_where_an_import_goes_nothing_changes() {
    for explicit in [false, true] {
        let mut engine = set();
        let asked = [(key(WEB), Asked::Unplaced)].into();
        let explicit = if explicit { [namespace("shop")].into() } else { [].into() };
        engine.set_imports(HubImports { explicit, asked });
        let before = plan(&mut engine);
        for part in before.clusters.values() {
            assert_eq!(part.import, ImportPlan::Untouched(WhyUntouched::PlacementUnknown));
        }
        engine.ask_import(key(WEB), Some(to(&["tokyo"], &[])));
        assert!(importers(&plan(&mut engine)).contains(&"tokyo".to_owned()));
        // What has been said stays; only that of which nothing was said goes nowhere.
        engine.imports_are_placed();
        assert!(importers(&plan(&mut engine)).contains(&"tokyo".to_owned()));
    }
    let mut engine = set();
    let asked = [(key(WEB), Asked::Unplaced)].into();
    engine.set_imports(HubImports { explicit: [namespace("shop")].into(), asked });
    plan(&mut engine);
    engine.imports_are_placed();
    assert_eq!(importers(&engine.plan_dirty(crate::NOW)[0].plan), [""; 0]);
}

#[test]
fn a_template_filters_the_ports_where_it_goes_and_nowhere_else() {
    let (tcp, udp) = (Protocol::Tcp, Protocol::Udp);
    for (asked, ports, missing) in [
        (&[][..], &["http", "dns"][..], 0),
        (&[(None, tcp, 80)], &["http"], 0),
        (&[(Some("http"), tcp, 80)], &["http"], 0),
        (&[(None, udp, 53), (None, tcp, 80)], &["http", "dns"], 0),
        (&[(None, tcp, 80), (None, tcp, 53)], &["http"], 1),
        (&[(None, udp, 53), (Some("web"), tcp, 80)], &["dns"], 1),
    ] {
        let mut engine = set();
        engine.ask_import(key(WEB), Some(to(&["tokyo"], asked)));
        let plan = plan(&mut engine);
        let (import, _) = import(&plan, "tokyo");
        let names = |import: &atoll_engine::plan::Import| {
            import.spec.ports.iter().map(|port| port.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(import), ports, "{asked:?}");
        assert_eq!(import.ready, ImportReady::Ready);
        let notes = import.notes.iter().filter(|note| matches!(note, ImportNote::NoSuchPort(_)));
        assert_eq!(notes.count(), missing, "{asked:?}");
        let slice: Vec<_> =
            slices(&plan, "tokyo", "paris")[0].ports.iter().map(|port| port.name.to_string()).collect();
        assert_eq!(slice, ports, "a slice has the ports of its Service");
        assert_eq!(names(crate::import(&plan, "lima").0), ["http", "dns"]);
        assert_eq!(slices(&plan, "lima", "paris")[0].ports.len(), 2);
    }
}

#[test]
fn an_import_of_which_no_port_is_left_says_so_and_has_no_service() {
    let mut engine = set();
    engine.ask_import(key(WEB), Some(to(&["tokyo"], &[(None, Protocol::Tcp, 81)])));
    let plan = plan(&mut engine);
    let (import, from) = import(&plan, "tokyo");
    assert!(matches!(&import.ready, ImportReady::NoPortAsked { asked } if asked.len() == 1));
    assert!(import.derived.is_none() && import.spec.ports.is_empty());
    assert_eq!(from[&id("paris")], SlicesFrom::Nothing(WhyNothing::NoDerivedService));
}

#[test]
fn a_changed_slice_touches_only_itself_where_ports_are_filtered_too() {
    let mut engine = set();
    engine.ask_import(key(WEB), Some(to(&["tokyo"], &[(None, Protocol::Tcp, 80)])));
    plan(&mut engine);
    assert_eq!(plan_at(&mut engine, crate::NOW).touched, Touched::Nothing);
    let new = slice("http:8080 dns:8053/udp", &["10.1.0.1", "10.1.0.2"]);
    let _ = engine.apply(&id("paris"), Change::Slice(key(WEB), slice_name("web-1"), Some(new.into())));
    let touched = plan_at(&mut engine, crate::NOW).touched;
    assert_eq!(touched, Touched::Slices([(id("paris"), slice_name("web-1"))].into()));
}
