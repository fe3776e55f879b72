//! Which objects a client asked for: `labelSelector` and `fieldSelector`.

pub mod fields;
pub mod labels;

/// Most terms of a selector: each is asked about every object of a list.
pub const TERMS_MOST: usize = 1000;

fn too_many_terms(count: usize) -> SelectorError {
    SelectorError(format!("a selector may have at most {TERMS_MOST} terms, this one has {count}"))
}

/// A selector that can't be read, in a kube-apiserver's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);
