//! Behaviour of the crate from outside.

mod bodies;
mod schemas;
mod selectors;
