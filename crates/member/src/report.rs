//! What a member tells the hub, and what the hub tells a member.

use std::sync::Arc;
use std::time::Instant;

use atoll_engine::names::{ClusterId, ServiceKey, SliceName};
use atoll_engine::plan::{Plan, Touched};
use atoll_engine::world::Change;

pub use crate::core::object::{Kind, ObjectName};

/// What a member tells the hub.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// A fact, in order; [`Change::Heard`] only after every kind has been listed.
    Change(Change),
    /// It holds objects of ours for this service: the hub must plan it even if nothing else is known of it. Said after
    /// [`Change::Heard`].
    Holds(ServiceKey),
    /// Its API answered at that time.
    Alive(Instant),
    /// Its API does not answer.
    Unreachable {
        /// When it was first asked in vain.
        since: Instant,
        /// What happened.
        why: String,
    },
    /// A write was acknowledged.
    Wrote(Written),
    /// How it is with the slices that a `MultiClusterService` brings here.
    Dispatched(Dispatched),
    /// Something that a person must do.
    Problem(Problem),
}

/// A write that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The service.
    pub service: ServiceKey,
    /// The kind.
    pub kind: Kind,
    /// What was done.
    pub verb: Verb,
    /// For a slice: where it comes from, and its name there.
    pub slice: Option<(ClusterId, SliceName)>,
    /// When the answer came.
    pub at: Instant,
}

/// How it is with the slices that a `MultiClusterService` brings to a member; said when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatched {
    /// The service.
    pub service: ServiceKey,
    /// The assignment that it answers.
    pub answers: u64,
    /// How many of the slices are there.
    pub slices: usize,
    /// Whether some are still to be written or taken away.
    pub pending: bool,
    /// What stands in the way, in order.
    pub problems: Vec<String>,
}

/// What was done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// It was made.
    Create,
    /// It was replaced.
    Update,
    /// It was deleted.
    Delete,
    /// Its status was written.
    Status,
}

impl Verb {
    /// As in an RBAC rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Status => "patch",
        }
    }
}

/// Something that a person must do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// We lack a right in the member.
    #[error("may not {verb} {kind}: {why}", kind = .kind.plural())]
    Forbidden {
        /// What we wanted to do.
        verb: &'static str,
        /// With what.
        kind: Kind,
        /// The API server's words.
        why: String,
    },
    /// The member's API does not know a kind.
    #[error("the API does not serve {kind}; install the CRDs (`atoll crds`)", kind = .0.plural())]
    KindAbsent(Kind),
    /// What we should write is somebody else's.
    #[error("{object} is not managed by Atoll and is not changed; delete or rename it to import {service}")]
    Foreign {
        /// The service that needs it.
        service: ServiceKey,
        /// The object.
        object: ObjectName,
    },
    /// The API server does not take what we write.
    #[error("{object} was rejected: {why}")]
    Refused {
        /// The object.
        object: ObjectName,
        /// The API server's words.
        why: String,
    },
    /// A part of an object can't be carried to other clusters.
    #[error("{object}: {field} is ignored: {why}")]
    Unrepresentable {
        /// The object.
        object: ObjectName,
        /// The part.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A property of the cluster says something else than its membership, and is not ours.
    #[error("ClusterProperty {name} is {theirs:?} and should be {ours:?}; delete it, or unjoin this cluster")]
    OtherProperty {
        /// Its name.
        name: &'static str,
        /// Its value.
        theirs: String,
        /// What it should be.
        ours: String,
    },
}

/// What the hub tells a member: carry out its part of this plan.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// The plan.
    pub plan: Arc<Plan>,
    /// What differs from the plan that was assigned before. Whoever skips a plan must say `Everything` with the next.
    pub touched: Touched,
    /// A number, if the hub wants to hear how it is with dispatched slices from here on.
    pub answer: Option<u64>,
}
