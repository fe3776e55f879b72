//! From reports to commands, with the real engine.

use std::net::IpAddr;

use atoll_engine::facts::{
    Capabilities, EndpointConditions, EndpointFact, ExportFact, InternalTrafficPolicy, NamespaceState, Pairs,
    Protocol, ServiceFact, ServicePort, ServiceType, SessionAffinity, SliceFact, SlicePort,
};
use atoll_engine::names::{Namespace, PortName, SliceName, Uid};
use atoll_engine::network::{Family, Nodes};
use atoll_engine::plan::SlicesFrom;
use atoll_link::{Kind, Verb, Written};

use super::*;

const LEASE: Duration = Duration::from_secs(10);
const SETTLE: Duration = Duration::from_secs(1);

struct Hub {
    brain: Brain,
    start: Instant,
}

fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}
fn web() -> ServiceKey {
    ServiceKey::parse("shop", "web").unwrap()
}
fn name(text: &str) -> SliceName {
    SliceName::parse(text).unwrap()
}

fn slice(address: &str) -> Up {
    let address: IpAddr = address.parse().unwrap();
    let port = PortName::parse("http").unwrap();
    let fact = SliceFact {
        family: Family::of(address),
        ports: vec![SlicePort { name: port, protocol: Protocol::Tcp, port: Some(8080), app_protocol: None }],
        endpoints: vec![EndpointFact {
            addresses: [address].into(),
            conditions: EndpointConditions::default(),
            hostname: None,
            node: None,
            zone: None,
            for_zones: Box::default(),
        }],
    };
    Up::Change(Change::Slice(web(), name("web-1"), Some(fact.into())))
}

/// It has not answered for so many milliseconds.
fn silent(milliseconds: u64) -> Up {
    Up::Unreachable { silent_for: Duration::from_millis(milliseconds), why: "refused".to_owned() }
}

impl Hub {
    fn new(members: &[&str]) -> Self {
        let start = Instant::now();
        let mut brain = Brain::new(Settings::default(), Memory::new(), LEASE, start + SETTLE);
        for member in members {
            brain.joined(&id(member));
        }
        Self { brain, start }
    }

    fn at(&self, milliseconds: u64) -> Now {
        let time = Time(1_000_000 + i64::try_from(milliseconds).unwrap());
        Now { instant: self.start + Duration::from_millis(milliseconds), time }
    }

    fn tell(&mut self, member: &str, up: Up, at: u64) -> Noted {
        let now = self.at(at);
        self.brain.report(&id(member), up, now.instant, now)
    }

    fn heard(&mut self, member: &str) {
        let namespace = Change::Namespace(Namespace::parse("shop").unwrap(), Some(NamespaceState::Active));
        self.tell(member, Up::Change(namespace), 0);
        let able = Capabilities { families: vec![Family::V4], kubernetes_minor: 36 };
        self.tell(member, Up::Change(Change::Heard(able)), 0);
    }

    fn exports(&mut self, member: &str) {
        let port = ServicePort {
            name: PortName::parse("http").unwrap(),
            protocol: Protocol::Tcp,
            port: 80,
            app_protocol: None,
        };
        let service = ServiceFact {
            service_type: ServiceType::ClusterIp,
            headless: false,
            derived: false,
            ports: vec![port],
            session_affinity: SessionAffinity::None,
            client_ip_timeout: None,
            internal_traffic_policy: InternalTrafficPolicy::Cluster,
            traffic_distribution: None,
            families: vec![Family::V4],
        };
        let export = ExportFact {
            uid: Uid::parse("e1").unwrap(),
            created: Time(0),
            labels: Pairs::new(),
            annotations: Pairs::new(),
            liveness: None,
            locality: None,
        };
        self.tell(member, Up::Change(Change::Service(web(), Some(service))), 0);
        self.tell(member, Up::Change(Change::Export(web(), Some(export))), 0);
    }

    fn plan(&mut self, at: u64) -> Vec<Command> {
        let now = self.at(at);
        self.brain.plan(now, 100).0
    }

    /// Plans, and writes down whatever has to be.
    fn settle(&mut self, at: u64) -> Vec<Command> {
        let mut done = Vec::new();
        let mut commands = self.plan(at);
        while !commands.is_empty() {
            let command = commands.remove(0);
            match command {
                Command::Persist(MemoryUpdate::Put(key, _) | MemoryUpdate::Forget(key)) => {
                    commands.extend(self.brain.persisted(&key, Ended::Written));
                }
                Command::Assign { .. } => done.push(command),
            }
        }
        done
    }

