//! Behaviour of the crate from outside, much of it against what a real API server did.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a helper of a test may fail the test"
)]

mod admission;
mod bodies;
mod bombs;
mod cel_bombs;
mod golden;
mod hostile;
mod ownership;
mod replay;
#[path = "../shared/scenario.rs"]
mod scenario;
mod schemas;
mod selectors;
