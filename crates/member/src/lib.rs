//! One member cluster: watches it, and makes it match the plan. The one place that touches a member.
//!
//! ```text
//!   member's API                                                              hub
//!   watches ──▶ edge: objects → facts, versions ──▶ core.step(event, now) ──▶ Up
//!   writes  ◀── edge: bodies → objects          ◀── commands                ◀── Down (a part of a plan)
//!   └──────────── shell: sockets, clock ─────────┘└─ cache, sync gate, ownership, diff, queue ─┘
//! ```
//!
//! Start at [`spawn`]: a member takes [`atoll_link::Down`] and tells [`atoll_link::Up`], and nothing else passes between it and
//! its hub. The decisions are in [`crate::core`], which knows no socket and no clock. Nothing is deleted before every kind has
//! been listed, nothing is touched that does not carry our hub's label, and nothing is written without the [`Permit`], which
//! the hub lends. [`enter`] is for joining.

mod audit;
mod clean;
mod clients;
pub mod copies;
pub mod core;
mod edge;
mod enter;
pub mod events;
mod health;
mod identify;
pub mod imagine;
mod leave;
mod link;
mod mirrored;
mod permit;
mod shell;
mod stale;
mod text;
mod token;

pub use atoll_link::Identity;
pub use audit::{Audited, Auditor};
pub use clean::ROLE;
pub use clients::Clients;
pub use enter::{EnterError, EnterSummary, enter, may_enter};
pub use identify::{Called, called, cluster_uid};
pub use leave::{LeaveError, LeaveSummary, leave};
pub use link::{Downlink, Handle, Uplink, spawn};
pub use mirrored::mirrored;
pub use permit::{Changes, Permit};
pub use shell::failure::code;
pub use token::{BOUND_TO, Issued, Token, TokenError, issue};
