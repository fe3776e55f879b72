//! What a `MultiClusterService` brings to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_engine::check::{Broken, check};
use atoll_engine::engine::Engine;
use atoll_engine::facts::*;
use atoll_engine::intent::{AskedPort, Clusters, CrossCluster};
use atoll_engine::names::{ClusterId, Hostname, NodeName, PortName};
use atoll_engine::plan::{
    DispatchPlan, Plan, Slice, SlicesFrom, StaleMark, Touched, Unknown, WhyNotDispatched, WhyNothing,
    WhyUntouched,
};
use atoll_engine::reason::CrossNote;
use atoll_engine::time::Time;
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{addresses, plan, plan_at};

const LOST: Time = Time::from_secs(900);

fn some(ids: &[&str]) -> Clusters {
    if ids.is_empty() { Clusters::All } else { Clusters::Named(ids.iter().map(|name| id(name)).collect()) }
}

fn asks(providers: &[&str], consumers: &[&str]) -> CrossCluster {
    CrossCluster { providers: some(providers), consumers: some(consumers), ..CrossCluster::default() }
}

/// A member with Service `web` and one endpoint, which tells its facts; no ServiceExport.
fn serving(name: &str, address: &str) -> Member {
    let fact = ServiceFact { ports: ports("http:80 admin:81"), ..service(&[]) };
    member(name)
        .with(Change::Service(key(WEB), Some(fact)))
        .serves("web-1", "http:8080 admin:8081", &[address])
        .with(Change::Followed(key(WEB), true))
}

fn asked(members: &[Member], asked: CrossCluster) -> Engine {
    let mut engine = engine(members);
    engine.set_intents(BTreeMap::from([(key(WEB), asked)]));
    engine
}

fn from(plan: &Plan, consumer: &str) -> BTreeMap<String, Vec<String>> {
    let DispatchPlan::Present(from) = &plan.clusters[&id(consumer)].dispatch else { return BTreeMap::new() };
    let names = |list: &[Arc<Slice>]| list.iter().map(|slice| slice.name.to_string()).collect();
    from.iter()
        .filter_map(|(source, from)| match from {
            SlicesFrom::Exactly(list, _) => Some((source.to_string(), names(list))),
            SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_) => None,
        })
        .collect()
}

