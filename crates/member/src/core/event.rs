//! What comes into the state machine, and what it asks for.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_engine::facts::{Capabilities, ExportFact, NamespaceState, ServiceFact, SliceFact};
use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, Namespace, NodeName, ServiceKey, SliceName, Uid};
use atoll_engine::network::{Family, Nodes};
use atoll_engine::time::Time;

use super::object::{
    Attached, ConditionBody, ImportBody, ImportStatusBody, Kind, ObjectName, PropertyName, ServiceBody,
    SliceBody, Target, Version,
};
use crate::events::Notice;
use atoll_link::{Assignment, Problem, Up};

/// The time, twice: to wait by, and to write down.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Never goes back.
    pub instant: Instant,
    /// What the clock on the wall says.
    pub wall: Time,
}

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// A kind is listed anew: what was known of it is in doubt until the list is complete.
    ListStarted(Kind),
    /// The list of a kind is complete.
    Listed(Kind),
    /// A kind that we can do without can't be listed: it is not awaited any longer.
    Unlisted(Kind),
    /// An object is there.
    Seen(Seen),
    /// An object is gone.
    Gone(Gone),
    /// The hub has planned a service.
    Assigned(Assignment),
    /// A write was answered.
    Wrote(Target, Result<Answer, Failure>),
    /// A read was answered.
    Read(Target, Result<Option<Seen>, Failure>),
    /// Whether the hub may write.
    Permitted(bool),
    /// What the cluster can do.
    Capable(Capabilities),
    /// The operator should know.
    Noticed(Problem),
    /// Time has passed.
    Tick,
}

/// An object that is there, reduced to what concerns us.
#[derive(Debug)]
pub enum Seen {
    /// A namespace.
    Namespace(Namespace, NamespaceState),
    /// A node: its addresses, and the networks of its pods.
    Node(NodeName, Nodes),
    /// A Service of another owner, or of another hub.
    Service(ServiceKey, ServiceFact),
    /// A derived Service of ours.
    OwnService(OwnService),
    /// A slice of a Service.
    Slice(Namespace, SliceName, ServiceKey, SliceFact),
    /// A slice that is neither ours nor a fact.
    OtherSlice(Namespace, SliceName),
    /// A slice of ours.
    OwnSlice(OwnSlice),
    /// A ServiceExport.
    Export(SeenExport),
    /// A ServiceExport with a name that no Service can have.
    MisnamedExport(MisnamedExport),
    /// A ServiceImport of another owner, or of another hub.
    Import(ServiceKey),
    /// A ServiceImport of ours.
    OwnImport(OwnImport),
    /// A property that a member has.
    Property(SeenProperty),
}

/// A derived Service of ours.
#[derive(Debug)]
pub struct OwnService {
    /// Where, and what it is called.
    pub name: ServiceKey,
    /// The service of the clusterset.
    pub of: ServiceKey,
    /// Which state.
    pub version: Version,
    /// What it says; none if that can't be anything of ours.
    pub body: Option<ServiceBody>,
    /// Whether it has no cluster IP.
    pub headless: bool,
    /// Its families, the primary one first.
    pub families: Vec<Family>,
    /// Its cluster IPs.
    pub ips: Vec<IpAddr>,
}

/// A slice of ours.
#[derive(Debug)]
pub struct OwnSlice {
    /// The service of the clusterset.
    pub of: ServiceKey,
    /// Its name.
    pub name: SliceName,
    /// Which intent it serves.
    pub intent: Intent,
    /// Its source, if it says one.
    pub source: Option<ClusterId>,
    /// Which state.
    pub version: Version,
    /// How it hangs on the derived Service.
    pub attached: Attached,
    /// What it says; none if that can't be anything of ours.
    pub body: Option<SliceBody>,
}

/// A ServiceImport of ours.
#[derive(Debug)]
pub struct OwnImport {
    /// Which.
    pub key: ServiceKey,
    /// Which state.
    pub version: Version,
    /// What it says; none if that can't be anything of ours.
    pub body: Option<ImportBody>,
    /// Its stale marks, as they are written.
    pub stale: Option<Arc<str>>,
    /// Its addresses.
    pub ips: Vec<IpAddr>,
    /// Its status.
    pub status: ImportStatusBody,
}

