//! `MultiClusterServices` of the hub's API: what they ask for, and what is shown on them.
//!
//! ```text
//!   hub's API ── watch ──▶ edge ──▶ core ──▶ intents ──▶ engine (slices), policies (the Service itself)
//!   hub's API ◀── write: finalizer, status, events ◀── core ◀── view: plans, members' answers, copies ◀──┘
//! ```
//! [`core`] decides and [`show`] words it; both know no socket and no clock. [`controller`] is the shell
//! of one leadership. Endpoints never pass through here.

pub mod balancing;
pub(crate) mod controller;
pub(crate) mod core;
pub(crate) mod edge;
mod show;
pub(crate) mod view;
mod watch;
mod write;

pub(crate) use controller::Controller;
pub(crate) use core::Command;
pub(crate) use watch::Seen;
