//! Questions to the leader, and its answers: typed JSON, made from the leader's own state. Who may ask is decided before a question gets
//! here, by the API server that it came through.

pub(crate) mod plan;
mod questions;

pub(crate) use questions::Question;
pub use questions::{Answered, Asked, Questions, Verb};

use crate::services::brain::Brain;

/// Answers from the leader's state.
pub(crate) fn answer(_: &Brain, asked: &Asked) -> Answered {
    questions::unknown(&asked.resource)
}
