//! Request bodies from anyone: JSON or YAML, with what `fieldValidation` wants to know of them.
//!
//! ```text
//!   bytes ──▶ json ─┬──▶ value, and the fields that were there twice
//!         ──▶ yaml ─┘
//! ```
//! A reader of our own: it tells duplicates apart, its depth is bounded, and its complaints are those that clients of
//! a kube-apiserver know.

mod json;
mod text;
mod yaml;

pub use json::parse;
pub use yaml::parse_yaml;

/// Most levels of objects and lists in a body: what all that walks over a value can stand. What is kept of one is read
/// back by a reader that stops at 128, and managed fields lie a few levels deeper than the fields.
pub const DEPTH_MOST: usize = 100;

/// A body that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not what it claims to be.
    #[error("{0}")]
    Syntax(String),
    /// Nested too deeply.
    #[error("exceeded max depth")]
    TooDeep,
}
