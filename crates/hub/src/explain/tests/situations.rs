//! For each code a situation in which it is given. A code that no situation gives fails the test.

use std::collections::BTreeSet;

use atoll_api::names::code::{Code, Severity};
use atoll_engine::facts::*;
use atoll_engine::fences::{Fences, Pattern, Policy};
use atoll_engine::intent::imports::{Asked, HubImports, ImportPort, ImportTo};
use atoll_engine::intent::{AskedPort, Clusters, CrossCluster};
use atoll_engine::names::SliceName;
use atoll_engine::network::{Family, Networks, Ranges, Reserved};
use atoll_engine::world::Change;
use atoll_link::{Access, Field, Health, Kind, ObjectName, Problem, PropertyName, Up};

use super::fixture::*;
use super::set::{Set, codes};
use crate::membership::credentials::tests::wanted;
use crate::membership::roster::{Event, NoLink, Wanted};
use crate::services::brain::Ended;

/// Given by the answers about policies, which have a task of their own.
const ELSEWHERE: &[Code] = &[
    Code::Propagated,
    Code::NoPolicy,
    Code::PolicyBeaten,
    Code::PolicyRefused,
    Code::Chosen,
    Code::NotChosen,
    Code::Unschedulable,
    Code::Overridden,
    Code::Copied,
    Code::CopyFailed,
    Code::CopyPending,
];

/// A member that exports `web` with one endpoint.
fn paris() -> Member {
    member("paris").exports("http:80", 1).serves("web-1", "http:80", &["10.1.0.1"]).heard()
}

fn tokyo() -> Member {
    member("tokyo").heard()
}

fn served(member: &str, address: &str, service: ServiceFact, created: i64) -> Member {
    super::fixture::member(member)
        .exports_as(service, export(created))
        .serves("web-1", "http:80", &[address])
        .heard()
}

fn http() -> ServiceFact {
    service(&[("http", 80)])
}

fn web(set: &mut Set) -> BTreeSet<Code> {
    codes(&set.explain(WEB))
}

fn of(members: &[Member]) -> BTreeSet<Code> {
    web(&mut Set::of(members))
}

/// Two exports that differ in one thing.
fn conflict(other: ServiceFact) -> BTreeSet<Code> {
    of(&[paris(), served("rome", "10.2.0.1", other, 2)])
}

fn conflict_of(change: fn(&mut ExportFact)) -> BTreeSet<Code> {
    let mut other = export(2);
    change(&mut other);
    of(&[paris(), member("rome").exports_as(http(), other).heard()])
}

fn slice_of(ready: bool, addresses: &[&str]) -> Change {
    let mut fact = slice("http:80", addresses);
    fact.endpoints.iter_mut().for_each(|endpoint| endpoint.conditions.ready = Some(ready));
    Change::Slice(key(WEB), slice_name("web-1"), Some(fact.into()))
}

/// With what members report beside facts.
fn reporting(member: &str, up: Up) -> BTreeSet<Code> {
    let mut set = Set::of(&[paris(), tokyo()]);
    set.up(&id(member), up);
    web(&mut set)
}

fn object(kind: Kind, name: &str) -> ObjectName {
    ObjectName { kind, namespace: Some(namespace("shop")), name: name.into() }
}

fn fenced(fences: Fences) -> BTreeSet<Code> {
    let mut set = Set::told(&[paris(), tokyo()]);
    set.brain.set_fences(fences);
    set.settle();
    web(&mut set)
}

fn asking(explicit: bool, asked: Option<Asked>) -> BTreeSet<Code> {
    let mut set = Set::told(&[paris(), tokyo()]);
    set.brain.set_imports(HubImports {
        explicit: explicit.then(|| namespace("shop")).into_iter().collect(),
        asked: asked.map(|asked| (key(WEB), asked)).into_iter().collect(),
    });
    set.settle();
    web(&mut set)
}

fn crossing(members: &[Member], asked: CrossCluster) -> BTreeSet<Code> {
    let mut set = Set::told(members);
    for member in members {
        set.up(&member.id, Up::Change(Change::Followed(key(WEB), true)));
    }
    set.brain.intend(&key(WEB), Some(asked));
    set.settle();
    web(&mut set)
}

