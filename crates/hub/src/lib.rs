//! Who is a member of the clusterset, and one engine between all members.
//!
//! ```text
//!  hub's API                       one task                              members
//!   Cluster, Secret ──▶ roster ──▶ ┌───────────────────────────┐ ◀── facts ── member A
//!   Lease ──▶ election ─ permit ─▶ │ brain: engine, gate, trace │
//!   ConfigMap per service ◀─────── └───────────────────────────┘ ─── plans ─▶ member B
//!      (memory, before the plan)            │
//!   Cluster status ◀── health       /healthz /readyz /metrics
//! ```
//!
//! Start at [`run`]. What decides is pure and takes time as an argument: `roster` (who is a member, and what has to be done about
//! it), `brain` (what is planned and handed out, in which order), `election` (who leads, until when). `lead` is the shell around
//! them. Endpoints never pass through the hub's API: a changed slice costs no request to it.
//!
//! [`join`] and [`unjoin`] are the library's side of the commands of the same names; [`reach`] is that of `-C`.

mod api;
pub mod explain;
mod leader;
mod mcs;
mod membership;
pub mod options;
mod policies;
mod services;

pub use leader::run::{HubError, run};
pub use mcs::balancing;
pub use membership::{connect, join, networks, reach, revoke, unjoin};
pub use options::Options;
