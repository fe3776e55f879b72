//! What a hub tells a member.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::placement::object::{self, ObjectKey};
use atoll_engine::plan::{ClusterPlan, Touched};
use serde::{Deserialize, Serialize};

use crate::checked;
use crate::copies::Order;

/// What a hub tells a member. A member that has been told nothing does nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "body")]
pub enum Down {
    /// Say which cluster you are ([`crate::Up::Identity`]), as soon as your API answers.
    Identify,
    /// You are this member: tell what there is, hold what is planned.
    Start(Identity),
    /// Until when you may write.
    Lease(Lease),
    /// What you should hold of one service.
    Assign(Assignment),
    /// What becomes of one copy of a template. The latest order counts.
    Order {
        /// The object.
        #[serde(deserialize_with = "checked::key")]
        key: ObjectKey,
        /// What is wanted of it.
        order: Order,
    },
    /// Look at your health now, and tell it.
    Look,
    /// Remove everything of ours, and say [`crate::Up::Cleaned`] or why you can't.
    Clean {
        /// Whose it is.
        identity: Identity,
        /// The kinds of which there may be copies.
        #[serde(deserialize_with = "checked::kinds")]
        kinds: BTreeSet<object::Kind>,
    },
    /// Give our rights back: the last thing that is asked of a member that leaves. Say [`crate::Up::GaveBack`].
    GiveBack(Identity),
    /// No new requests; say [`crate::Up::Stopped`] when the last has ended. You may be started again.
    Stop,
}

/// Which member this is, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The member.
    pub cluster: ClusterId,
    /// The uid of the hub: the value of the label that all our objects carry.
    #[serde(deserialize_with = "checked::label_value")]
    pub hub: Arc<str>,
    /// The clusterset.
    #[serde(deserialize_with = "checked::dns_name")]
    pub clusterset: Arc<str>,
}

/// The right to write, which the leader of the hubs has and lends to its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lease {
    /// For so long, counted from the moment at which this was sent: who can't know that moment takes an earlier one.
    Held(Duration),
    /// Not at all.
    Revoked,
}

/// What a member should hold of one service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The service.
    pub service: ServiceKey,
    /// The member's part of the plan; none if it had no part in it yet. Shared with the plan, and by no other member.
    pub part: Option<Arc<ClusterPlan>>,
    /// What differs from the plan that was assigned before. Whoever skips a plan must say `Everything` with the next.
    pub touched: Touched,
    /// A number, if the hub wants to hear how it is with dispatched slices from here on.
    pub answer: Option<u64>,
}
