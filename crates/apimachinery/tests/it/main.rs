//! Behaviour of the crate from outside.

mod admission;
mod bodies;
mod golden;
mod schemas;
mod selectors;
