//! Behaviour of the crate from outside.

mod admission;
mod bodies;
mod schemas;
mod selectors;
