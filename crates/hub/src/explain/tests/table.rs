//! What is said in words, and what comes first.

use atoll_api::names::code::Code;
use atoll_api::names::kind::explain as names;
use atoll_engine::facts::{InternalTrafficPolicy, NamespaceState, ServiceFact};
use atoll_engine::network::{Networks, Ranges};
use atoll_engine::world::Change;
use atoll_link::{Kind, Problem, Up};

use super::fixture::*;
use super::set::{Set, cluster};
use crate::explain::Verb;

fn paris() -> Member {
    member("paris").exports("http:80", 1).serves("web-1", "http:80", &["10.1.0.1"]).heard()
}

fn tokyo() -> Member {
    member("tokyo").heard()
}

#[test]
fn the_verdict_is_the_cause_and_the_next_step_names_names() {
    let without_namespace = || {
        let mut tokyo = tokyo();
        tokyo.changes.retain(|change| !matches!(change, Change::Namespace(..)));
        tokyo
    };
    let no_service = member("paris").with(Change::Export(key(WEB), Some(export(1)))).heard();
    let refused = member("paris").exports("http:80", 1).serves("web-1", "http:80", &["127.0.0.1"]).heard();
    for (members, code, next) in [
        (
            vec![paris(), without_namespace()],
            Code::NoNamespace,
            "kubectl --context tokyo create namespace shop",
        ),
        (
            vec![no_service, tokyo()],
            Code::NoService,
            "kubectl --context paris -n shop get services,serviceexports",
        ),
        (
            vec![member("paris").exports("http:80", 1).heard(), tokyo()],
            Code::NoEndpoints,
            "-n shop describe service web",
        ),
        (vec![refused, without_namespace()], Code::AllEndpointsRefused, "atoll explain web -n shop --all"),
        (vec![tokyo()], Code::NotExported, "Create a ServiceExport web in namespace shop"),
    ] {
        let verdict = Set::of(&members).explain(WEB).verdict;
        assert_eq!(verdict.code, code);
        assert!(verdict.next.as_deref().unwrap().contains(next), "{verdict:?}");
    }
}

#[test]
fn a_healthy_service_is_said_to_be_exported_and_imported_by_whom() {
    let mut set = Set::of(&[paris(), tokyo()]);
    let said = set.explain(WEB);
    assert_eq!(said.verdict.code, Code::Imported);
    assert_eq!(said.verdict.message, "Exported by paris; imported by paris, tokyo.");
    assert_eq!(said.names, ["web.shop.svc.clusterset.local"]);
    assert_eq!((said.kind.as_deref(), said.ports.len()), (Some("ClusterSetIP"), 1));
    let import = &cluster(&said, "tokyo").import;
    assert_eq!(import.service.as_deref(), Some("derived-web"));
    assert_eq!(import.sources[0].candidates[0].address, "10.1.0.1");
    assert_eq!(set.status().verdict.code, Code::Healthy);
}

#[test]
fn a_mistyped_name_is_told_what_there_is() {
    let verdict = Set::of(&[paris(), tokyo()]).explain("shop/wen").verdict;
    assert_eq!(verdict.code, Code::NotExported);
    assert!(verdict.next.unwrap().contains("there is shop/web"));
    let other = Set::of(&[paris(), tokyo()]).explain("prod/wen").verdict;
    assert!(!other.next.unwrap().contains("shop/web"), "names of other namespaces are not told");
}

#[test]
fn a_conflict_says_who_won_by_which_rule_and_who_has_to_change_what() {
    let local =
        ServiceFact { internal_traffic_policy: InternalTrafficPolicy::Local, ..service(&[("http", 80)]) };
    let rome = member("rome").exports_as(local, export(2)).serves("web-1", "http:80", &["10.2.0.1"]).heard();
    let said = Set::of(&[paris(), rome]).explain(WEB);
    assert_eq!(said.verdict, said.conflicts[0]);
    let message = &said.conflicts[0].message;
    assert!(message.contains("The export of paris is the oldest, since 1970-01-01T00:00:01Z."), "{message}");
    assert_eq!(
        said.conflicts[0].next.as_deref(),
        Some("Change spec.internalTrafficPolicy of Service shop/web in rome, to be the same as in paris.")
    );
    let precedence = |name| cluster(&said, name).export.as_ref().unwrap().precedence;
    assert_eq!((precedence("paris"), precedence("rome")), (Some(1), Some(2)));
    let codes = |name| -> Vec<Code> {
        cluster(&said, name).export.as_ref().unwrap().remarks.iter().map(|remark| remark.code).collect()
    };
    assert_eq!(codes("rome"), [Code::Exported, Code::InternalTrafficPolicyConflict]);
    assert_eq!(codes("paris"), [Code::Exported]);
}

