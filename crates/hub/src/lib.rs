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

mod annotations;
pub mod balancing;
mod brain;
mod clean;
mod clusterset;
mod conditions;
pub mod connect;
mod crd;
mod crossing;
mod election;
mod health;
mod http;
mod identify;
mod imports;
pub mod join;
mod latest;
mod lead;
mod metrics;
mod mirror;
pub mod networks;
pub mod options;
mod policies;
pub mod reach;
mod roster;
mod run;
mod store;
mod tell;
pub mod unjoin;
mod unshown;
mod watch;

pub use options::Options;
pub use run::{HubError, run};
