use std::collections::BTreeMap;

use serde_json::json;

use super::super::facts::{ContainerPort, ServiceFact, Target};
use super::*;

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), "web".to_owned())])
}

fn endpoint(cluster: &str, to: &str) -> Endpoint {
    Endpoint { cluster: cluster.to_owned(), to: to.parse().unwrap() }
}

fn source(cluster: &str, address: &str) -> Source {
    let ports = vec![ContainerPort { name: Some("http".to_owned()), port: 8080, protocol: "TCP".to_owned() }];
    let target = Target { port: 80, target: TargetPort::Number(8080) };
    Source {
        cluster: cluster.to_owned(),
        invalid: None,
        service: Some(ServiceFact { selector: labels(), ports: vec![target] }),
        endpoints: Some((1, 1)),
        pods: Some(vec![PodFact { labels: labels(), addresses: vec![address.parse().unwrap()], ports }]),
        policies: Some(Vec::new()),
    }
}

/// A service of two clusters, seen from a third.
fn facts() -> Facts {
    Facts {
        service: "shop/web".to_owned(),
        namespace: "shop".to_owned(),
        client: "tokyo".to_owned(),
        has_namespace: Some(true),
        imported: Some(true),
        addresses: vec!["10.113.0.9".parse().unwrap()],
        endpoints: vec![endpoint("oslo", "10.12.0.5:8080"), endpoint("paris", "10.11.0.5:8080")],
        sources: vec![source("oslo", "10.12.0.5"), source("paris", "10.11.0.5")],
        policies: Some(Vec::new()),
        dns: Dns { led: Led::InPlace, servers: Some(true) },
    }
}

fn probes() -> Probes {
    let reached = |facts: Facts| facts.endpoints.into_iter().map(|one| (one, Reach::Connected)).collect();
    Probes {
        from: vec!["10.13.0.7".parse().unwrap()],
        labels: BTreeMap::from([(atoll_api::names::label::CHECK.to_owned(), "probe".to_owned())]),
        endpoints: reached(facts()),
        service: vec![("10.113.0.9:80".parse().unwrap(), Reach::Connected)],
        others: Vec::new(),
        name: Some(Answer::Addresses(["10.113.0.9".parse().unwrap()].into())),
        own_name: Some(Answer::Addresses(["10.113.0.1".parse().unwrap()].into())),
    }
}

type Change = fn(&mut Facts, &mut Probes);

/// The codes, in their order.
fn found(change: Change) -> Vec<&'static str> {
    let (mut facts, mut probes) = (facts(), probes());
    change(&mut facts, &mut probes);
    diagnose(&facts, &probes).iter().map(|one| one.code).collect()
}

fn paris_is(probes: &mut Probes, reach: &Reach) {
    probes.endpoints[1].1 = reach.clone();
}

fn deny() -> Vec<k8s_openapi::api::networking::v1::NetworkPolicy> {
    let policy = json!({"metadata": {"name": "deny"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}});
    vec![serde_json::from_value(policy).unwrap()]
}

#[test]
fn a_healthy_service_has_no_cause() {
    assert_eq!(found(|_, _| ()), Vec::<&str>::new());
    // Policies that are there and drop nothing that was tried, and DNS that could not be looked at, are no causes.
    assert!(found(|facts, _| facts.sources[1].policies = Some(deny())).is_empty());
    assert!(
        found(|facts, _| facts.dns = Dns { led: Led::Unknown("no right".to_owned()), servers: None })
            .is_empty()
    );
    assert!(found(|facts, _| facts.dns.led = Led::Absent).is_empty(), "others may answer the name");
}