#[test]
fn what_a_member_lacks_comes_before_what_follows_from_it() {
    // The exporter has no CRDs: the service is not exported, and that is not the cause.
    let mut set = Set::told(&[member("paris"), tokyo()]);
    set.up(&id("paris"), Up::Problem(Problem::KindAbsent(Kind::Export)));
    set.silence(&id("paris"));
    set.settle();
    let verdict = set.explain(WEB).verdict;
    assert_eq!(verdict.code, Code::KindMissing, "{verdict:?}");
    assert!(verdict.next.unwrap().contains("kubectl --context paris apply"));
}

#[test]
fn one_cluster_and_one_source_can_be_asked_for() {
    let rome = member("rome").exports("http:80", 2).serves("web-1", "http:80", &["10.2.0.1"]).heard();
    let mut set = Set::of(&[paris(), rome, tokyo()]);
    let said = set.explain_in(WEB, &[("in", "tokyo"), ("from", "rome")]);
    let clusters: Vec<&str> = said.clusters.iter().map(|part| part.cluster.as_str()).collect();
    assert_eq!(clusters, ["rome", "tokyo"]);
    let sources = &cluster(&said, "tokyo").import.sources;
    assert_eq!(sources.iter().map(|source| source.cluster.as_str()).collect::<Vec<_>>(), ["rome"]);
    let unknown = set.answer(names::SERVICES, Verb::Get, Some(WEB), &[("in", "osaka")]);
    assert_eq!(unknown.status, 400);
}

#[test]
fn a_list_goes_on_where_it_ended() {
    let mut paris = paris();
    for service in ["shop/a", "shop/b", "test/c"] {
        let name = namespace(service.split('/').next().unwrap());
        paris = paris.with(Change::Namespace(name, Some(NamespaceState::Active)));
        paris = paris.with(Change::Export(key(service), Some(export(1))));
    }
    let mut set = Set::of(&[paris, tokyo()]);
    let names = |list: &atoll_api::explain::ServiceList| -> Vec<String> {
        list.items.iter().map(|line| line.metadata.name.clone()).collect()
    };
    let first = set.list(&[("limit", "2")]);
    assert_eq!(names(&first), ["a", "b"]);
    let next = first.metadata.next.unwrap();
    let second = set.list(&[("limit", "2"), ("continue", &next)]);
    assert_eq!((names(&second), second.metadata.next), (vec!["web".to_owned(), "c".to_owned()], None));
    let shop = set.list(&[("namespace", "shop")]);
    assert_eq!(names(&shop), ["a", "b", "web"]);
    let codes: Vec<Code> = shop.items.iter().map(|line| line.code).collect();
    assert_eq!(codes, [Code::NoService, Code::NoService, Code::Imported]);
}

#[test]
fn many_addresses_are_counted_and_not_all_listed() {
    let addresses: Vec<String> = (0..900).map(|n| format!("10.1.{}.{}", n / 250, n % 250)).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let paris = member("paris").exports("http:80", 1).serves("web-1", "http:80", &addresses).heard();
    let said = Set::of(&[paris, tokyo()]).explain(WEB);
    let import = &cluster(&said, "tokyo").import;
    assert_eq!(import.endpoints.ready, 900);
    assert!(import.sources[0].more && import.sources[0].candidates.len() < 900);
}

#[test]
fn an_address_is_said_to_be_in_ranges_and_of_endpoints() {
    let mut set = Set::told(&[paris(), tokyo()]);
    let pods = vec!["10.1.0.0/16".parse().unwrap()];
    let declared = Ranges { pods, ..Ranges::default() };
    set.brain.declare(&id("paris"), Networks { declared, ..Networks::default() });
    set.settle();
    let said = set.address("10.1.0.1");
    assert_eq!(
        said.verdict.message,
        "10.1.0.1 is an endpoint of shop/web in paris, ready; EndpointSlice web-1."
    );
    assert_eq!(
        (said.ranges[0].range.as_str(), said.ranges[0].cluster.as_deref()),
        ("10.1.0.0/16", Some("paris"))
    );
    assert_eq!(said.endpoints[0].service, WEB);
    assert_eq!(set.answer(names::ADDRESSES, Verb::Get, Some("web"), &[]).status, 400);
}

#[test]
fn the_status_counts_and_says_what_is_wrong() {
    let mut set =
        Set::of(&[paris(), tokyo(), member("rome").with(Change::Export(key(WEB), Some(export(2)))).heard()]);
    let status = set.status();
    let totals = status.totals;
    assert_eq!((totals.services, totals.exports, totals.invalid_exports, totals.imports), (1, 1, 1, 3));
    assert_eq!(status.troubles[0].service, WEB);
    assert_eq!((status.verdict.code, status.members.len()), (Code::NoService, 3));
    assert!(status.verdict.message.starts_with("shop/web: "));
    set.change(&id("rome"), Change::Export(key(WEB), None));
    set.settle();
    let status = set.status();
    assert_eq!(
        (status.verdict.code, status.totals.invalid_exports, status.troubles.len()),
        (Code::Healthy, 0, 0)
    );
    let paris = status.members.iter().find(|member| member.cluster == "paris").unwrap();
    assert_eq!((paris.exports, paris.imports, paris.endpoints, paris.mode.as_str()), (1, 1, 1, "Push"));
}

