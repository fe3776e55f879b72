//! The prose of a member that the engine does not know.

/// The message of an import's `Ready` while its derived Service is not there.
pub(crate) const DERIVED_SERVICE_AWAITED: &str =
    "The derived Service is being made; the service can be used when it has its address.";