#[test]
fn what_objects_say_comes_before_any_probe() {
    let cases: [(&str, Change, &[&str]); 11] = [
        (
            "no export",
            |facts, _| {
                facts.sources.clear();
                facts.endpoints.clear();
                facts.imported = Some(false);
            },
            &["NotExported"],
        ),
        (
            "no Service",
            |facts, _| {
                facts.endpoints.clear();
                for source in &mut facts.sources {
                    source.invalid = Some(("NoService".to_owned(), "no".to_owned()));
                }
            },
            &["NoService", "NoService"],
        ),
        (
            "no namespace",
            |facts, _| {
                facts.has_namespace = Some(false);
                facts.imported = Some(false);
                facts.endpoints.clear();
            },
            &["NoNamespace"],
        ),
        (
            "no import",
            |facts, _| {
                facts.imported = Some(false);
                facts.endpoints.clear();
            },
            &["ImportMissing"],
        ),
        (
            "selector",
            |facts, _| {
                facts.endpoints.clear();
                facts.sources.pop();
                facts.sources[0].endpoints = Some((0, 0));
                facts.sources[0].pods = Some(Vec::new());
            },
            &["SelectorEmpty"],
        ),
        (
            "selector, pods not known",
            |facts, _| {
                facts.endpoints.clear();
                facts.sources.pop();
                facts.sources[0].endpoints = Some((0, 0));
                facts.sources[0].pods = None;
            },
            &["SelectorEmpty"],
        ),
        (
            "selector of one of two",
            |facts, probes| {
                facts.endpoints.pop();
                probes.endpoints.pop();
                facts.sources[1].endpoints = Some((0, 0));
                facts.sources[1].pods = Some(Vec::new());
            },
            &["SelectorEmpty"],
        ),
        (
            "not ready",
            |facts, _| {
                facts.endpoints.clear();
                facts.sources.pop();
                facts.sources[0].endpoints = Some((1, 0));
            },
            &["NoReadyEndpoints"],
        ),
        (
            "no selector",
            |facts, _| {
                facts.endpoints.clear();
                facts.sources.pop();
                facts.sources[0].endpoints = Some((0, 0));
                facts.sources[0].service = Some(ServiceFact::default());
            },
            &["NoEndpoints"],
        ),
        (
            "named target port",
            |facts, _| {
                facts.endpoints.clear();
                facts.sources.pop();
                let target = Target { port: 80, target: TargetPort::Name("htpp".to_owned()) };
                facts.sources[0].service = Some(ServiceFact { selector: labels(), ports: vec![target] });
            },
            &["TargetPortWrong"],
        ),
        ("nothing comes", |facts, _| facts.endpoints.clear(), &["NothingToServe"]),
    ];
    for (what, change, want) in cases {
        assert_eq!(found(change), want, "{what}");
    }
}

#[test]
fn where_a_connection_stops_is_the_cause() {
    let cases: [(&str, Change, &[&str]); 13] = [
        ("no route", |_, probes| paris_is(probes, &Reach::Silent), &["NoRoute"]),
        (
            "another pod answers",
            |_, probes| {
                paris_is(probes, &Reach::Silent);
                probes.others.push((endpoint("paris", "10.11.0.2:53"), Reach::Refused));
            },
            &["EndpointSilent"],
        ),
        (
            "policy of the source",
            |facts, probes| {
                paris_is(probes, &Reach::Silent);
                facts.sources[1].policies = Some(deny());
            },
            &["NetworkPolicyDrops"],
        ),
        (
            "policy and no route",
            |facts, probes| {
                paris_is(probes, &Reach::Silent);
                facts.sources[1].policies = Some(deny());
                probes.others.push((endpoint("paris", "10.11.0.2:53"), Reach::Silent));
            },
            &["NoRoute", "NetworkPolicyDrops"],
        ),
        (
            "policy of the client",
            |facts, probes| {
                for one in &mut probes.endpoints {
                    one.1 = Reach::Silent;
                }
                probes.service[0].1 = Reach::Silent;
                facts.policies = Some(deny());
            },
            &["NetworkPolicyDrops", "NetworkPolicyDrops"],
        ),
        ("port closed", |_, probes| paris_is(probes, &Reach::Refused), &["PortClosed"]),
        (
            "port closed, pods not known",
            |facts, probes| {
                facts.sources[1].pods = None;
                paris_is(probes, &Reach::Refused);
            },
            &["PortClosed"],
        ),
        (
            "target port",
            |facts, probes| {
                facts.endpoints[1] = endpoint("paris", "10.11.0.5:9999");
                probes.endpoints[1] = (endpoint("paris", "10.11.0.5:9999"), Reach::Refused);
            },
            &["TargetPortWrong"],
        ),
        ("mtu", |_, probes| paris_is(probes, &Reach::Stalled), &["LargePacketsLost"]),
        ("cluster IP refused", |_, probes| probes.service[0].1 = Reach::Refused, &["KubeProxyStopped"]),
        ("cluster IP silent", |_, probes| probes.service[0].1 = Reach::Silent, &["KubeProxyStopped"]),
        (
            "an endpoint is down, and so is the cluster IP",
            |_, probes| {
                paris_is(probes, &Reach::Silent);
                probes.service[0].1 = Reach::Silent;
            },
            &["NoRoute"],
        ),
        (
            "tools",
            |_, probes| paris_is(probes, &Reach::Unknown("nc: not found".to_owned())),
            &["ProbeFailed"],
        ),
    ];
    for (what, change, want) in cases {
        assert_eq!(found(change), want, "{what}");
    }
}

