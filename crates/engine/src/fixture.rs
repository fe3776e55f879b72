//! Small builders for tests. Also included by the integration tests, hence the crate's outer name.
#![allow(missing_docs, dead_code, unreachable_pub, clippy::unwrap_used)]

use atoll_engine::engine::Engine;
use atoll_engine::facts::*;
use atoll_engine::names::*;
use atoll_engine::network::Family;
use atoll_engine::time::Time;
use atoll_engine::world::Change;

pub fn id(text: &str) -> ClusterId {
    ClusterId::parse(text).unwrap()
}

/// `namespace/name`.
pub fn key(text: &str) -> ServiceKey {
    let (namespace, name) = text.split_once('/').unwrap();
    ServiceKey::parse(namespace, name).unwrap()
}

/// `name:port[/protocol][=appProtocol]`, separated by blanks.
pub fn ports(text: &str) -> Vec<ServicePort> {
    text.split_whitespace()
        .map(|text| {
            let (text, app) = text.split_once('=').map_or((text, None), |(text, app)| (text, Some(app)));
            let (name, rest) = text.split_once(':').unwrap();
            let (port, protocol) = rest.split_once('/').unwrap_or((rest, "tcp"));
            let protocol = match protocol {
                "tcp" => Protocol::Tcp,
                "udp" => Protocol::Udp,
                "sctp" => Protocol::Sctp,
                other => panic!("{other}"),
            };
            ServicePort {
                name: PortName::parse(name).unwrap(),
                protocol,
                port: port.parse().unwrap(),
                app_protocol: app.map(|app| AppProtocol::parse(app).unwrap()),
            }
        })
        .collect()
}

pub fn service(named: &[(&str, u16)]) -> ServiceFact {
    let text: Vec<_> = named.iter().map(|(name, port)| format!("{name}:{port}")).collect();
    ServiceFact {
        service_type: ServiceType::ClusterIp,
        headless: false,
        derived: false,
        ports: ports(&text.join(" ")),
        session_affinity: SessionAffinity::None,
        client_ip_timeout: None,
        internal_traffic_policy: InternalTrafficPolicy::Cluster,
        traffic_distribution: None,
        families: vec![Family::V4],
    }
}

pub fn export(created: i64) -> ExportFact {
    ExportFact {
        uid: Uid::parse(format!("uid-{created}")).unwrap(),
        created: Time::from_secs(created),
        labels: Pairs::new(),
        annotations: Pairs::new(),
        liveness: None,
        locality: None,
    }
}

pub fn endpoint(address: &str, conditions: EndpointConditions) -> EndpointFact {
    EndpointFact {
        addresses: [address.parse().unwrap()].into(),
        conditions,
        hostname: None,
        node: Some(NodeName::parse("node-1").unwrap()),
        zone: Some(Zone::parse("zone-a").unwrap()),
        for_zones: Box::default(),
    }
}

/// A slice with ports as in [`ports`] and ready endpoints; its family is that of the first address, else IPv4.
pub fn slice(text: &str, addresses: &[&str]) -> SliceFact {
    let ready = EndpointConditions { ready: Some(true), serving: Some(true), terminating: Some(false) };
    let port = |p: ServicePort| SlicePort {
        name: p.name,
        protocol: p.protocol,
        port: Some(p.port),
        app_protocol: p.app_protocol,
    };
    SliceFact {
        family: addresses.first().map_or(Family::V4, |a| Family::of(a.parse().unwrap())),
        ports: ports(text).into_iter().map(port).collect(),
        endpoints: addresses.iter().map(|address| endpoint(address, ready)).collect(),
    }
}

pub fn slice_name(text: &str) -> SliceName {
    SliceName::parse(text).unwrap()
}

pub fn namespace(text: &str) -> Namespace {
    Namespace::parse(text).unwrap()
}

pub fn capabilities() -> Capabilities {
    Capabilities { families: vec![Family::V4, Family::V6], kubernetes_minor: 36 }
}

pub const WEB: &str = "shop/web";

/// One cluster as a list of what happens in it: joined, with namespace `shop`; `heard` closes the list.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: ClusterId,
    pub changes: Vec<Change>,
}

pub fn member(name: &str) -> Member {
    let changes = vec![Change::Joined, Change::Namespace(namespace("shop"), Some(NamespaceState::Active))];
    Member { id: id(name), changes }
}

impl Member {
    pub fn with(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// Service `web` with these ports, exported at this time.
    pub fn exports(self, text: &str, created: i64) -> Self {
        let fact = ServiceFact { ports: ports(text), ..service(&[]) };
        self.exports_as(fact, export(created))
    }

    pub fn exports_as(self, service: ServiceFact, export: ExportFact) -> Self {
        self.with(Change::Service(key(WEB), Some(service))).with(Change::Export(key(WEB), Some(export)))
    }

    /// A slice of `web`.
    pub fn serves(self, name: &str, text: &str, addresses: &[&str]) -> Self {
        self.with(Change::Slice(key(WEB), slice_name(name), Some(slice(text, addresses).into())))
    }

    pub fn heard(self) -> Self {
        self.with(Change::Heard(capabilities()))
    }
}

pub fn tell(engine: &mut Engine, members: &[Member]) {
    for member in members {
        for change in &member.changes {
            let _ = engine.apply(&member.id, change.clone());
        }
    }
}

/// An engine without memory that has been told all this.
pub fn engine(members: &[Member]) -> Engine {
    let mut engine = Engine::default();
    tell(&mut engine, members);
    engine
}
