//! Who imports what.

use atoll_engine::facts::*;
use atoll_engine::network::{AddressRefused, Family, Networks};
use atoll_engine::plan::{ImportPlan, WhyAbsent, WhyNothing, WhyUntouched};
use atoll_engine::reason::{ExportFailed, ExportReady, ImportNote, ImportReady, Invalid};
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{SlicesFrom, addresses, import, plan, slices};

fn paris() -> Member {
    member("paris").exports("http:80", 1).serves("web-1", "http:8080", &["10.1.0.1", "10.1.0.2"])
}

#[test]
fn every_cluster_with_the_namespace_imports_the_exporter_included() {
    let mut engine = engine(&[paris().heard(), member("tokyo").heard()]);
    let plan = plan(&mut engine);
    for importer in ["paris", "tokyo"] {
        assert_eq!(addresses(&plan, importer), ["10.1.0.1", "10.1.0.2"]);
        let derived = import(&plan, importer).0.derived.as_ref().unwrap();
        assert_eq!(derived.name.as_str(), "derived-web");
    }
    let (own, foreign) = (&slices(&plan, "paris", "paris")[0], &slices(&plan, "tokyo", "paris")[0]);
    assert_eq!(own.name.as_str(), "imported-paris-web-1");
    assert_eq!(foreign.name, own.name);
    assert!(own.endpoints[0].node.is_some() && foreign.endpoints[0].node.is_none());
}

#[test]
fn a_namespace_that_comes_brings_the_import_and_one_that_goes_is_left_in_peace() {
    let mut engine = engine(&[paris().heard(), member("tokyo").heard()]);
    for (state, want) in [
        (None, Some(ImportPlan::Absent(WhyAbsent::NoNamespace))),
        (Some(NamespaceState::Active), None),
        (Some(NamespaceState::Terminating), Some(ImportPlan::Untouched(WhyUntouched::NamespaceTerminating))),
    ] {
        let _ = engine.apply(&id("tokyo"), Change::Namespace(namespace("shop"), state));
        let plan = plan(&mut engine);
        match want {
            Some(want) => assert_eq!(plan.clusters[&id("tokyo")].import, want),
            None => assert_eq!(addresses(&plan, "tokyo").len(), 2),
        }
    }
}

#[test]
fn the_import_goes_with_the_last_export() {
    let mut engine = engine(&[paris().heard(), member("tokyo").exports("http:80", 2).heard()]);
    plan(&mut engine);
    let _ = engine.apply(&id("paris"), Change::Export(key(WEB), None));
    assert_eq!(addresses(&plan(&mut engine), "tokyo"), [""; 0]);
    let _ = engine.apply(&id("tokyo"), Change::Export(key(WEB), None));
    let plan = plan(&mut engine);
    for importer in ["paris", "tokyo"] {
        assert_eq!(plan.clusters[&id(importer)].import, ImportPlan::Absent(WhyAbsent::NotExported));
    }
}

#[test]
fn an_export_without_a_service_waits_and_one_of_an_external_name_fails() {
    let external = ServiceFact { service_type: ServiceType::ExternalName, ..service(&[]) };
    for (service, why, ready) in [
        (None, Invalid::NoService, ExportReady::Pending(Invalid::NoService)),
        (
            Some(external),
            Invalid::ExternalName,
            ExportReady::Failed(ExportFailed::Invalid(Invalid::ExternalName)),
        ),
    ] {
        let paris = member("paris").with(Change::Service(key(WEB), service));
        let paris = paris.with(Change::Export(key(WEB), Some(export(1)))).heard();
        let plan = plan(&mut engine(&[paris]));
        let paris = &plan.clusters[&id("paris")];
        assert_eq!(paris.import, ImportPlan::Absent(WhyAbsent::NotExported));
        let status = paris.export.as_ref().unwrap();
        assert_eq!((status.valid, &status.ready, &status.conflicts), (Err(why), &ready, &None));
    }
}

#[test]
fn an_importer_gets_the_families_that_it_supports() {
    let dual = ServiceFact { families: vec![Family::V6, Family::V4], ..service(&[("http", 80)]) };
    let paris = member("paris")
        .exports_as(dual, export(1))
        .serves("four", "http:80", &["10.1.0.1"])
        .serves("six", "http:80", &["fd01::1"])
        .heard();
    let only = |name: &str, family| {
        let capabilities = Capabilities { families: vec![family], kubernetes_minor: 36 };
        member(name).with(Change::Heard(capabilities))
    };
    let mut engine = engine(&[paris, only("four", Family::V4), only("six", Family::V6)]);
    let dual = plan(&mut engine);
    assert_eq!(import(&dual, "paris").0.families, [Family::V6, Family::V4]);
    assert_eq!(addresses(&dual, "four"), ["10.1.0.1"]);
    assert_eq!(addresses(&dual, "six"), ["fd01::1"]);
    assert_eq!(import(&dual, "four").0.notes, [ImportNote::FamiliesLeftOut(vec![Family::V6])]);

    let six = ServiceFact { families: vec![Family::V6], ..service(&[("http", 80)]) };
    let _ = engine.apply(&id("paris"), Change::Service(key(WEB), Some(six)));
    let plan = plan(&mut engine);
    let (four, from) = import(&plan, "four");
    assert_eq!(four.ready, ImportReady::IpFamilyNotSupported { wanted: vec![Family::V6] });
    assert!(four.derived.is_none() && four.families == [Family::V6]);
    assert_eq!(from[&id("paris")], SlicesFrom::Nothing(WhyNothing::NoDerivedService));
}

