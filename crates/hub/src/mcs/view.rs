//! How it is with one service that a `MultiClusterService` speaks for: what was planned, and what members say.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_engine::names::ClusterId;
use atoll_engine::plan::Crossing;
use atoll_engine::time::Time;
use atoll_link::Dispatched;

/// The whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// What it comes to; none if nothing is asked, or nothing is planned yet.
    pub(crate) crossing: Option<Arc<Crossing>>,
    /// Every member.
    pub(crate) members: BTreeMap<ClusterId, Member>,
}

/// One member.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// Whether it can be reached.
    pub(crate) contact: Contact,
    /// What it should hold.
    pub(crate) part: Part,
    /// Whether all that it has of the service is known.
    pub(crate) known: bool,
    /// How many endpoints it has of its own.
    pub(crate) endpoints: usize,
    /// What it says that it holds.
    pub(crate) said: Option<Dispatched>,
}

/// Whether a member can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contact {
    /// It can.
    Fine,
    /// It has not been heard since the hub started.
    Unheard,
    /// It does not answer at present.
    Silent,
    /// Its lease has ended.
    Lost(Time),
}

/// What a member should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The providers' slices.
    Slices,
    /// Nothing.
    Nothing,
    /// What it holds: that is not known.
    Untouched,
}
