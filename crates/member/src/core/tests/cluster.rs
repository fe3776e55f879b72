//! A member called `b`, an engine that plans for it, and an API server in memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use atoll_engine::engine::{Engine, Outcome};
use atoll_engine::facts::{
    Capabilities, EndpointConditions, EndpointFact, ExportFact, InternalTrafficPolicy, NamespaceState, Pairs,
    Protocol, ServiceFact, ServicePort, ServiceType, SessionAffinity, Settings, SliceFact, SlicePort,
};
use atoll_engine::memory::Memory;
use atoll_engine::names::{ClusterId, Namespace, PortName, ServiceKey, SliceName, Uid};
use atoll_engine::network::Family;
use atoll_engine::time::Time;
use atoll_engine::world::Change;

use crate::core::Core;
use crate::core::event::{
    Answer, Command, Event, Failure, Gone, Now, OwnImport, OwnService, OwnSlice, Request, Seen,
};
use crate::core::object::{Attached, ImportStatusBody, Kind, ObjectName, SliceBody, Target, Version};
use crate::events::Notice;
use atoll_link::{Assignment, Problem, Up};

pub(super) fn id(text: &str) -> ClusterId {
    ClusterId::parse(text).unwrap()
}

pub(super) fn web() -> ServiceKey {
    ServiceKey::parse("shop", "web").unwrap()
}

pub(super) fn namespace() -> Namespace {
    Namespace::parse("shop").unwrap()
}

pub(super) fn service(headless: bool) -> ServiceFact {
    ServiceFact {
        service_type: ServiceType::ClusterIp,
        headless,
        derived: false,
        ports: vec![ServicePort {
            name: PortName::parse("http").unwrap(),
            protocol: Protocol::Tcp,
            port: 80,
            app_protocol: None,
        }],
        session_affinity: SessionAffinity::None,
        client_ip_timeout: None,
        internal_traffic_policy: InternalTrafficPolicy::Cluster,
        traffic_distribution: None,
        families: vec![Family::V4],
    }
}

