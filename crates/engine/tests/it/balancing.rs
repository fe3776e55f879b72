//! What the balancer of a `MultiClusterService` leads to.

use std::collections::BTreeMap;

use atoll_engine::engine::Engine;
use atoll_engine::facts::*;
use atoll_engine::intent::{AskedPort, Clusters, CrossCluster};
use atoll_engine::plan::{Balanced, DispatchPlan, Plan};
use atoll_engine::time::Time;
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::plan;

const LOST: Time = Time::from_secs(900);

fn asks() -> CrossCluster {
    CrossCluster { consumers: Clusters::Named([].into()), balanced: true, ..CrossCluster::default() }
}

fn serving(name: &str, service_ports: &str, slice_ports: &str, addresses: &[&str]) -> Member {
    let fact = ServiceFact { ports: ports(service_ports), ..service(&[]) };
    member(name)
        .with(Change::Service(key(WEB), Some(fact)))
        .serves("web-1", slice_ports, addresses)
        .with(Change::Followed(key(WEB), true))
}

fn asked(members: &[Member], asked: CrossCluster) -> Engine {
    let mut engine = engine(members);
    engine.set_intents(BTreeMap::from([(key(WEB), asked)]));
    engine
}

fn balanced(plan: &Plan) -> &Balanced {
    plan.balanced.as_deref().expect("it is balanced")
}

/// `TCP 80 → 10.1.0.1:8080 paris`, in order.
fn leads(plan: &Plan) -> Vec<String> {
    let each = balanced(plan).backends.iter().map(|(((protocol, port), address), backend)| {
        let away = if backend.ready { "" } else { " leaving" };
        format!("{} {port} → {address} {}{away}", protocol.as_str(), backend.cluster)
    });
    each.collect()
}

#[test]
fn every_port_leads_to_the_endpoints_of_all_providers_by_each_ones_own_names() {
    let members = [
        serving("paris", "http:80 dns:53/udp", "http:8080 dns:5353/udp", &["10.1.0.1", "10.1.0.2"]).heard(),
        serving("tokyo", "web:80", "web:9090", &["10.2.0.1"]).heard(),
    ];
    let planned = plan(&mut asked(&members, asks()));
    assert_eq!(
        leads(&planned),
        [
            "TCP 80 → 10.1.0.1:8080 paris",
            "TCP 80 → 10.1.0.2:8080 paris",
            "TCP 80 → 10.2.0.1:9090 tokyo",
            "UDP 53 → 10.1.0.1:5353 paris",
            "UDP 53 → 10.1.0.2:5353 paris",
        ]
    );
    let names: Vec<_> = balanced(&planned).ports.values().map(ToString::to_string).collect();
    assert_eq!(names, ["http", "dns"]);
    for part in planned.clusters.values() {
        assert!(
            part.follow && matches!(part.dispatch, DispatchPlan::Absent(_)),
            "members tell, and hold nothing"
        );
    }
    let one = CrossCluster { ports: vec![AskedPort { name: None, port: 53 }], ..asks() };
    assert_eq!(leads(&plan(&mut asked(&members, one))).len(), 2);
    let some = CrossCluster { providers: Clusters::Named([id("tokyo")].into()), ..asks() };
    assert_eq!(leads(&plan(&mut asked(&members, some))), ["TCP 80 → 10.2.0.1:9090 tokyo"]);
}

#[test]
fn an_endpoint_that_leaves_gets_nothing_new_and_one_that_does_not_serve_is_not_listed() {
    let of = |ready, serving| EndpointConditions { ready: Some(ready), serving, terminating: Some(!ready) };
    let fact = SliceFact {
        endpoints: vec![
            endpoint("10.1.0.1", of(true, Some(true))),
            endpoint("10.1.0.2", of(false, Some(true))),
            endpoint("10.1.0.3", of(false, Some(false))),
            endpoint("10.1.0.4", of(false, None)),
            endpoint("127.0.0.1", of(true, Some(true))), // may not leave its cluster
        ],
        ..slice("http:8080", &[])
    };
    let member = serving("paris", "http:80", "http:8080", &[])
        .with(Change::Slice(key(WEB), slice_name("web-1"), Some(fact.into())))
        .heard();
    let planned = plan(&mut asked(&[member], asks()));
    assert_eq!(leads(&planned), ["TCP 80 → 10.1.0.1:8080 paris", "TCP 80 → 10.1.0.2:8080 paris leaving"]);
}

#[test]
fn nothing_is_said_before_providers_have_been_heard_and_lost_ones_go_by_policy() {
    let paris = serving("paris", "http:80", "http:8080", &["10.1.0.1"]).heard();
    let tokyo = serving("tokyo", "http:80", "http:8080", &["10.2.0.1"]);
    let planned = plan(&mut asked(&[paris.clone(), member("tokyo")], asks()));
    assert_eq!(balanced(&planned).awaited, [id("tokyo")].into());

    let lost = Change::Contact(Contact::Lost { since: LOST });
    for (liveness, both, unheard) in
        [(None, 2, 1), (Some(Liveness::Retain), 2, 1), (Some(Liveness::Withdraw), 1, 0)]
    {
        let asks = CrossCluster { liveness, ..asks() };
        let heard = tokyo.clone().heard().with(lost.clone());
        let planned = plan(&mut asked(&[paris.clone(), heard], asks.clone()));
        assert_eq!(leads(&planned).len(), both, "{liveness:?}");
        let planned = plan(&mut asked(&[paris.clone(), member("tokyo").with(lost.clone())], asks));
        assert_eq!((leads(&planned).len(), balanced(&planned).unheard.len()), (1, unheard), "{liveness:?}");
        assert!(balanced(&planned).awaited.is_empty());
    }
}

#[test]
fn a_changed_endpoint_changes_what_is_balanced_and_nothing_in_any_member() {
    let members = [serving("paris", "http:80", "http:8080", &["10.1.0.1"]).heard()];
    let mut engine = asked(&members, asks());
    assert_eq!(leads(&plan(&mut engine)).len(), 1);
    let more = Change::Slice(key(WEB), slice_name("web-2"), Some(slice("http:8080", &["10.1.0.2"]).into()));
    let _ = engine.apply(&id("paris"), more);
    let outcome = engine.plan_next(Time::from_secs(1000)).unwrap();
    assert_eq!(leads(&outcome.plan).len(), 2);
    assert_eq!(outcome.touched, atoll_engine::plan::Touched::Nothing);
    assert_eq!(leads(engine.last_plan(&key(WEB)).unwrap()).len(), 2);
}

#[test]
fn affinity_is_the_services_own() {
    for (affinity, timeout, want) in [
        (SessionAffinity::None, Some(5), None),
        (SessionAffinity::ClientIp, None, Some(10_800)),
        (SessionAffinity::ClientIp, Some(5), Some(5)),
    ] {
        let fact = ServiceFact {
            session_affinity: affinity,
            client_ip_timeout: timeout,
            ports: ports("http:80"),
            ..service(&[])
        };
        let member = serving("paris", "", "http:8080", &["10.1.0.1"])
            .with(Change::Service(key(WEB), Some(fact)))
            .heard();
        assert_eq!(balanced(&plan(&mut asked(&[member], asks()))).affinity, want);
    }
}