#[test]
fn a_service_of_another_owner_is_left_alone_and_the_name_once_chosen_stays() {
    let taken = |name: &str, taken| Change::Taken(key(name), taken);
    let mut engine =
        engine(&[paris().heard(), member("tokyo").with(taken("shop/derived-web", true)).heard()]);
    let name = |engine: &mut _| import(&plan(engine), "tokyo").0.derived.as_ref().map(|d| d.name.to_string());
    let hashed = name(&mut engine).unwrap();
    assert!(hashed.starts_with("derived-") && hashed != "derived-web");
    let _ = engine.apply(&id("tokyo"), taken("shop/derived-web", false));
    assert_eq!(name(&mut engine).unwrap(), hashed);
    // Gone with the import, so that a new one gets the plain name.
    let _ = engine.apply(&id("tokyo"), Change::Namespace(namespace("shop"), None));
    plan(&mut engine);
    let _ = engine.apply(&id("tokyo"), Change::Namespace(namespace("shop"), Some(NamespaceState::Active)));
    assert_eq!(name(&mut engine).unwrap(), "derived-web");
    for name in ["shop/derived-web".to_owned(), format!("shop/{hashed}")] {
        let _ = engine.apply(&id("tokyo"), taken(&name, true));
    }
    let plan = plan(&mut engine);
    assert!(matches!(import(&plan, "tokyo").0.ready, ImportReady::NamesTaken { .. }));
}

#[test]
fn local_traffic_policy_without_own_endpoints_is_said() {
    let local =
        ServiceFact { internal_traffic_policy: InternalTrafficPolicy::Local, ..service(&[("http", 80)]) };
    let paris =
        member("paris").exports_as(local, export(1)).serves("web-1", "http:80", &["10.1.0.1"]).heard();
    let plan = plan(&mut engine(&[paris, member("tokyo").heard()]));
    assert_eq!(import(&plan, "paris").0.notes, []);
    assert_eq!(import(&plan, "tokyo").0.notes, [ImportNote::LocalWithoutOwnEndpoints]);
}

#[test]
fn remote_endpoints_wait_while_local_ones_are_ready() {
    let near = |created| ExportFact { locality: Some(Locality::LocalFirst), ..export(created) };
    let at = |name: &str, created, address: &str| {
        let member = member(name).exports_as(service(&[("http", 80)]), near(created));
        member.serves("web-1", "http:80", &[address]).heard()
    };
    let mut engine =
        engine(&[at("paris", 1, "10.1.0.1"), at("tokyo", 2, "10.2.0.1"), member("lima").heard()]);
    let before = plan(&mut engine);
    assert_eq!(addresses(&before, "tokyo"), ["10.2.0.1"]);
    assert_eq!(addresses(&before, "lima"), ["10.1.0.1", "10.2.0.1"]);
    let mut unready = slice("http:80", &["10.2.0.1"]);
    unready.endpoints[0].conditions.ready = Some(false);
    let _ = engine.apply(&id("tokyo"), Change::Slice(key(WEB), slice_name("web-1"), Some(unready.into())));
    assert_eq!(addresses(&plan(&mut engine), "tokyo"), ["10.1.0.1", "10.2.0.1"]);
}

#[test]
fn an_address_that_is_refused_is_told_to_the_exporter() {
    let mut engine =
        engine(&[member("paris").exports("http:80", 1).serves("web-1", "http:80", &["127.1.0.1"]).heard()]);
    let ready = |engine: &mut _| plan(engine).clusters[&id("paris")].export.as_ref().unwrap().ready.clone();
    let why = AddressRefused::Loopback;
    assert_eq!(ready(&mut engine), ExportReady::Failed(ExportFailed::AllEndpointsRefused(why)));
    let endpoints = vec!["127.1.0.0/16".parse().unwrap()];
    let networks = Networks { endpoints, ..Networks::default() };
    let _ = engine.apply(&id("paris"), Change::Networks(Box::new(networks)));
    assert_eq!(ready(&mut engine), ExportReady::Exported { refused: None });
}

#[test]
fn a_stranger_changes_nothing() {
    use atoll_engine::engine::Applied;
    let mut engine = engine(&[paris().heard()]);
    let change = Change::Export(key(WEB), Some(export(0)));
    assert_eq!(engine.apply(&id("mallory"), change), Applied::Unchanged);
}
