//! One judge for imports, native access and balancers: an address that may not cross crosses nowhere, and its owner is told why.

use atoll_engine::engine::Engine;
use atoll_engine::intent::CrossCluster;
use atoll_engine::network::{AddressRefused, Networks, Ranges, Reserved, Use};
use atoll_engine::plan::{DispatchPlan, Plan, SlicesFrom};
use atoll_engine::reason::{CrossNote, ExportFailed, ExportReady};
use atoll_engine::time::Time;
use atoll_engine::world::Change;

use crate::fixture::*;

fn observed(pods: &str) -> Networks {
    let observed = Ranges { pods: vec![pods.parse().unwrap()], ..Ranges::default() };
    Networks { observed, binding: true, ..Networks::default() }
}

/// Paris and tokyo with networks of their own; paris exports `web` and provides it natively and to a balancer, from these addresses.
fn engine_serving(addresses: &[&str]) -> Engine {
    let paris = member("paris").exports("http:80", 1).serves("web-1", "http:80", addresses);
    let paris = paris.with(Change::Followed(key(WEB), true));
    let paris = paris.with(Change::Networks(Box::new(observed("10.1.0.0/16")))).heard();
    let tokyo = member("tokyo").with(Change::Networks(Box::new(observed("10.2.0.0/16")))).heard();
    let mut engine = engine(&[paris, tokyo]);
    engine.set_reserved(Reserved { pool: vec!["192.0.2.0/24".parse().unwrap()], ..Reserved::default() });
    let asked = CrossCluster { balanced: true, ..CrossCluster::default() };
    engine.set_intents([(key(WEB), asked)].into());
    engine
}

fn planned(engine: &mut Engine) -> Plan {
    let plan = (*engine.plan(&key(WEB), Time::from_secs(9)).plan).clone();
    assert_eq!(atoll_engine::check::check(engine.world(), &plan), []);
    plan
}

/// What reaches tokyo, natively and by import, and what the balancer leads to.
fn reached(plan: &Plan) -> [Vec<String>; 3] {
    use atoll_engine::plan::ImportPlan;
    let of = |from: &SlicesFrom| -> Vec<String> {
        let SlicesFrom::Exactly(list, _) = from else { return Vec::new() };
        let endpoints = list.iter().flat_map(|slice| &slice.endpoints);
        endpoints.flat_map(|endpoint| endpoint.addresses.iter().map(ToString::to_string)).collect()
    };
    let tokyo = &plan.clusters[&id("tokyo")];
    let ImportPlan::Present { slices, .. } = &tokyo.import else { panic!("{tokyo:?}") };
    let DispatchPlan::Present(dispatched) = &tokyo.dispatch else { panic!("{tokyo:?}") };
    let backends = plan.balanced.as_ref().unwrap().backends.keys().map(|(_, at)| at.ip().to_string());
    [of(&slices[&id("paris")]), of(&dispatched[&id("paris")]), backends.collect()]
}

#[test]
fn one_judge_for_imports_native_access_and_balancers() {
    for (lie, why) in [
        ("10.2.0.9", AddressRefused::OfAnotherMember(Use::Pods)),
        ("192.0.2.7", AddressRefused::OfABalancer),
        ("8.8.8.8", AddressRefused::OutsideDeclaredNetworks),
        ("169.254.169.254", AddressRefused::LinkLocal),
        ("168.63.129.16", AddressRefused::Metadata),
    ] {
        let plan = planned(&mut engine_serving(&["10.1.0.1", lie]));
        assert_eq!(reached(&plan), [["10.1.0.1"]; 3], "{lie}");
        let told = &plan.clusters[&id("paris")].export.as_ref().unwrap().ready;
        assert_eq!(*told, ExportReady::Exported { refused: Some(why) });
        let note = CrossNote::AddressRefused { cluster: id("paris"), why };
        assert!(plan.crossing.as_ref().unwrap().notes.contains(&note), "{plan:?}");
        let all = planned(&mut engine_serving(&[lie]));
        assert_eq!(reached(&all), [[] as [&str; 0]; 3], "{lie}");
        let told = &all.clusters[&id("paris")].export.as_ref().unwrap().ready;
        assert_eq!(*told, ExportReady::Failed(ExportFailed::AllEndpointsRefused(why)));
    }
}

#[test]
fn a_range_that_is_declared_later_is_taken_from_whoever_announced_it() {
    let mut engine = engine_serving(&["10.1.0.1"]);
    assert_eq!(reached(&planned(&mut engine)), [["10.1.0.1"]; 3]);
    let declared = Ranges { pods: vec!["10.1.0.0/24".parse().unwrap()], ..Ranges::default() };
    let networks = Networks { declared, ..Networks::default() };
    let _ = engine.apply(&id("tokyo"), Change::Networks(Box::new(networks)));
    assert!(engine.is_dirty(&key(WEB)), "what is one's is not another's");
    assert_eq!(reached(&planned(&mut engine)), [[] as [&str; 0]; 3]);
    let _ = engine.apply(&id("tokyo"), Change::Networks(Box::new(observed("10.2.0.0/16"))));
    assert_eq!(reached(&planned(&mut engine)), [["10.1.0.1"]; 3]);
}

#[test]
fn the_nodes_of_a_member_are_no_word_of_the_operator() {
    let mut engine = engine_serving(&["10.1.0.1"]);
    let _ = planned(&mut engine);
    let nodes = atoll_engine::network::Nodes {
        addresses: ["8.8.8.8".parse().unwrap()].into(),
        pods: ["0.0.0.0/0".parse().unwrap()].into(),
    };
    use atoll_engine::engine::Applied;
    assert_eq!(engine.apply(&id("paris"), Change::Nodes(nodes)), Applied::Unchanged);
    assert!(!engine.is_dirty(&key(WEB)));
}
