//! Behaviour of the crate from outside.

mod admission;
mod bodies;
mod golden;
mod hostile;
mod schemas;
mod selectors;
