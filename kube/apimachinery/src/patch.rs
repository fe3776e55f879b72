//! The three patches that say what to change: JSON patch, merge patch, strategic merge patch.
//!
//! ```text
//!   object + patch [+ schema] ──▶ object, or why not
//! ```
//!
//! Server-side apply, the fourth, is [`crate::apply`].

mod json;
mod merge;
mod strategic;

pub use json::{MOST_OPERATIONS, json};
pub use merge::merge;
pub use strategic::strategic;

/// A patch that was not carried out. The text is what an API server prints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch itself makes no sense: 400 `BadRequest`.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit this object: 422 `Invalid`, with no details.
    #[error("{0}")]
    Unprocessable(String),
    /// The patch contradicts itself or the schema in a way that an API server answers with 500.
    #[error("{0}")]
    Failed(String),
}