/// A ServiceExport.
#[derive(Debug)]
pub struct SeenExport {
    /// Which.
    pub key: ServiceKey,
    /// Which state.
    pub version: Version,
    /// What it asks for.
    pub fact: ExportFact,
    /// The conditions that are ours to write.
    pub conditions: Vec<ConditionBody>,
}

/// A ServiceExport with a name that no Service can have.
#[derive(Debug)]
pub struct MisnamedExport {
    /// Where.
    pub namespace: Namespace,
    /// Its name.
    pub name: Arc<str>,
    /// Which state.
    pub version: Version,
    /// The conditions that are ours to write.
    pub conditions: Vec<ConditionBody>,
}

/// A property that a member has.
#[derive(Debug)]
pub struct SeenProperty {
    /// Which.
    pub name: PropertyName,
    /// Which state.
    pub version: Version,
    /// Whether we made it.
    pub ours: bool,
    /// Its value.
    pub value: String,
}

/// An object that is gone.
#[derive(Debug)]
pub struct Gone {
    /// Which.
    pub object: ObjectName,
    /// Its last state.
    pub version: Version,
}

/// How a write was answered.
#[derive(Debug)]
pub enum Answer {
    /// With the object as it is now.
    Written(Box<Seen>),
    /// It is gone, or will be.
    Deleted,
}

/// Why a request did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Our idea of the object is out of date (409).
    Conflict,
    /// There is one of that name already (409).
    AlreadyExists,
    /// There is no such object, or no namespace for it (404).
    NotFound,
    /// The namespace is going (403).
    NamespaceTerminating,
    /// We lack the right (403).
    Forbidden(String),
    /// The API server takes no such object (422, 400).
    Invalid(String),
    /// Later, it says (429).
    Later(Option<Duration>),
    /// No answer, or none that helps; whether the write was done is not known.
    Unreachable(String),
    /// The hub may not write now; nothing was sent.
    NotPermitted,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Conflict => f.write_str("the object has changed since it was read"),
            Self::AlreadyExists => f.write_str("there is an object of this name already"),
            Self::NotFound => f.write_str("there is no such object, or no such namespace"),
            Self::NamespaceTerminating => f.write_str("its namespace is being deleted"),
            Self::Forbidden(why) => write!(f, "not allowed: {why}"),
            Self::Invalid(why) => write!(f, "rejected: {why}"),
            Self::Later(_) => f.write_str("the API server is overloaded and asks to wait"),
            Self::Unreachable(why) => write!(f, "no usable answer: {why}"),
            Self::NotPermitted => f.write_str("the hub may not write now"),
        }
    }
}

/// What the state machine asks for.
#[derive(Debug)]
pub enum Command {
    /// Send this request, once, and answer with [`Event::Wrote`].
    Write(Target, Box<Request>),
    /// Read the object and answer with [`Event::Read`].
    Read(Target),
    /// Tell the hub.
    Report(Up),
    /// Log it, and make an event of it.
    Tell(Box<Notice>),
}

/// A request that changes something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Make the derived Service, or replace it.
    Service {
        /// What it says.
        body: ServiceBody,
        /// The addresses to ask for, or to keep.
        ips: Vec<IpAddr>,
        /// What is replaced.
        onto: Option<Version>,
    },
    /// Make the ServiceImport, or replace it.
    Import(ImportBody, Option<Version>),
    /// Make the slice, or replace it.
    Slice(SliceBody, Option<Version>),
    /// Hang a slice, whose contents are not known, on another Service.
    Attach {
        /// The slice's namespace and service.
        of: ServiceKey,
        /// The slice.
        name: SliceName,
        /// Where to.
        attached: Attached,
        /// What is changed.
        onto: Version,
    },
    /// Replace the status of the ServiceImport.
    ImportStatus(ServiceKey, ImportStatusBody, Version),
    /// Apply the conditions of the ServiceExport with this uid.
    ExportStatus(ServiceKey, Uid, Vec<ConditionBody>),
    /// Apply the conditions of a ServiceExport with a name that no Service can have.
    MisnamedStatus(Namespace, Arc<str>, Uid, Vec<ConditionBody>),
    /// Make the property, or replace it.
    Property(PropertyName, Arc<str>, Option<Version>),
    /// Delete exactly this state of the object.
    Delete(Target, Version),
}

impl Request {
    /// Whether it takes something away.
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Delete(..))
    }
}