#[test]
fn what_is_not_there_is_refused_with_a_reason() {
    let mut set = Set::of(&[paris()]);
    for (resource, verb, name, status) in [
        ("pods", Verb::Get, Some("x"), 404),
        (names::CLUSTERSETS, Verb::Get, Some("other"), 404),
        (names::SERVICES, Verb::Create, None, 405),
        (names::SERVICES, Verb::Get, Some("shop/Bad_Name"), 400),
    ] {
        let answered = set.answer(resource, verb, name, &[]);
        assert_eq!(answered.status, status, "{resource}");
        assert!(!answered.body["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn one_cluster_that_is_asked_for_does_not_hide_who_exports() {
    let verdict = Set::of(&[paris(), tokyo()]).explain_in(WEB, &[("in", "tokyo")]).verdict;
    assert_eq!(
        (verdict.code, verdict.message.as_str()),
        (Code::Imported, "Exported by paris; imported by tokyo.")
    );
}

#[test]
fn a_lost_member_does_not_hide_what_is_wrong_with_a_service() {
    let headless = ServiceFact { headless: true, ..service(&[("http", 80)]) };
    let rome = member("rome").exports_as(headless, export(2)).serves("web-1", "http:80", &["10.2.0.1"]);
    let mut set = Set::of(&[paris(), rome.heard(), tokyo()]);
    let before = set.explain(WEB).verdict;
    assert_eq!(before.code, Code::TypeConflict);
    let next = before.next.clone().unwrap();
    assert!(next.starts_with("Delete Service shop/web in rome and create it again without clusterIP: None"));
    set.lose(&id("tokyo"));
    for name in ["paris", "rome"] {
        set.change(&id(name), Change::Contact(atoll_engine::facts::Contact::Alive));
    }
    set.settle();
    assert_eq!(set.explain(WEB).verdict, before);
}

#[test]
fn what_is_not_exported_is_told_by_what_there_is() {
    let no_service = member("paris").with(Change::Export(key(WEB), Some(export(1)))).heard();
    let said = Set::of(&[no_service, tokyo()]).explain(WEB);
    let row = &cluster(&said, "tokyo").import.remarks[0];
    assert_eq!(row.message, "The ServiceExport in paris is not valid, and there is no other.");
    let mut set = Set::of(&[paris(), tokyo()]);
    let derived = set.explain("shop/derived-web").verdict;
    assert!(derived.message.contains("is the derived Service of the import shop/web"), "{derived:?}");
    let nowhere = set.explain("nowhere/web").verdict;
    assert!(nowhere.message.contains("no cluster has namespace nowhere"), "{nowhere:?}");
    let swapped = set.explain("shop/wbe").verdict;
    assert!(swapped.next.unwrap().contains("there is shop/web"));
}

#[test]
fn a_port_that_is_ignored_is_named_with_the_one_that_wins() {
    let rome = member("rome").exports("http:81", 2).serves("web-1", "http:81", &["10.2.0.1"]).heard();
    let said = Set::of(&[paris(), rome, tokyo()]).explain(WEB);
    let sources = &cluster(&said, "tokyo").import.sources;
    let remarks: Vec<&str> = sources
        .iter()
        .flat_map(|source| &source.remarks)
        .filter(|remark| remark.code == Code::PortClash)
        .map(|remark| remark.message.as_str())
        .collect();
    assert_eq!(remarks, ["Port http 81/TCP of rome is ignored: paris has http 80/TCP."]);
}

#[test]
fn lists_have_what_the_columns_of_tables_show() {
    let mut set = Set::of(&[paris(), tokyo()]);
    for (resource, kind, code) in [
        (names::SERVICES, names::SERVICE_EXPLANATION_LIST, "Imported"),
        (names::CLUSTERSETS, "ClusterSetStatusList", "Healthy"),
    ] {
        let answered = set.answer(resource, Verb::List, None, &[]);
        assert_eq!((answered.status, answered.body["kind"].as_str()), (200, Some(kind)));
        let items = answered.body["items"].as_array().unwrap();
        assert_eq!((items.len(), items[0]["verdict"]["code"].as_str()), (1, Some(code)));
    }
}

#[test]
fn a_declared_range_is_said_before_what_kind_of_address_it_is() {
    let mut set = Set::told(&[paris(), tokyo()]);
    let declared = Ranges { services: vec!["127.34.0.0/16".parse().unwrap()], ..Ranges::default() };
    set.brain.declare(&id("paris"), Networks { declared, ..Networks::default() });
    set.settle();
    assert_eq!(set.address("127.34.0.9").verdict.code, Code::OwnedByMember);
    assert_eq!(set.address("127.99.0.9").verdict.code, Code::AlwaysRefused);
}