fn only<'a>(plan: &'a Plan, consumer: &str, source: &str) -> &'a Slice {
    match &plan.clusters[&id(consumer)].dispatch {
        DispatchPlan::Present(from) => match &from[&id(source)] {
            SlicesFrom::Exactly(list, _) => &list[0],
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn providers_reach_consumers_as_karmadas_cases_have_it() {
    let members = [serving("m1", "10.1.0.1").heard(), serving("m2", "10.2.0.1").heard()];
    for (providers, consumers, m1, m2) in [
        (&["m1"][..], &["m2"][..], &[][..], &["m1"][..]),
        (&["m1", "m2"], &["m2"], &[], &["m1"]),
        (&["m2"], &["m1"], &["m2"], &[]),
        (&[], &["m2"], &[], &["m1"]),
        (&["m1"], &[], &[], &["m1"]),
        (&[], &[], &["m2"], &["m1"]),
    ] {
        let plan = plan(&mut asked(&members, asks(providers, consumers)));
        for (consumer, want) in [("m1", m1), ("m2", m2)] {
            let got = from(&plan, consumer);
            let want: BTreeMap<_, _> =
                want.iter().map(|p| ((*p).to_owned(), vec![format!("{p}-web-1")])).collect();
            assert_eq!(got, want, "{providers:?} to {consumers:?} in {consumer}");
        }
    }
}

#[test]
fn what_crosses_has_neither_node_nor_hostname_and_a_placeholder_crosses_too() {
    let mut fact = slice("http:8080", &["10.1.0.1"]);
    fact.endpoints[0].hostname = Some(Hostname::parse("web-0").unwrap());
    let headless = ServiceFact { headless: true, ports: ports("http:80"), ..service(&[]) };
    let paris = member("paris")
        .with(Change::Service(key(WEB), Some(headless)))
        .with(Change::Slice(key(WEB), slice_name("web-1"), Some(fact.into())))
        .with(Change::Slice(key(WEB), slice_name("web-2"), Some(slice("", &[]).into())))
        .with(Change::Followed(key(WEB), true));
    let members = [paris.heard(), member("tokyo").heard()];
    let planned = plan(&mut asked(&members, asks(&["paris"], &["tokyo"])));
    assert_eq!(from(&planned, "tokyo")["paris"], ["paris-web-1", "paris-web-2"]);
    let endpoint = &only(&planned, "tokyo", "paris").endpoints[0];
    assert!(endpoint.node.is_none() && endpoint.hostname.is_none() && endpoint.zone.is_some());
    let with_names = CrossCluster { hostnames: true, ..asks(&["paris"], &["tokyo"]) };
    let planned = plan(&mut asked(&members, with_names));
    assert!(only(&planned, "tokyo", "paris").endpoints[0].hostname.is_some());
}

#[test]
fn only_the_ports_that_are_asked_for_cross() {
    let members = [serving("paris", "10.1.0.1").heard(), member("tokyo").heard()];
    let http = PortName::parse("http").unwrap();
    for (name, port, crosses, said) in [
        (None, 80, &["http"][..], false),
        (Some(&http), 80, &["http"], false),
        (Some(&http), 81, &[], true),
        (None, 8080, &[], true),
    ] {
        let ports = vec![AskedPort { name: name.cloned(), port }];
        let planned = plan(&mut asked(&members, CrossCluster { ports, ..asks(&["paris"], &["tokyo"]) }));
        let slice = only(&planned, "tokyo", "paris");
        assert_eq!(slice.ports.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), crosses);
        let note = CrossNote::NoSuchPort { cluster: id("paris"), name: name.cloned(), port };
        assert_eq!(planned.crossing.as_ref().unwrap().notes.contains(&note), said, "{name:?} {port}");
    }
}

#[test]
fn a_provider_is_asked_for_its_facts_and_until_it_tells_them_nothing_of_it_goes() {
    let paris = || member("paris").heard();
    let mut engine = asked(&[paris(), member("tokyo").heard()], asks(&["paris"], &["tokyo"]));
    let before = plan(&mut engine);
    assert!(before.clusters[&id("paris")].follow && !before.clusters[&id("tokyo")].follow);
    let DispatchPlan::Present(held) = &before.clusters[&id("tokyo")].dispatch else { panic!() };
    assert_eq!(held[&id("paris")], SlicesFrom::KeepWhatIsThere(Unknown::NotHeard));
    let _ = engine.apply(&id("paris"), Change::Followed(key(WEB), true));
    let after = plan(&mut engine);
    assert_eq!(from(&after, "tokyo")["paris"], Vec::<String>::new());
    let notes = &after.crossing.as_ref().unwrap().notes;
    assert_eq!(*notes, [CrossNote::NoService { cluster: id("paris") }]);
}

#[test]
fn a_lost_provider_stays_or_goes_as_the_policy_says() {
    for (liveness, stays) in [(None, true), (Some(Liveness::Retain), true), (Some(Liveness::Withdraw), false)]
    {
        let members = [serving("paris", "10.1.0.1").heard(), member("tokyo").heard()];
        let mut engine = asked(&members, CrossCluster { liveness, ..asks(&["paris"], &["tokyo"]) });
        let before = plan(&mut engine);
        let _ = engine.apply(&id("paris"), Change::Contact(Contact::Lost { since: LOST }));
        let after = plan(&mut engine);
        let crossing = after.crossing.as_ref().unwrap();
        if stays {
            assert_eq!(from(&after, "tokyo"), from(&before, "tokyo"), "{liveness:?}");
            assert_eq!(crossing.stale, BTreeMap::from([(id("paris"), StaleMark::Since(LOST))]));
        } else {
            assert_eq!(from(&after, "tokyo"), BTreeMap::new(), "{liveness:?}");
            assert!(crossing.stale.is_empty());
        }
        // Taking it off the list takes its slices away, lost or not.
        engine.intend(key(WEB), Some(asks(&["tokyo"], &["tokyo"])));
        let DispatchPlan::Present(held) = &plan(&mut engine).clusters[&id("tokyo")].dispatch.clone() else {
            panic!()
        };
        assert_eq!(held.get(&id("paris")), None);
    }
}

#[test]
fn local_first_takes_remote_endpoints_only_while_there_is_no_ready_local_one() {
    let asks = CrossCluster { locality: Some(Locality::LocalFirst), ..asks(&["paris"], &["tokyo"]) };
    let members = [serving("paris", "10.1.0.1").heard(), serving("tokyo", "10.2.0.1").heard()];
    let mut engine = asked(&members, asks);
    let with_local = plan(&mut engine);
    let DispatchPlan::Present(held) = &with_local.clusters[&id("tokyo")].dispatch else { panic!() };
    assert_eq!(held[&id("paris")], SlicesFrom::Nothing(WhyNothing::LocalFirst));
    assert!(with_local.clusters[&id("tokyo")].follow, "its own endpoints have to be known");
    let mut unready = slice("http:8080", &["10.2.0.1"]);
    unready.endpoints[0].conditions.ready = Some(false);
    let _ = engine.apply(&id("tokyo"), Change::Slice(key(WEB), slice_name("web-1"), Some(unready.into())));
    assert_eq!(from(&plan(&mut engine), "tokyo")["paris"], ["paris-web-1"]);
    let _ = engine.apply(&id("tokyo"), Change::Followed(key(WEB), false));
    let unknown = plan(&mut engine);
    let DispatchPlan::Present(held) = &unknown.clusters[&id("tokyo")].dispatch else { panic!() };
    assert!(matches!(held[&id("paris")], SlicesFrom::KeepWhatIsThere(_)));
}

#[test]
fn what_a_refused_author_asks_for_changes_nothing_and_takes_nothing_away() {
    let members = [serving("paris", "10.1.0.1"), serving("tokyo", "10.2.0.1")];
    let frozen = |providers, consumers| CrossCluster { frozen: true, ..asks(providers, consumers) };
    for (providers, consumers) in [(&["paris"][..], &["tokyo"][..]), (&["tokyo"], &["paris"]), (&[], &[])] {
        let planned = plan(&mut asked(&members, frozen(providers, consumers)));
        for part in planned.clusters.values() {
            assert_eq!(part.dispatch, DispatchPlan::Untouched(WhyUntouched::AuthorRefused));
            assert!(!part.follow, "nothing is asked for in their name");
        }
        assert!(planned.balanced.is_none() && planned.crossing.is_some());
    }
    // And back: as if it had never been.
    let mut engine = asked(&members, frozen(&["paris"], &["tokyo"]));
    let _ = plan(&mut engine);
    engine.intend(key(WEB), Some(asks(&["paris"], &["tokyo"])));
    assert_eq!(plan(&mut engine), plan(&mut asked(&members, asks(&["paris"], &["tokyo"]))));
}

#[test]
fn a_service_that_is_exported_as_well_has_both_and_neither_changes_the_other() {
    let paris = serving("paris", "10.1.0.1").with(Change::Export(key(WEB), Some(export(1)))).heard();
    let members = [paris, member("tokyo").heard()];
    let exported = plan(&mut engine(&members));
    let both = plan(&mut asked(&members, asks(&["paris"], &["tokyo"])));
    assert_eq!(exported.clusters[&id("tokyo")].import, both.clusters[&id("tokyo")].import);
    assert_eq!(addresses(&both, "tokyo"), ["10.1.0.1"]);
    assert_eq!(from(&both, "tokyo")["paris"], ["paris-web-1"]);
}

#[test]
fn who_is_no_member_is_said_and_comes_in_when_it_joins() {
    let mut engine = asked(&[serving("paris", "10.1.0.1").heard()], asks(&["paris"], &["tokyo"]));
    let before = plan(&mut engine);
    let crossing = before.crossing.as_ref().unwrap();
    assert_eq!(crossing.notes, [CrossNote::NotAMember { cluster: id("tokyo") }]);
    assert_eq!(crossing.consumers, BTreeSet::new());
    for change in member("tokyo").heard().changes {
        let _ = engine.apply(&id("tokyo"), change);
    }
    let outcomes = engine.plan_dirty(Time::from_secs(1000));
    assert_eq!(from(&outcomes[0].plan, "tokyo")["paris"], ["paris-web-1"]);
}

#[test]
fn the_clusters_own_api_never_crosses_and_an_absent_namespace_is_said() {
    let api = key("default/kubernetes");
    let mut engine = engine(&[serving("paris", "10.1.0.1").heard(), member("tokyo").heard()]);
    engine.set_intents(BTreeMap::from([(api.clone(), asks(&[], &[])), (key(WEB), asks(&[], &[]))]));
    let planned = engine.plan(&api, Time::from_secs(1000)).plan;
    assert_eq!(planned.crossing.as_ref().unwrap().notes, [CrossNote::KubernetesApi]);
    let _ = engine.apply(&id("tokyo"), Change::Namespace(namespace("shop"), None));
    let planned = plan(&mut engine);
    let tokyo = &planned.clusters[&id("tokyo")];
    assert_eq!(tokyo.dispatch, DispatchPlan::Absent(WhyNotDispatched::NoNamespace));
    assert!(
        planned.crossing.as_ref().unwrap().notes.contains(&CrossNote::NoNamespace { cluster: id("tokyo") })
    );
}

#[test]
fn a_changed_slice_touches_that_slice_and_nothing_else() {
    let members = [serving("paris", "10.1.0.1").heard(), member("tokyo").heard(), member("oslo").heard()];
    let mut engine = asked(&members, asks(&["paris"], &[]));
    plan(&mut engine);
    let more = slice("http:8080 admin:8081", &["10.1.0.1", "10.1.0.2"]);
    let _ = engine.apply(&id("paris"), Change::Slice(key(WEB), slice_name("web-1"), Some(more.into())));
    let outcome = plan_at(&mut engine, Time::from_secs(1001));
    assert_eq!(outcome.touched, Touched::Slices([(id("paris"), slice_name("web-1"))].into()));
    assert_eq!(outcome.memory, None);
}

#[test]
fn a_spoiled_plan_is_found_out() {
    type Spoil = fn(&mut Plan);
    fn held(plan: &mut Plan) -> &mut litemap::LiteMap<ClusterId, SlicesFrom> {
        match &mut Arc::make_mut(plan.clusters.get_mut(&id("tokyo")).unwrap()).dispatch {
            DispatchPlan::Present(from) => Arc::make_mut(from),
            other => panic!("{other:?}"),
        }
    }
    fn spoil(plan: &mut Plan, how: impl FnOnce(&mut Slice)) {
        let from = held(plan).get_mut(&id("paris")).unwrap();
        let SlicesFrom::Exactly(list, _) = from else { panic!("{from:?}") };
        let mut slices = list.to_vec();
        how(Arc::make_mut(&mut slices[0]));
        *list = slices.into();
    }
    let name = || slice_name("paris-web-1");
    let cases: Vec<(Spoil, Broken)> = vec![
        (
            |p| Arc::make_mut(p.clusters.get_mut(&id("paris")).unwrap()).follow = false,
            Broken::ProviderNotFollowed,
        ),
        (
            |p| {
                let tokyo = p.clusters[&id("tokyo")].dispatch.clone();
                Arc::make_mut(p.clusters.get_mut(&id("paris")).unwrap()).dispatch = tokyo;
            },
            Broken::DispatchedUnasked,
        ),
        (
            |p| {
                let absent = DispatchPlan::Absent(WhyNotDispatched::NotAsked);
                Arc::make_mut(p.clusters.get_mut(&id("tokyo")).unwrap()).dispatch = absent;
            },
            Broken::DispatchMissing,
        ),
        (
            |p| {
                *held(p).get_mut(&id("paris")).unwrap() =
                    SlicesFrom::Exactly([].into(), atoll_engine::reason::Kept::Alive);
            },
            Broken::SliceMissing { source: id("paris"), slice: slice_name("web-1") },
        ),
        (|p| drop(held(p).remove(&id("paris"))), Broken::UnheardWithdrawn { source: id("paris") }),
        (
            |p| spoil(p, |slice| slice.endpoints[0].hostname = Some(Hostname::parse("web-0").unwrap())),
            Broken::ForeignHostname { slice: name() },
        ),
        (
            |p| spoil(p, |slice| slice.endpoints[0].node = Some(NodeName::parse("node-1").unwrap())),
            Broken::ForeignNode { slice: name() },
        ),
        (|p| spoil(p, |slice| slice.source = id("tokyo")), Broken::WrongSource { slice: name() }),
        (
            |p| spoil(p, |slice| slice.endpoints[0].addresses = ["10.9.9.9".parse().unwrap()].into()),
            Broken::Invented { slice: name(), address: "10.9.9.9".parse().unwrap() },
        ),
    ];
    let members = [serving("paris", "10.1.0.1").heard(), member("tokyo").heard()];
    for (spoil, broken) in cases {
        let mut engine = asked(&members, asks(&["paris"], &["tokyo"]));
        let mut planned = Plan::clone(&plan(&mut engine));
        spoil(&mut planned);
        let found: Vec<_> = check(engine.world(), &planned).into_iter().map(|found| found.broken).collect();
        assert!(found.contains(&broken), "{broken:?} is not in {found:?}");
    }
}
