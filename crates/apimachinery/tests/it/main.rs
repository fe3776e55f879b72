//! Behaviour of the crate from outside.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a helper of a test may fail the test"
)]

mod admission;
mod bodies;
mod golden;
mod hostile;
mod schemas;
mod selectors;