    fn serving() -> Self {
        let mut hub = Self::new(&["paris", "rome", "tokyo"]);
        for member in ["paris", "rome", "tokyo"] {
            hub.heard(member);
        }
        hub.exports("paris");
        hub.tell("paris", slice("10.1.0.1"), 0);
        hub.settle(0);
        hub
    }
}

fn assigned(commands: &[Command]) -> Vec<&str> {
    let to = |command: &'_ Command| -> Option<ClusterId> {
        match command {
            Command::Assign { to, .. } => Some(to.clone()),
            Command::Persist(_) => None,
        }
    };
    let names = ["paris", "rome", "tokyo"];
    commands
        .iter()
        .filter_map(to)
        .filter_map(|to| names.into_iter().find(|name| *name == to.as_str()))
        .collect()
}

#[test]
fn nothing_is_handed_out_before_memory_is_written() {
    let mut hub = Hub::new(&["paris", "tokyo"]);
    hub.heard("paris");
    hub.heard("tokyo");
    hub.exports("paris");
    let first = hub.plan(0);
    assert!(matches!(&first[..], [Command::Persist(MemoryUpdate::Put(..))]), "{first:?}");
    let failed = hub.brain.persisted(&web(), Ended::Failed);
    assert!(matches!(&failed[..], [Command::Persist(_)]), "{failed:?}");
    hub.tell("paris", slice("10.1.0.1"), 1);
    assert_eq!(hub.plan(1), [], "a newer plan waits as well");
    assert_eq!(assigned(&hub.brain.persisted(&web(), Ended::Written)), ["tokyo", "paris"]);
}

#[test]
fn a_slice_goes_to_remote_consumers_first_and_needs_no_memory() {
    let mut hub = Hub::serving();
    hub.tell("paris", slice("10.1.0.2"), 5);
    let commands = hub.plan(5);
    assert_eq!(assigned(&commands), ["rome", "tokyo", "paris"]);
    let only = |command: &Command| matches!(command, Command::Assign { touched: Touched::Slices(s), .. } if s.len() == 1);
    assert!(commands.iter().all(only), "{commands:?}");
    assert_eq!(hub.plan(6), [], "planning twice changes nothing");
}

#[test]
fn a_burst_is_one_plan() {
    let mut hub = Hub::serving();
    for n in 2..50 {
        hub.tell("paris", slice(&format!("10.1.0.{n}")), 5);
    }
    assert_eq!(assigned(&hub.plan(5)).len(), 3);
}

#[test]
fn the_first_plan_waits_for_members_but_not_for_ever_nor_for_the_dead() {
    let mut hub = Hub::new(&["paris", "tokyo"]);
    hub.heard("paris");
    hub.exports("paris");
    assert_eq!(hub.plan(0), []);
    assert_eq!(hub.brain.next_due(), Some(hub.start + SETTLE));
    hub.tell("tokyo", silent(10), 10);
    assert!(!hub.plan(10).is_empty(), "all that can be heard has been");

    let mut hub = Hub::new(&["paris", "tokyo"]);
    hub.heard("paris");
    hub.exports("paris");
    assert!(!hub.plan(1000).is_empty(), "long enough");
}

#[test]
fn propagation_is_measured_from_the_change_to_each_write() {
    let mut hub = Hub::serving();
    let wrote = || {
        let slice = Some((id("paris"), name("web-1")));
        Up::Wrote(Written { service: web(), kind: Kind::Slice, verb: Verb::Update, slice })
    };
    let first = wrote();
    hub.tell("tokyo", first, 1);
    hub.tell("paris", slice("10.1.0.2"), 10);
    hub.plan(11);
    let report = wrote();
    let took = Duration::from_millis(3);
    let want = Propagation { source: id("paris"), target: id("tokyo"), took };
    assert_eq!(hub.tell("tokyo", report, 13).propagated, Some(want));
    let repair = wrote();
    assert_eq!(hub.tell("tokyo", repair, 5000).propagated, None, "a repair is no propagation");
}

#[test]
fn a_member_that_holds_something_is_told_what_even_if_nothing_is_new() {
    let mut hub = Hub::serving();
    hub.tell("tokyo", Up::Holds(web()), 5);
    assert_eq!(assigned(&hub.plan(5)), ["tokyo"]);
    let unknown = ServiceKey::parse("shop", "gone").unwrap();
    hub.tell("tokyo", Up::Holds(unknown), 6);
    assert!(assigned(&hub.settle(6)).contains(&"tokyo"));
}