#[test]
fn a_name_that_fails_is_laid_to_who_should_answer_it() {
    let cases: [(&str, Change, &[&str]); 9] = [
        (
            "reverted",
            |facts, probes| {
                facts.dns.led = Led::Reverted("2026-01-01".to_owned());
                probes.name = Some(Answer::NotFound);
            },
            &["DnsNotLed"],
        ),
        (
            "never led",
            |facts, probes| {
                facts.dns.led = Led::Absent;
                probes.name = Some(Answer::NotFound);
            },
            &["DnsNotLed"],
        ),
        (
            "led elsewhere",
            |facts, probes| {
                facts.dns.led = Led::Outdated;
                probes.name = Some(Answer::Silent);
            },
            &["DnsNotLed"],
        ),
        (
            "not readable",
            |facts, probes| {
                facts.dns.led = Led::Unknown("no right".to_owned());
                probes.name = Some(Answer::NotFound);
            },
            &["DnsNotLed"],
        ),
        (
            "servers down",
            |facts, probes| {
                facts.dns.servers = Some(false);
                probes.name = Some(Answer::Failed);
            },
            &["DnsServerDown"],
        ),
        ("all is there", |_, probes| probes.name = Some(Answer::NotFound), &["NameUnknown"]),
        (
            "other addresses",
            |_, probes| {
                probes.name = Some(Answer::Addresses(["10.113.0.10".parse().unwrap()].into()));
            },
            &["NameUnknown"],
        ),
        (
            "no DNS",
            |_, probes| {
                probes.name = Some(Answer::Silent);
                probes.own_name = Some(Answer::Silent);
            },
            &["ClusterDnsDown"],
        ),
        (
            "DNS dropped",
            |facts, probes| {
                facts.policies = Some(vec![serde_json::from_value(json!({
                "metadata": {"name": "no-dns"},
                "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 8080}]}]},
            })).unwrap()]);
                probes.name = Some(Answer::Silent);
                probes.own_name = Some(Answer::Silent);
            },
            &["NetworkPolicyDrops"],
        ),
    ];
    for (what, change, want) in cases {
        assert_eq!(found(change), want, "{what}");
    }
}

#[test]
fn a_cause_names_the_policy_the_namespace_and_the_cluster() {
    let (mut facts, mut probes) = (facts(), probes());
    paris_is(&mut probes, &Reach::Silent);
    facts.sources[1].policies = Some(deny());
    let first = diagnose(&facts, &probes).remove(0);
    assert_eq!(first.cluster.as_deref(), Some("paris"));
    assert_eq!(
        first.message,
        "the NetworkPolicy shop/deny selects the pods and does not allow connections from tokyo"
    );
}
