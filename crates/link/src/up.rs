//! What a member tells its hub.

use std::time::Duration;

use atoll_engine::names::{ClusterId, ServiceKey, SliceName, Uid};
use atoll_engine::world::Change;
use serde::{Deserialize, Serialize};

use crate::copies::CopyReport;
use crate::object::Kind;
use crate::problem::Problem;

/// What a member tells its hub. Which member it is the link knows; the message never says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body")]
pub enum Up {
    /// A fact, in order; [`Change::Heard`] only after every kind has been listed.
    Change(Change),
    /// It holds objects of ours for this service: the hub must plan it even if nothing else is known of it. Said after
    /// [`Change::Heard`].
    Holds(ServiceKey),
    /// Its API has answered just now.
    Alive,
    /// Its API does not answer.
    Unreachable {
        /// How long ago it was first asked in vain.
        silent_for: Duration,
        /// What happened.
        why: String,
    },
    /// A write was acknowledged.
    Wrote(Written),
    /// How it is with the slices that a `MultiClusterService` brings here.
    Dispatched(Dispatched),
    /// Something that a person must do.
    Problem(Problem),
    /// What became of a copy of a template.
    Copy(CopyReport),
    /// How its API is: said whenever it has been looked at, changed or not.
    Health(Health),
    /// Which cluster this is.
    Identity {
        /// The uid of its kube-system, if it has one.
        uid: Option<Uid>,
        /// What a hub calls it, by the property that it keeps there.
        #[serde(default)]
        called: Option<Called>,
    },
    /// It holds nothing of ours any more.
    Cleaned,
    /// Our rights there are gone, or were not ours to give back.
    GaveBack,
    /// It could not be cleaned, or the rights are still there. It does not try again by itself.
    NotCleaned {
        /// What stands in the way.
        why: String,
    },
    /// It was told to stop, and nothing of it is under way any more.
    Stopped,
}

/// The name that a hub gave a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The uid of that hub.
    pub hub: String,
    /// The name.
    pub cluster: ClusterId,
}

/// A write that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The service.
    pub service: ServiceKey,
    /// The kind.
    pub kind: Kind,
    /// What was done.
    pub verb: Verb,
    /// For a slice: where it comes from, and its name there.
    pub slice: Option<(ClusterId, SliceName)>,
}

/// How it is with the slices that a `MultiClusterService` brings to a member; said when it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// What a member's API says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// It answers and is healthy.
    Ready {
        /// The version of its Kubernetes.
        version: String,
    },
    /// It answers, and is not healthy, or does not let us do what we must.
    NotReady {
        /// What is wrong.
        why: String,
    },
    /// It does not answer.
    NotReachable {
        /// What happened.
        why: String,
    },
    /// It answers, and does not say its version.
    NoVersion {
        /// What happened.
        why: String,
    },
}