#[test]
fn a_restarted_member_gets_every_plan_and_nothing_is_taken_from_the_others() {
    let mut hub = Hub::serving();
    hub.brain.reset(&id("paris"));
    assert_eq!(assigned(&hub.brain.started(&id("paris"))), ["paris"]);
    for command in hub.settle(5) {
        let Command::Assign { plan, .. } = command else { continue };
        let tokyo = &plan.clusters[&id("tokyo")].import;
        let ImportPlan::Present { slices, .. } = tokyo else { panic!("{tokyo:?}") };
        let from = &slices[&id("paris")];
        assert!(matches!(from, SlicesFrom::KeepWhatIsThere(_)), "{from:?}");
    }
}

#[test]
fn what_a_cluster_left_behind_is_planned_away_before_another_takes_its_name() {
    let mut hub = Hub::serving();
    let now = hub.at(5);
    let commands = hub.brain.left(&id("paris"), now);
    let forgets = |command: &Command| matches!(command, Command::Persist(MemoryUpdate::Forget(_)));
    assert!(commands.iter().any(forgets), "{commands:?}");
    hub.brain.joined(&id("paris"));
    let commands = hub.brain.persisted(&web(), Ended::Written);
    assert_eq!(assigned(&commands), ["rome", "tokyo"]);
}

#[test]
fn one_that_has_left_can_not_be_lost() {
    let mut hub = Hub::serving();
    let now = hub.at(5);
    hub.brain.left(&id("paris"), now);
    assert_eq!(hub.tell("paris", silent(1), 6).reachable, None);
    let now = hub.at(60_000);
    assert_eq!(hub.brain.due(now), []);
}

#[test]
fn a_lost_member_is_marked_and_comes_back() {
    let mut hub = Hub::serving();
    let noted = hub.tell("paris", silent(3000), 3000);
    assert_eq!(noted.reachable, Some(false));
    let now = hub.at(10_000);
    assert_eq!(hub.brain.due(now), [id("paris")]);
    let stale = hub.settle(10_000);
    assert!(!stale.is_empty());
    let contact = hub.brain.engine.world().clusters[&id("paris")].contact;
    assert_eq!(contact, Contact::Lost { since: Time(1_000_000) }, "since it fell silent");
    hub.tell("paris", Up::Alive, 20_000);
    assert_eq!(hub.brain.engine.world().clusters[&id("paris")].contact, Contact::Alive);
}

#[test]
fn a_member_without_credentials_is_lost_after_a_lease_and_back_when_it_is_listed_anew() {
    let mut hub = Hub::serving();
    let now = hub.at(1000);
    assert!(hub.brain.unasked(&id("paris"), now));
    assert!(!hub.brain.unasked(&id("nobody"), now));
    hub.tell("paris", Up::Alive, 1001);
    let now = hub.at(11_000);
    assert_eq!(hub.brain.due(now), [id("paris")]);
    let contact = hub.brain.engine.world().clusters[&id("paris")].contact;
    assert_eq!(contact, Contact::Lost { since: Time(1_001_000) });
    assert!(!hub.settle(11_000).is_empty(), "its endpoints are marked");
    hub.brain.reset(&id("paris"));
    let now = hub.at(60_000);
    assert_eq!(hub.brain.due(now), []);
}

#[test]
fn a_member_can_not_widen_its_own_networks_nor_speak_of_membership() {
    let mut hub = Hub::serving();
    let range = |base: &str| ipnet::IpNet::new(base.parse().unwrap(), 16).unwrap();
    let pods = |base: &str| Ranges { pods: vec![range(base)], ..Ranges::default() };
    let said = Networks { declared: pods("10.1.0.0"), ..Networks::default() };
    hub.brain.declare(&id("paris"), said.clone());
    let lie =
        Networks { declared: pods("0.0.0.0"), endpoints: vec![range("127.0.0.0")], ..Networks::default() };
    hub.tell("paris", Up::Change(Change::Networks(Box::new(lie))), 5);
    assert_eq!(*hub.brain.engine.world().clusters[&id("paris")].networks, said);
    hub.tell("paris", Up::Change(Change::Left), 6);
    assert!(hub.brain.engine.world().clusters.contains_key(&id("paris")));
}

