//! Copies of templates: what the hub orders, and what it is told.

use std::sync::Arc;

use atoll_engine::placement::object::ObjectKey;
use atoll_engine::placement::policy::ConflictResolution;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checked;
use crate::problem::Access;

/// What the hub wants of one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// It is there, like this.
    Hold {
        /// The object, without what is a cluster's own.
        object: Arc<Value>,
        /// What happens to one that is there already, and is not ours.
        conflict: ConflictResolution,
    },
    /// It is there, whoever made it; it is made if it is not, and never changed.
    Ensure(Arc<Value>),
    /// Nothing is written: others make it. Say whether it is there.
    Observe,
    /// Nothing is written at present.
    Suspend,
    /// Ours goes.
    Drop,
    /// Ours stays, and is managed by Atoll no more.
    Release,
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CopyState {
    /// It is as ordered; its status, and whether it does what it should, where its kind says.
    Applied {
        /// `status` of the copy.
        status: Value,
        /// Whether it does what it should.
        healthy: Option<bool>,
    },
    /// It is not.
    NotApplied(WhyNot),
    /// Nothing of ours is there.
    Gone,
}

/// Why a copy is not as ordered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum WhyNot {
    /// It has not been written yet.
    #[error("not written yet")]
    NotYet,
    /// The member does not serve its kind.
    #[error("the member does not serve {kind} of {api_version}; propagate or install its CRD")]
    KindAbsent {
        /// The version that was asked for.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// The namespace is not there.
    #[error("the member has no namespace {0}")]
    NamespaceAbsent(String),
    /// Something that is not ours is in its place.
    #[error(
        "the member already has such an object, which is not managed by the hub; set conflictResolution: Overwrite to take it over"
    )]
    Foreign,
    /// Others make it, and have not.
    #[error("the member creates it itself, and has not done so yet")]
    MadeByOthers,
    /// A right is missing.
    #[error(
        "the hub may not {verb} {resource} in {cluster}: run `atoll join {cluster} --cluster-kubeconfig FILE \
         --allow-propagation={resource}`"
    )]
    Forbidden {
        /// What we wanted to do.
        verb: Access,
        /// `deployments.apps`.
        resource: String,
        /// The member.
        cluster: String,
    },
    /// The member does not take it.
    #[error("the member rejected it: {0}")]
    Rejected(String),
    /// The member does not answer.
    #[error("the member can't be reached: {0}")]
    Unreachable(String),
    /// It is held up by its policy.
    #[error("its policy suspends dispatching to this cluster")]
    Suspended,
    /// A finalizer of another owner holds up its deletion, or it goes on its own.
    #[error("it is being deleted")]
    Deleting,
}

/// What a member says of one object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyReport {
    /// The object.
    #[serde(deserialize_with = "checked::key")]
    pub key: ObjectKey,
    /// What became of it.
    pub state: CopyState,
}
