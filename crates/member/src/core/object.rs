//! The objects that a member deals with, reduced to what we read and write of them.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use atoll_engine::facts::{InternalTrafficPolicy, Pairs, ServicePort, SessionAffinity, TrafficDistribution};
use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, Namespace, ServiceKey, ServiceName, SliceName, Uid};
use atoll_engine::network::Family;
use atoll_engine::plan::Slice;
use atoll_engine::time::Time;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

pub use atoll_link::{Kind, ObjectName, PropertyName};

/// What is written as one: the queue holds each at most once, and decides what to write when its turn has come.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A derived Service.
    Service(ServiceKey, ServiceName),
    /// A ServiceImport but its status.
    Import(ServiceKey),
    /// An imported or dispatched slice.
    Slice(ServiceKey, SliceName),
    /// The status of a ServiceImport.
    ImportStatus(ServiceKey),
    /// The conditions of a ServiceExport.
    ExportStatus(ServiceKey),
    /// The conditions of a ServiceExport with a name that no Service can have.
    MisnamedStatus(Namespace, Arc<str>),
    /// A `ClusterProperty`.
    Property(PropertyName),
}

impl Target {
    /// What is written first: a Service before its slices, slices before what is said about them.
    pub fn priority(&self) -> u8 {
        match self {
            Self::Service(..) => 0,
            Self::Slice(..) => 1,
            Self::Import(_) => 2,
            Self::ImportStatus(_) | Self::ExportStatus(_) | Self::MisnamedStatus(..) | Self::Property(_) => 3,
        }
    }

    /// The service that it belongs to.
    pub fn service(&self) -> Option<&ServiceKey> {
        match self {
            Self::Service(key, _)
            | Self::Import(key)
            | Self::Slice(key, _)
            | Self::ImportStatus(key)
            | Self::ExportStatus(key) => Some(key),
            Self::MisnamedStatus(..) | Self::Property(_) => None,
        }
    }

    /// Its namespace.
    pub fn namespace(&self) -> Option<&Namespace> {
        match self {
            Self::MisnamedStatus(namespace, _) => Some(namespace),
            other => other.service().map(|key| &key.namespace),
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Service(..) => Kind::Service,
            Self::Slice(..) => Kind::Slice,
            Self::Import(_) | Self::ImportStatus(_) => Kind::Import,
            Self::ExportStatus(_) | Self::MisnamedStatus(..) => Kind::Export,
            Self::Property(_) => Kind::Property,
        }
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Service(_, name) => name.as_str(),
            Self::Slice(_, name) => name.as_str(),
            Self::Import(key) | Self::ImportStatus(key) | Self::ExportStatus(key) => key.name.as_str(),
            Self::MisnamedStatus(_, name) => name,
            Self::Property(name) => name.as_str(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind().plural();
        match self.namespace() {
            Some(namespace) => write!(f, "{kind} {namespace}/{}", self.name()),
            None => write!(f, "{kind} {}", self.name()),
        }
    }
}

/// Which object, and which state of it. Revisions of one kind can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// One made anew under the same name is another.
    pub uid: Uid,
    /// Its `resourceVersion`.
    pub revision: u64,
    /// Whether it is on its way out, held up by a finalizer.
    pub deleting: bool,
    /// What others have hung on it; few objects have any.
    pub others: Option<Arc<Others>>,
}

/// What others have hung on an object of ours. Whoever replaces the object has to carry it over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Others {
    /// Their finalizers.
    pub finalizers: Vec<String>,
    /// Their owners, but for Services: a slice has one by us.
    pub owners: Vec<OwnerReference>,
}

// Texts and switches: equality is whole, though the API's type does not say so.
impl Eq for Others {}

/// Stands for the contents of an object: equal contents, equal fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u64);

/// Makes fingerprints. The key is random, so that two slices with one fingerprint cannot be prepared.
#[derive(Debug, Clone, Default)]
pub struct Fingerprinter(RandomState);

impl Fingerprinter {
    /// The fingerprint of some contents; what can't be read has one that nothing else has.
    pub fn print<T: Hash>(&self, contents: Option<&T>) -> Fingerprint {
        Fingerprint(self.0.hash_one(contents))
    }
}

/// A derived Service as we write it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceBody {
    /// Its name.
    pub name: ServiceName,
    /// The service of the clusterset.
    pub of: ServiceKey,
    /// Whether it has no cluster IP.
    pub headless: bool,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Session affinity.
    pub session_affinity: SessionAffinity,
    /// Its timeout, defaulted as the API server does.
    pub client_ip_timeout: Option<u32>,
    /// Internal traffic policy.
    pub internal_traffic_policy: InternalTrafficPolicy,
    /// Traffic distribution.
    pub traffic_distribution: Option<TrafficDistribution>,
    /// Its families, the primary one first.
    pub families: Vec<Family>,
    /// Whether it has what we never write: a selector, another type, an external address.
    pub extras: bool,
}

/// A ServiceImport as we write it, but its status.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImportBody {
    /// Its name.
    pub key: ServiceKey,
    /// Its labels but for the hub's.
    pub labels: Pairs,
    /// Its annotations.
    pub annotations: Pairs,
    /// `Headless`, or else `ClusterSetIP`.
    pub headless: bool,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Its addresses.
    pub ips: Vec<IpAddr>,
    /// Their families.
    pub families: Vec<Family>,
    /// Session affinity.
    pub session_affinity: SessionAffinity,
    /// Its timeout.
    pub client_ip_timeout: Option<u32>,
    /// Internal traffic policy.
    pub internal_traffic_policy: InternalTrafficPolicy,
    /// Traffic distribution.
    pub traffic_distribution: Option<TrafficDistribution>,
}

/// An imported or dispatched slice as we write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SliceBody {
    /// The service of the clusterset.
    pub of: ServiceKey,
    /// Which intent it serves.
    pub intent: Intent,
    /// How it hangs on its Service.
    pub attached: Attached,
    /// The rest. Its name counts; its original name and its notes are not written.
    pub slice: Arc<Slice>,
}

/// How a slice hangs on its Service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attached {
    /// The name of the Service.
    pub to: Option<ServiceName>,
    /// The uid of the Service, for the owner reference.
    pub owner: Option<Uid>,
    /// Whether kube-proxy should leave it alone.
    pub headless: bool,
}

impl Hash for SliceBody {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Slice { name, original: _, source, family, ports, endpoints, notes: _ } = &*self.slice;
        let dispatched = self.intent == Intent::CrossCluster;
        (&self.of, dispatched, &self.attached, name, source, family, ports, endpoints).hash(state);
    }
}

/// A condition as we write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionBody {
    /// Its type.
    pub kind: Arc<str>,
    /// Whether it is so; none is `Unknown`.
    pub status: Option<bool>,
    /// Why, for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// When its status last changed.
    pub since: Time,
}

impl Hash for ConditionBody {
    /// The time is no news.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.kind, self.status, &self.reason, &self.message).hash(state);
    }
}

/// The status of a ServiceImport as we write it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImportStatusBody {
    /// The clusters that export the service.
    pub clusters: Vec<ClusterId>,
    /// `Ready`.
    pub conditions: Vec<ConditionBody>,
    /// Whether its endpoints are to be found in slices.
    pub slices: Option<bool>,
}

impl From<&Target> for ObjectName {
    fn from(target: &Target) -> Self {
        Self { kind: target.kind(), namespace: target.namespace().cloned(), name: target.name().into() }
    }
}
