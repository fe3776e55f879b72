//! One member cluster: watches it, and makes it match the plan. The one place that touches a member.
//!
//! ```text
//!   member's API                                                              hub
//!   watches ──▶ edge: objects → facts, versions ──▶ core.step(event, now) ──▶ Report
//!   writes  ◀── edge: bodies → objects          ◀── commands                ◀── Assignment (a plan)
//!   └──────────── shell: sockets, clock ─────────┘└─ cache, sync gate, ownership, diff, queue ─┘
//! ```
//!
//! Start at [`spawn`]; the decisions are in [`crate::core`], which knows no socket and no clock. Nothing is deleted
//! before every kind has been listed, nothing is touched that does not carry our hub's label, and nothing is written
//! without the [`Permit`]. [`enter`] and [`leave`] are for joining and leaving.

mod clients;
pub mod core;
mod edge;
mod enter;
mod leave;
mod mirrored;
mod permit;
pub mod propagate;
pub mod report;
mod shell;
mod stale;
mod text;

use std::sync::Arc;

use atoll_engine::names::ClusterId;

pub use clients::Clients;
pub use enter::{EnterError, EnterSummary, enter, may_enter};
pub use leave::{LeaveError, LeaveSummary, leave};
pub use mirrored::mirrored;
pub use permit::Permit;
pub use report::{Assignment, Dispatched, Problem, Report, Written};
pub use shell::{Handle, spawn};

/// Which member this is, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The member.
    pub cluster: ClusterId,
    /// The uid of the hub: the value of the label that all our objects carry.
    pub hub: Arc<str>,
    /// The clusterset.
    pub clusterset: Arc<str>,
}