fn named(names: &[&str]) -> Clusters {
    Clusters::Named(names.iter().map(|name| id(name)).collect())
}

fn from_paris() -> CrossCluster {
    CrossCluster { providers: named(&["paris"]), consumers: named(&["tokyo"]), ..CrossCluster::default() }
}

/// `paris` is lost; its export says what happens then.
fn lost(liveness: Liveness) -> BTreeSet<Code> {
    let fact = ExportFact { liveness: Some(liveness), ..export(1) };
    let paris = member("paris").exports_as(http(), fact).serves("web-1", "http:80", &["10.1.0.1"]).heard();
    let rome = served("rome", "10.2.0.1", http(), 2);
    let mut set = Set::of(&[paris, rome, tokyo()]);
    set.lose(&id("paris"));
    set.settle();
    web(&mut set)
}

fn ranges(pods: &[&str]) -> Networks {
    let pods = pods.iter().map(|range| range.parse().unwrap()).collect();
    Networks { declared: Ranges { pods, ..Ranges::default() }, ..Networks::default() }
}

fn address(asked: &str) -> BTreeSet<Code> {
    let mut set = Set::told(&[paris(), tokyo()]);
    set.brain.declare(&id("paris"), ranges(&["10.1.0.0/16"]));
    let net = |text: &str| vec![text.parse().unwrap()];
    set.brain.reserve(Reserved { hub: net("192.168.7.1/32"), pool: net("10.250.0.0/16") });
    set.settle();
    codes(&set.address(asked))
}

fn blocked() -> BTreeSet<Code> {
    let mut set = Set::of(&[paris(), tokyo()]);
    let cluster = Wanted { secret: Err(NoLink::NoEndpoint), ..wanted() };
    set.roster.step(Event::Cluster(id("paris"), Box::new(cluster)));
    set.roster.step(Event::Listed);
    web(&mut set)
}

fn unwritten(ended: Option<Ended>) -> BTreeSet<Code> {
    let mut set = Set::told(&[paris(), tokyo()]);
    set.plan(false);
    if let Some(ended) = ended {
        set.brain.persisted(&key(WEB), ended);
    }
    web(&mut set)
}

