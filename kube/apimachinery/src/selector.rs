//! Which objects a client asked for: `labelSelector` and `fieldSelector`.

pub mod fields;
pub mod labels;

/// A selector that can't be read, in a kube-apiserver's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);
