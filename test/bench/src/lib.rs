//! Measures from outside how fast a clusterset follows its members, against a floor in the same run.
//!
//! ```text
//!            cluster A                                                   cluster B
//!   PUT ──▶  atoll-bench-ours    ──watch──▶  the product   ──writes──▶   atoll-bench-ours   ──┐
//!   PUT ──▶  atoll-bench-floor   ──watch──▶  the floor     ──writes──▶   atoll-bench-floor  ──┼─watch─▶ when?
//!   PUT ──▶  atoll-bench-copier  ──watch──▶  a copier      ──one PUT─▶   atoll-bench-copier ──┘
//! ```
//!
//! The three take turns within every round, since machines drift: a ratio is of samples taken next to each other.
//! Nothing here knows the hub or the member: plain clients on kubeconfigs, and labels that the standard has. What only
//! the caller can do (restart the hub, read audit logs) comes in by [`Hub`] and [`Audit`].
//!
//! Other benchmarks: [`policies`], of templates in the hub, and [`api`], of Kubernetes APIs side by side.
//!
//! Start at [`propagation`]; the floor is `floor.rs`, the order of a run [`schedule::steps`].
//!
//! ```no_run
//! # async fn example(a: String, b: String) -> Result<(), atoll_bench::Error> {
//! use atoll_bench::{Cluster, Environment, Options, propagation};
//! let report = propagation(
//!     Options::quick(),
//!     Environment {
//!         source: Cluster { name: "a".to_owned(), kubeconfig: a, context: None },
//!         importers: vec![Cluster { name: "b".to_owned(), kubeconfig: b, context: None }],
//!         hub_api: None,
//!         questions: None,
//!         hub: None,
//!         audits: Vec::new(),
//!         progress: std::sync::Arc::new(|doing| eprintln!("{doing}")),
//!     },
//! )
//! .await?;
//! print!("{report}");
//! # Ok(()) }
//! ```

pub mod api;
mod asking;
mod environment;
mod error;
#[cfg(feature = "cli")]
mod flags;
mod floor;
mod objects;
mod options;
pub mod policies;
mod propagation;
mod report;
pub mod requests;
mod scenario;
pub mod schedule;
mod stage;
mod stand_in;
pub mod stats;
mod sweep;
mod usage;
mod watchers;

pub use asking::Asked;
pub use environment::{Audit, Cluster, Environment, Hub, Recording, Request};
pub use error::Error;
#[cfg(feature = "cli")]
pub use flags::Flags;
pub use options::{BadNetwork, ENDPOINTS, Network, Options, Path, Scenario, Who};
pub use propagation::propagation;
pub use report::{Ending, Report, Restart, Row};
pub use usage::Usage;