fn situation(code: Code) -> BTreeSet<Code> {
    let families = |families: &[Family]| Capabilities { families: families.to_vec(), kubernetes_minor: 36 };
    let heard_as = |can: Capabilities| member("tokyo").with(Change::Heard(can));
    let serving = |service: ServiceFact| of(&[served("paris", "10.1.0.1", service, 1), tokyo()]);
    let system = |denied: bool| Fences {
        denied: if denied { vec![Pattern::new("sh*")] } else { Vec::new() },
        own: (!denied).then(|| namespace("shop")),
        ..Fences::default()
    };
    let port = |port| AskedPort { name: None, port };
    let to = |ports: Vec<ImportPort>| Asked::To(ImportTo { clusters: [id("tokyo")].into(), ports }.into());
    match code {
        Code::Exported | Code::Used | Code::Imported => of(&[paris(), tokyo()]),
        Code::NotExported => of(&[tokyo()]),
        Code::NoService => of(&[member("paris").with(Change::Export(key(WEB), Some(export(1)))).heard()]),
        Code::ExternalName => serving(ServiceFact { service_type: ServiceType::ExternalName, ..http() }),
        Code::DerivedService => serving(ServiceFact { derived: true, ..http() }),
        Code::KubernetesApi => {
            let api = key("default/kubernetes");
            let active = Change::Namespace(namespace("default"), Some(NamespaceState::Active));
            let paris = member("paris").with(active).with(Change::Service(api.clone(), Some(http())));
            codes(
                &Set::of(&[paris.with(Change::Export(api, Some(export(1)))).heard()])
                    .explain("default/kubernetes"),
            )
        }
        Code::SystemNamespace => fenced(system(false)),
        Code::DeniedNamespace => fenced(system(true)),
        Code::NotAllowed => {
            let all = || vec![Pattern::new("*")];
            let policy =
                Policy { namespaces: all(), export_from: vec![Pattern::new("rome")], ..Policy::default() };
            fenced(Fences { policies: vec![policy], ..Fences::default() })
        }
        Code::LimitExceeded => {
            let policy = Policy {
                namespaces: vec![Pattern::new("*")],
                export_from: vec![Pattern::new("*")],
                services: Some(0),
                ..Policy::default()
            };
            fenced(Fences { policies: vec![policy], ..Fences::default() })
        }
        Code::KeyNotExported => {
            conflict_of(|export| drop(export.labels.insert("k8s.io/x".into(), "y".into())))
        }
        Code::NoEndpoints => of(&[member("paris").exports("http:80", 1).heard(), tokyo()]),
        Code::NoReadyEndpoints | Code::NotReady | Code::NothingToServe => {
            of(&[member("paris").exports("http:80", 1).with(slice_of(false, &["10.1.0.1"])).heard(), tokyo()])
        }
        Code::AllEndpointsRefused | Code::AddressRefused => of(&[
            member("paris").exports("http:80", 1).serves("web-1", "http:80", &["127.0.0.1"]).heard(),
            tokyo(),
        ]),
        Code::EndpointsRefused => {
            let slice = &["127.0.0.1", "10.1.0.1"];
            of(&[member("paris").exports("http:80", 1).serves("web-1", "http:80", slice).heard(), tokyo()])
        }
        Code::PortConflict | Code::PortClash => conflict(service(&[("http", 81)])),
        Code::PortRenamed => of(&[
            paris(),
            member("rome").exports("other:80", 2).serves("web-1", "other:80", &["10.2.0.1"]).heard(),
        ]),
        Code::PortNotOfService => of(&[member("paris")
            .exports("http:80", 1)
            .serves("web-1", "http:80 more:9", &["10.1.0.1"])
            .heard()]),
        Code::TypeConflict => conflict(ServiceFact { headless: true, ..http() }),
        Code::SessionAffinityConflict => {
            conflict(ServiceFact { session_affinity: SessionAffinity::ClientIp, ..http() })
        }
        Code::SessionAffinityConfigConflict => {
            let sticky = |seconds| ServiceFact {
                session_affinity: SessionAffinity::ClientIp,
                client_ip_timeout: Some(seconds),
                ..http()
            };
            of(&[served("paris", "10.1.0.1", sticky(10), 1), served("rome", "10.2.0.1", sticky(20), 2)])
        }
        Code::LabelsConflict => {
            conflict_of(|export| drop(export.labels.insert("team".into(), "shop".into())))
        }
        Code::AnnotationsConflict => {
            conflict_of(|export| drop(export.annotations.insert("team".into(), "shop".into())))
        }
        Code::InternalTrafficPolicyConflict => {
            conflict(ServiceFact { internal_traffic_policy: InternalTrafficPolicy::Local, ..http() })
        }
        Code::TrafficDistributionConflict => {
            conflict(ServiceFact { traffic_distribution: Some(TrafficDistribution::PreferClose), ..http() })
        }
        Code::IPFamilyConflict => conflict(ServiceFact { families: vec![Family::V6], ..http() }),
        Code::NoNamespace => {
            let mut tokyo = tokyo();
            tokyo.changes.retain(|change| !matches!(change, Change::Namespace(..)));
            of(&[paris(), tokyo])
        }
        Code::NamespaceTerminating => {
            let going = Change::Namespace(namespace("shop"), Some(NamespaceState::Terminating));
            of(&[paris(), tokyo().with(going)])
        }
        Code::NotAsked => asking(true, None),
        Code::PlacementUnknown => asking(true, Some(Asked::Unplaced)),
        Code::NothingKnown => {
            let mut set = Set::told(&[tokyo(), member("paris")]);
            set.silence(&id("paris"));
            set.settle();
            set.up(&id("tokyo"), Up::Holds(key(WEB)));
            set.up(&id("tokyo"), Up::Change(Change::Service(key(WEB), Some(http()))));
            set.settle();
            web(&mut set)
        }
        Code::IPFamilyNotSupported => of(&[paris(), heard_as(families(&[Family::V6]))]),
        Code::FamiliesLeftOut => {
            let both = ServiceFact { families: vec![Family::V4, Family::V6], ..http() };
            of(&[served("paris", "10.1.0.1", both, 1), heard_as(families(&[Family::V4]))])
        }
        Code::DerivedServiceNamesTaken | Code::NoDerivedService => {
            let hashed = atoll_engine::services::naming::derived(&key(WEB));
            let taken = [key("shop/derived-web")].into();
            let hashed = match hashed.choose(&taken, false) {
                atoll_engine::services::naming::Derived::PlainTaken { hashed, .. } => hashed,
                other => panic!("{other:?}"),
            };
            let taken = |name: &str| Change::Taken(key(&format!("shop/{name}")), true);
            of(&[paris(), tokyo().with(taken("derived-web")).with(taken(hashed.as_str()))])
        }
        Code::DerivedServiceRenamed => {
            of(&[paris(), tokyo().with(Change::Taken(key("shop/derived-web"), true))])
        }
        Code::NoSuchPort => {
            asking(false, Some(to(vec![ImportPort { name: None, protocol: Protocol::Tcp, port: 999 }])))
        }
        Code::LocalWithoutOwnEndpoints => {
            serving(ServiceFact { internal_traffic_policy: InternalTrafficPolicy::Local, ..http() })
        }
        Code::TrafficDistributionIgnored => {
            let near =
                ServiceFact { traffic_distribution: Some(TrafficDistribution::PreferSameNode), ..http() };
            let old = Capabilities { families: vec![Family::V4], kubernetes_minor: 28 };
            of(&[served("paris", "10.1.0.1", near, 1), heard_as(old)])
        }
        Code::KeptByPolicy => lost(Liveness::Retain),
        Code::KeptWithoutProbe => lost(Liveness::Probe),
        Code::Withdrawn | Code::MemberLost => lost(Liveness::Withdraw),
        Code::LocalFirst => {
            let near = ExportFact { locality: Some(Locality::LocalFirst), ..export(1) };
            let paris =
                member("paris").exports_as(http(), near).serves("web-1", "http:80", &["10.1.0.1"]).heard();
            of(&[paris, served("rome", "10.2.0.1", http(), 2)])
        }
        Code::NotHeard | Code::Starting => {
            let mut set = Set::told(&[paris(), member("tokyo")]);
            let before = web(&mut set);
            set.settle();
            before.into_iter().chain(web(&mut set)).collect()
        }
        Code::PortNotAsked => {
            let two = service(&[("http", 80), ("admin", 81)]);
            let paris = member("paris").with(Change::Service(key(WEB), Some(two)));
            let paris = paris.serves("web-1", "http:80 admin:81", &["10.1.0.1"]).heard();
            crossing(&[paris, tokyo()], CrossCluster { ports: vec![port(80)], ..from_paris() })
        }
        Code::NotPlannedYet => {
            let mut set = Set::of(&[paris(), tokyo()]);
            set.up(&id("paris"), Up::Change(slice_of(true, &["10.1.0.2"])));
            web(&mut set)
        }
        Code::WaitsForHubApi => {
            let waits = unwritten(None);
            let refused = unwritten(Some(Ended::Refused));
            waits.intersection(&refused).copied().collect()
        }
        Code::WaitsForMember => {
            let mut set = Set::of(&[paris(), tokyo()]);
            set.up(&id("paris"), Up::Change(slice_of(true, &["10.1.0.2"])));
            set.settle();
            web(&mut set)
        }
        Code::MemberSilent => {
            let mut set = Set::of(&[paris(), tokyo()]);
            set.silence(&id("paris"));
            web(&mut set)
        }
        Code::MemberBlocked => blocked(),
        Code::Forbidden => {
            let problem =
                Problem::Forbidden { verb: Access::Create, kind: Kind::Import, why: "no".to_owned() };
            reporting("tokyo", Up::Problem(problem))
        }
        Code::KindMissing => reporting("tokyo", Up::Problem(Problem::KindAbsent(Kind::Import))),
        Code::NotManaged => {
            let object = object(Kind::Import, "web");
            reporting("tokyo", Up::Problem(Problem::Foreign { service: key(WEB), object }))
        }
        Code::Rejected => {
            let object = object(Kind::Service, "derived-web");
            reporting("tokyo", Up::Problem(Problem::Refused { object, why: "by a webhook".to_owned() }))
        }
        Code::NotCopied => {
            let (object, field) = (object(Kind::Slice, "web-7xk2p"), Field::Endpoint);
            let why = "\"x\" is not an address".to_owned();
            reporting("paris", Up::Problem(Problem::Unrepresentable { object, field, why }))
        }
        Code::OtherClusterProperty => {
            let (theirs, ours) = ("other".to_owned(), "tokyo".to_owned());
            reporting(
                "tokyo",
                Up::Problem(Problem::OtherProperty { name: PropertyName::ClusterId, theirs, ours }),
            )
        }
        Code::MemberNotReady => reporting("tokyo", Up::Health(Health::NotReady { why: "etcd".to_owned() })),
        Code::MemberReady | Code::Healthy => codes(&Set::of(&[paris(), tokyo()]).status()),
        Code::Provides | Code::Consumes => crossing(&[paris(), tokyo()], from_paris()),
        Code::NotAConsumer => crossing(&[paris(), tokyo(), member("rome").heard()], from_paris()),
        Code::NotAMember => crossing(
            &[paris(), tokyo()],
            CrossCluster { providers: named(&["paris", "pariss"]), ..from_paris() },
        ),
        Code::Balanced => {
            let balanced = CrossCluster { balanced: true, consumers: named(&[]), ..from_paris() };
            crossing(&[paris(), tokyo()], balanced)
        }
        Code::NoBackends => {
            let balanced = CrossCluster { balanced: true, consumers: named(&[]), ..from_paris() };
            crossing(&[member("paris").exports("http:80", 1).heard(), tokyo()], balanced)
        }
        Code::EndpointAddress => address("10.1.0.1"),
        Code::OwnedByMember => address("10.1.9.9"),
        Code::OwnedByHub => address("192.168.7.1"),
        Code::OwnedByPool => address("10.250.0.9"),
        Code::AlwaysRefused => address("169.254.169.254"),
        Code::NotKnown => address("10.77.0.1"),
        Code::Propagated
        | Code::NoPolicy
        | Code::PolicyBeaten
        | Code::PolicyRefused
        | Code::Chosen
        | Code::NotChosen
        | Code::Unschedulable
        | Code::Overridden
        | Code::Copied
        | Code::CopyFailed
        | Code::CopyPending => BTreeSet::new(),
        // Of `atoll check`, whose tables give them.
        Code::NotChecked
        | Code::HubUnreachable
        | Code::HubKindMissing
        | Code::CrdOutdated
        | Code::NoLeader
        | Code::ClockSkew
        | Code::CredentialsEndSoon
        | Code::CredentialsEnded
        | Code::MemberUnreachable
        | Code::NetworksOverlap
        | Code::VersionsDiffer
        | Code::DnsNotLed
        | Code::DnsServerDown
        | Code::ImportMissing
        | Code::SelectorEmpty
        | Code::TargetPortWrong
        | Code::PortClosed
        | Code::NetworkPolicyDrops
        | Code::NoRoute
        | Code::EndpointSilent
        | Code::LargePacketsLost
        | Code::KubeProxyStopped
        | Code::ClusterDnsDown
        | Code::NameUnknown
        | Code::ProbeFailed => BTreeSet::new(),
    }
}

#[test]
fn every_code_is_given_in_some_situation() {
    let missing: Vec<Code> =
        Code::ALL.iter().copied().filter(|code| !situation(*code).contains(code)).collect();
    let elsewhere = |code: &Code| ELSEWHERE.contains(code) || code.group().starts_with("Checks of ");
    let expected: Vec<Code> = Code::ALL.iter().copied().filter(elsewhere).collect();
    assert_eq!(missing, expected);
}

#[test]
fn a_healthy_service_has_nothing_but_information() {
    let mut set = Set::of(&[paris(), tokyo()]);
    let written = |slice: &str| atoll_link::Written {
        service: key(WEB),
        kind: Kind::Slice,
        verb: atoll_link::Verb::Create,
        slice: Some((id("paris"), SliceName::parse(slice).unwrap())),
    };
    set.up(&id("tokyo"), Up::Wrote(written("web-1")));
    set.up(&id("paris"), Up::Wrote(written("web-1")));
    let bad: Vec<Code> = web(&mut set).into_iter().filter(|code| code.severity() != Severity::Info).collect();
    assert_eq!(bad, []);
}
