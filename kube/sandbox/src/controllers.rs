//! What kube-controller-manager does, as far as a member needs it: Deployments, ReplicaSets, StatefulSets, Jobs,
//! EndpointSlices and the account of a namespace. (Namespaces and garbage are the API's own work.)
//!
//! ```text
//!   one watch per kind ──▶ cache (facts) ──▶ keys ──▶ queue ──▶ plan ──▶ requests
//!                             ▲                                             │
//!                             └──────────────── answers ────────────────────┘
//! ```
//!
//! A planner is a function from facts and the time to a plan, which is a list of requests; it knows no clock and no API. Answers go
//! into the cache before the key is planned again, so that nothing is made twice while a watch is behind. Start at
//! [`run`]; then read `deployment` or `slices`.

mod account;
mod action;
mod adopt;
mod cache;
mod conditions;
mod deployment;
mod facts;
mod job;
mod queue;
mod replicaset;
mod shell;
pub(crate) mod slices;
mod statefulset;
mod template;
#[cfg(test)]
mod world;

pub use shell::{run, run_with_clock};