pub(super) fn slice(address: &str) -> SliceFact {
    SliceFact {
        family: Family::V4,
        ports: vec![SlicePort {
            name: PortName::parse("http").unwrap(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: vec![EndpointFact {
            addresses: [address.parse().unwrap()].into(),
            conditions: EndpointConditions::default(),
            hostname: None,
            node: None,
            zone: None,
            for_zones: Box::default(),
        }],
    }
}

pub(super) fn export() -> ExportFact {
    ExportFact {
        uid: Uid::parse("export-1").unwrap(),
        created: Time(1000),
        labels: Pairs::new(),
        annotations: Pairs::new(),
        liveness: None,
        locality: None,
    }
}

pub(super) fn capabilities() -> Capabilities {
    Capabilities { families: vec![Family::V4], kubernetes_minor: 36 }
}

/// What an object in the API says.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) version: Version,
    pub(super) said: Request,
    pub(super) status: Option<ImportStatusBody>,
    attached: Option<Attached>,
}

pub(super) struct Cluster {
    pub(super) core: Core,
    pub(super) engine: Engine,
    pub(super) api: BTreeMap<String, Stored>,
    pub(super) now: Now,
    revision: u64,
    /// Requests that were sent and not answered yet.
    pub(super) sent: Vec<(Target, Request)>,
    pub(super) reads: Vec<Target>,
    pub(super) reports: Vec<Up>,
    /// Every write that was answered with success, as `verb kind name`.
    pub(super) log: Vec<String>,
    /// What would become events.
    pub(super) told: Vec<Notice>,
}

impl Cluster {
    /// A member of which nothing is known; `a` exports `shop/web` with one slice.
    pub(super) fn new() -> Self {
        let identity = crate::Identity { cluster: id("b"), hub: "hub".into(), clusterset: "set".into() };
        let mut engine = Engine::new(Settings::default(), Memory::new());
        for member in ["a", "b"] {
            let shop = Change::Namespace(namespace(), Some(NamespaceState::Active));
            for change in [Change::Joined, shop] {
                let _ = engine.apply(&id(member), change);
            }
        }
        let mut cluster = Self {
            core: Core::new(identity),
            engine,
            api: BTreeMap::new(),
            now: Now { instant: Instant::now(), wall: Time(5_000) },
            revision: 10,
            sent: Vec::new(),
            reads: Vec::new(),
            reports: Vec::new(),
            log: Vec::new(),
            told: Vec::new(),
        };
        cluster.fact("a", Change::Service(web(), Some(service(false))));
        cluster.fact("a", Change::Export(web(), Some(export())));
        cluster.slice_at_source("10.0.0.1");
        for member in ["a", "b"] {
            cluster.fact(member, Change::Heard(capabilities()));
        }
        cluster.step(Event::Permitted(true));
        cluster
    }

    /// The same, synced with what the API holds, and idle.
    pub(super) fn synced() -> Self {
        let mut cluster = Self::new();
        cluster.sync();
        cluster.settle();
        cluster.log.clear();
        cluster
    }

    /// With the service imported.
    pub(super) fn imported() -> Self {
        let mut cluster = Self::synced();
        cluster.assign();
        cluster.settle();
        assert_eq!(cluster.names().len(), 3, "{:?}", cluster.api.keys());
        cluster.log.clear();
        cluster
    }

    /// A member started anew on the same API, not synced.
    pub(super) fn restarted(before: &Self) -> Self {
        let mut cluster = Self::new();
        cluster.api.clone_from(&before.api);
        cluster.revision = before.revision;
        cluster
    }

    pub(super) fn fact(&mut self, member: &str, change: Change) {
        let _ = self.engine.apply(&id(member), change);
    }

    pub(super) fn slice_at_source(&mut self, address: &str) {
        let name = SliceName::parse("web-1").unwrap();
        self.fact("a", Change::Slice(web(), name, Some(slice(address).into())));
    }

    /// Plans the service and assigns it.
    pub(super) fn assign(&mut self) {
        let Outcome { plan, touched, .. } = self.engine.plan(&web(), self.now.wall);
        let part = plan.clusters.get(&id("b")).cloned();
        let service = plan.service.clone();
        self.step(Event::Assigned(Assignment { service, part, touched, answer: None }));
    }

    pub(super) fn step(&mut self, event: Event) {
        for command in self.core.step(event, self.now) {
            match command {
                Command::Write(target, request) => self.sent.push((target, *request)),
                Command::Read(target) => self.reads.push(target),
                Command::Report(report) => self.reports.push(report),
                Command::Tell(notice) => self.told.push(*notice),
            }
        }
    }

    pub(super) fn list(&mut self, kind: Kind) {
        self.step(Event::ListStarted(kind));
        for name in self.names_of(kind) {
            let seen = self.seen(&name);
            self.step(Event::Seen(seen));
        }
        self.step(Event::Listed(kind));
    }

    pub(super) fn sync(&mut self) {
        for kind in Kind::ALL {
            self.list(kind);
        }
        self.step(Event::Capable(capabilities()));
    }

    pub(super) fn names_of(&self, kind: Kind) -> Vec<String> {
        let prefix = format!("{} ", kind.plural());
        self.api.keys().filter(|name| name.starts_with(&prefix)).cloned().collect()
    }

    /// What is held of the service.
    pub(super) fn names(&self) -> Vec<&str> {
        let own = |name: &&String| !name.starts_with("clusterproperties");
        self.api.keys().filter(own).map(String::as_str).collect()
    }

    /// Answers everything until nothing is left to do.
    pub(super) fn settle(&mut self) {
        for _ in 0..200 {
            if let Some(target) = self.reads.pop() {
                let found = self.api.contains_key(&target.to_string());
                let seen = found.then(|| self.seen(&target.to_string()));
                self.step(Event::Read(target, Ok(seen)));
            } else if !self.sent.is_empty() {
                let (target, request) = self.sent.remove(0);
                self.answer(target, &request);
            } else if let Some(at) = self.core.next_wake() {
                self.now.instant = at;
                self.step(Event::Tick);
            } else {
                return;
            }
        }
        panic!("it does not settle: {:?}", self.log);
    }

    pub(super) fn answer(&mut self, target: Target, request: &Request) {
        let answer = self.carry_out(&target, request);
        self.step(Event::Wrote(target, answer));
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// What the API server would do.
    fn carry_out(&mut self, target: &Target, request: &Request) -> Result<Answer, Failure> {
        let name = target.to_string();
        let held = self.api.get(&name).cloned();
        let onto = match request {
            Request::Service { onto, .. }
            | Request::Import(_, onto)
            | Request::Slice(_, onto)
            | Request::Property(_, _, onto) => onto.clone(),
            Request::Attach { onto, .. } | Request::ImportStatus(_, _, onto) | Request::Delete(_, onto) => {
                Some(onto.clone())
            }
            Request::ExportStatus(..) | Request::MisnamedStatus(..) => return Err(Failure::NotFound),
        };
        match (&onto, &held) {
            (None, Some(_)) => return Err(Failure::AlreadyExists),
            (Some(_), None) => return Err(Failure::NotFound),
            (Some(onto), Some(held)) if *onto != held.version => return Err(Failure::Conflict),
            (None, None) | (Some(_), Some(_)) => {}
        }
        let verb = match (request, &onto) {
            (Request::Delete(..), _) => "delete",
            (Request::ImportStatus(..), _) => "status",
            (Request::Attach { .. }, _) => "attach",
            (_, None) => "create",
            (_, Some(_)) => "update",
        };
        self.log.push(format!("{verb} {name}"));
        if request.deletes() {
            self.api.remove(&name);
            return Ok(Answer::Deleted);
        }
        let revision = self.next_revision();
        let uid = held
            .as_ref()
            .map_or_else(|| Uid::parse(format!("uid-{revision}")).unwrap(), |held| held.version.uid.clone());
        // As the API does: a replaced object has what was sent, the status and a patch leave it.
        let others = onto.as_ref().and_then(|onto| onto.others.clone());
        let version = Version { uid, revision, deleting: false, others };
        let stored = match (request, held) {
            (Request::ImportStatus(_, body, _), Some(held)) => {
                Stored { version, status: Some(body.clone()), ..held }
            }
            (Request::Attach { attached, .. }, Some(held)) => {
                Stored { version, attached: Some(attached.clone()), ..held }
            }
            (said, held) => {
                let status = held.and_then(|held| held.status);
                Stored { version, said: said.clone(), status, attached: None }
            }
        };
        self.api.insert(name.clone(), stored);
        Ok(Answer::Written(Box::new(self.seen(&name))))
    }

    /// An object as a watch would show it.
    pub(super) fn seen(&self, name: &str) -> Seen {
        let Stored { version, said, status, attached } = self.api[name].clone();
        match said {
            Request::Service { body, ips, .. } => {
                let name = ServiceKey { namespace: body.of.namespace.clone(), name: body.name.clone() };
                let ips = match (body.headless, ips.is_empty()) {
                    (true, _) => Vec::new(),
                    (false, true) => vec!["172.16.0.1".parse().unwrap()],
                    (false, false) => ips,
                };
                let (of, headless, families) = (body.of.clone(), body.headless, body.families.clone());
                Seen::OwnService(OwnService { name, of, version, body: Some(body), headless, families, ips })
            }
            Request::Import(body, _) => Seen::OwnImport(OwnImport {
                key: body.key.clone(),
                version,
                stale: body.annotations.get(atoll_api::names::annotation::STALE_SINCE).cloned(),
                ips: body.ips.clone(),
                status: status.unwrap_or(ImportStatusBody {
                    clusters: Vec::new(),
                    conditions: Vec::new(),
                    slices: None,
                }),
                body: Some(body),
            }),
            Request::Slice(body, _) => {
                let attached = attached.unwrap_or_else(|| body.attached.clone());
                let body = SliceBody { attached: attached.clone(), ..body };
                let (of, name) = (body.of.clone(), body.slice.name.clone());
                let source = Some(body.slice.source.clone());
                Seen::OwnSlice(OwnSlice {
                    of,
                    name,
                    intent: body.intent,
                    source,
                    version,
                    attached,
                    body: Some(body),
                })
            }
            Request::Property(name, value, _) => Seen::Property(crate::core::event::SeenProperty {
                name,
                version,
                ours: true,
                value: value.to_string(),
            }),
            other @ (Request::Attach { .. }
            | Request::ImportStatus(..)
            | Request::ExportStatus(..)
            | Request::MisnamedStatus(..)
            | Request::Delete(..)) => panic!("{other:?} is no object"),
        }
    }

    /// A user deletes an object of ours.
    pub(super) fn user_deletes(&mut self, name: &str) {
        let gone = self.api.remove(name).unwrap();
        let revision = self.next_revision();
        let (kind, rest) = name.split_once(' ').unwrap();
        let kind = Kind::ALL.into_iter().find(|known| known.plural() == kind).unwrap();
        let (_, name) = rest.split_once('/').unwrap();
        let object = ObjectName { kind, namespace: Some(namespace()), name: name.into() };
        let version = Version { revision, ..gone.version };
        self.step(Event::Gone(Gone { object, version }));
    }

    /// A user changes an object of ours; `told`: and the watch has said so.
    pub(super) fn user_edits(&mut self, name: &str, told: bool, edit: impl FnOnce(&mut Stored)) {
        let revision = self.next_revision();
        let stored = self.api.get_mut(name).unwrap();
        edit(stored);
        stored.version.revision = revision;
        if told {
            let seen = self.seen(name);
            self.step(Event::Seen(seen));
        }
    }

    pub(super) fn problems(&self) -> Vec<&Problem> {
        self.reports
            .iter()
            .filter_map(|report| match report {
                Up::Problem(problem) => Some(problem),
                _ => None,
            })
            .collect()
    }

    pub(super) fn later(&mut self, seconds: u64) {
        self.now.instant += Duration::from_secs(seconds);
        self.step(Event::Tick);
    }
}

pub(super) const SERVICE: &str = "services shop/derived-web";
pub(super) const IMPORT: &str = "serviceimports shop/web";
pub(super) const SLICE: &str = "endpointslices shop/imported-a-web-1";

impl Cluster {
    /// Carries out a request and keeps the answer back.
    pub(super) fn core_answer(&mut self, target: &Target, request: &Request) -> Result<Answer, Failure> {
        self.carry_out(target, request)
    }
}
