//! Behaviour of the crate from outside.

mod selectors;
