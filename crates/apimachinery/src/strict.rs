//! Request bodies from anyone: JSON or YAML, with what `fieldValidation` wants to know of them.

mod json;
mod yaml;

pub use json::parse;
pub use yaml::parse_yaml;

/// Most levels of objects and lists in a body.
pub const DEPTH_MOST: usize = 512;

/// A body that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not JSON.
    #[error("{0}")]
    Syntax(String),
    /// Nested too deeply.
    #[error("exceeded max depth of {DEPTH_MOST}")]
    TooDeep,
}