/// What its nodes say.
fn nodes(addresses: &[&str], pods: &[&str]) -> Up {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let pods = pods.iter().map(|range| range.parse().unwrap()).collect();
    Up::Change(Change::Nodes(Nodes { addresses, pods }))
}

/// The addresses that tokyo holds of paris.
fn held(hub: &Hub) -> Vec<String> {
    let plan = hub.brain.engine.last_plan(&web()).unwrap();
    let ImportPlan::Present { slices, .. } = &plan.clusters[&id("tokyo")].import else { panic!() };
    let SlicesFrom::Exactly(list, _) = &slices[&id("paris")] else { panic!() };
    let endpoints = list.iter().flat_map(|slice| &slice.endpoints);
    endpoints.flat_map(|endpoint| endpoint.addresses.iter().map(ToString::to_string)).collect()
}

#[test]
fn a_node_object_does_not_widen_what_a_member_may_announce() {
    let mut hub = Hub::serving();
    let range = |text: &str| vec![text.parse().unwrap()];
    let observed = Ranges { pods: range("10.1.0.0/16"), nodes: range("192.168.0.4/32"), ..Ranges::default() };
    hub.brain.declare(&id("paris"), Networks { observed, binding: true, ..Networks::default() });
    hub.settle(5);
    assert_eq!(held(&hub), ["10.1.0.1"], "what it was pinned to");
    hub.tell("paris", nodes(&["192.168.0.4", "10.9.0.9"], &["10.9.0.0/16", "0.0.0.0/0"]), 6);
    hub.heard("paris");
    hub.tell("paris", slice("10.9.0.9"), 7);
    hub.settle(7);
    assert_eq!(held(&hub), [] as [&str; 0]);
    hub.tell("paris", slice("192.168.0.4"), 8);
    hub.settle(8);
    assert_eq!(held(&hub), ["192.168.0.4"], "a node that it had when it joined");
}

#[test]
fn a_member_without_pins_is_pinned_once_when_it_is_first_heard() {
    let mut hub = Hub::new(&["paris", "tokyo"]);
    hub.brain.declare(&id("paris"), Networks::default());
    hub.exports("paris");
    hub.tell("paris", slice("10.1.0.1"), 0);
    hub.tell("paris", nodes(&["192.168.0.4"], &["10.1.0.0/24"]), 0);
    let able = Capabilities { families: vec![Family::V4], kubernetes_minor: 36 };
    let noted = hub.tell("paris", Up::Change(Change::Heard(able)), 0);
    let learnt = noted.learnt.unwrap();
    assert_eq!((learnt.pods.len(), learnt.nodes.len()), (1, 1));
    hub.heard("tokyo");
    hub.settle(0);
    assert_eq!(held(&hub), ["10.1.0.1"]);
    // Neither a new node nor a restart of its watches widens it.
    hub.tell("paris", nodes(&["192.168.0.4"], &["10.1.0.0/24", "10.9.0.0/16"]), 1);
    hub.brain.reset(&id("paris"));
    hub.exports("paris");
    hub.tell("paris", nodes(&["192.168.0.4"], &["10.1.0.0/24", "10.9.0.0/16"]), 1);
    hub.tell("paris", slice("10.9.0.1"), 1);
    let able = Capabilities { families: vec![Family::V4], kubernetes_minor: 35 };
    assert_eq!(hub.tell("paris", Up::Change(Change::Heard(able)), 1).learnt, None);
    hub.settle(1);
    assert_eq!(held(&hub), [] as [&str; 0]);
}

#[test]
fn a_member_that_starts_is_asked_about_what_is_being_deleted() {
    let mut hub = Hub::new(&["paris", "tokyo"]);
    hub.heard("paris");
    hub.heard("tokyo");
    hub.brain.set_intents(BTreeMap::new(), [web()].into());
    let asked = |hub: &mut Hub, at| -> Vec<ClusterId> {
        let now = hub.at(at);
        let commands = hub.brain.plan(now, 10).0.into_iter();
        commands
            .filter_map(|command| match command {
                Command::Assign { to, answer: Some(_), .. } => Some(to),
                Command::Assign { .. } | Command::Persist(_) => None,
            })
            .collect()
    };
    assert_eq!(asked(&mut hub, 2000), [id("paris"), id("tokyo")]);
    hub.brain.reset(&id("paris"));
    assert!(hub.brain.started(&id("paris")).is_empty(), "no plan is kept of it");
    hub.heard("paris");
    assert!(asked(&mut hub, 3000).contains(&id("paris")));
}
