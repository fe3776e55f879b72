//! Decides what each cluster of a clusterset should hold, and why.
//!
//! ```text
//!   facts ───┐                        ┌─▶ plan ─▶ objects per cluster, conditions, reasons
//!   memory ──┼─▶ engine: plan(now) ───┤
//!   intents ─┘                        └─▶ memory, for the hub to persist
//! ```
//!
//! Pure: no clock, no randomness, no I/O; time is an argument. Start at [`engine::Engine`], which takes in changes and plans the
//! services that they concern; [`services`] lists the steps of a plan; [`plan`] is what comes out; [`check`] lists what no plan
//! may do. What a plan says of a cluster that has not been heard from is *keep what is there*: a hub that was
//! restarted while a member is down must not take away what came from it.
//!
//! ```
//! use atoll_engine::engine::Engine;
//! use atoll_engine::facts::{Capabilities, NamespaceState, Settings};
//! use atoll_engine::memory::Memory;
//! use atoll_engine::names::{ClusterId, Namespace, ServiceKey};
//! use atoll_engine::network::Family;
//! use atoll_engine::plan::{ImportPlan, WhyAbsent};
//! use atoll_engine::time::Time;
//! use atoll_engine::world::Change;
//!
//! # fn main() -> Result<(), atoll_engine::names::BadName> {
//! let (paris, web) = (ClusterId::parse("paris")?, ServiceKey::parse("shop", "web")?);
//! let mut engine = Engine::new(Settings::default(), Memory::new());
//! for change in [
//!     Change::Joined,
//!     Change::Namespace(Namespace::parse("shop")?, Some(NamespaceState::Active)),
//!     Change::Heard(Capabilities { families: vec![Family::V4], kubernetes_minor: 36 }),
//! ] {
//!     let _ = engine.apply(&paris, change);
//! }
//! let outcome = engine.plan(&web, Time(0));
//! assert_eq!(outcome.plan.clusters[&paris].import, ImportPlan::Absent(WhyAbsent::NotExported));
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
extern crate self as atoll_engine;

pub mod check;
pub mod engine;
pub mod explain;
pub mod facts;
pub mod fences;
pub mod few;
#[cfg(test)]
mod fixture;
pub mod intent;
pub mod limits;
pub mod memory;
pub mod names;
pub mod network;
pub mod placement;
pub mod plan;
pub mod reason;
pub mod services;
pub mod time;
pub mod world;
