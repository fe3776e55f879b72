//! YAML as far as it means JSON.

use super::ParseError;
use serde_json::Value;

/// Reads one YAML document as [`super::parse`] reads JSON.
///
/// # Errors
/// Where it is not YAML, has no meaning in JSON, or is nested too deeply.
pub fn parse_yaml(bytes: &[u8]) -> Result<(Value, Vec<String>), ParseError> {
    let value = serde_saphyr::from_slice(bytes).map_err(|error| ParseError::Syntax(error.to_string()))?;
    Ok((value, Vec::new()))
}
