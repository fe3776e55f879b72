//! What a CRD's schema must be before it may describe anything.

use crate::invalid::FieldError;
use serde_json::Value;

/// What is wrong with an `openAPIV3Schema`. `path` is where it stands in the CRD:
/// `spec.validation.openAPIV3Schema`, or `spec.versions[0].schema.openAPIV3Schema` when the versions' schemas differ.
#[must_use]
pub fn structural(document: &Value, path: &str) -> Vec<FieldError> {
    match super::parse(document) {
        Ok(_) => Vec::new(),
        Err(unusable) => vec![FieldError::invalid(path, unusable.path, unusable.problem)],
    }
}
