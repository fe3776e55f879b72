//! Behaviour of the crate from outside, much of it against what a real API server did.

mod admission;
mod bodies;
mod ownership;
mod replay;
#[path = "../scenario/mod.rs"]
mod scenario;
mod golden;
mod schemas;
mod selectors;
