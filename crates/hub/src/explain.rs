//! Questions to the leader, and its answers: typed JSON, made from the leader's own state. Who may ask is decided before a question gets
//! here, by the API server that it came through.
//!
//! ```text
//!   the hub's own API ────────────────────────────────▶ serve: a group ──▶ Questions ──▶ the leader's task
//!   kube-apiserver ──▶ listen (TLS, its CA) ──▶ access ──▶     ▲
//!        └── APIService, Service, EndpointSlice ◀── registration (the leader)
//! ```

pub(crate) mod access;
pub(crate) mod listen;
mod questions;
pub(crate) mod registration;
mod roles;
mod serve;

pub use serve::group;

pub(crate) use questions::Question;
pub use questions::{Answered, Asked, Questions, Verb};

use crate::services::brain::Brain;

/// Answers from the leader's state.
pub(crate) fn answer(_: &Brain, asked: &Asked) -> Answered {
    questions::unknown(&asked.resource)
}
