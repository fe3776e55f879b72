//! YAML as far as it means JSON.

use super::{DEPTH_MOST, ParseError};
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

/// Reads one YAML document as [`super::parse`] reads JSON. Of duplicate fields the first one is told, by what the
/// reader says about it: it does not know the path.
///
/// # Errors
/// Where it is not YAML, has no meaning in JSON, or is nested too deeply.
pub fn parse_yaml(bytes: &[u8]) -> Result<(Value, Vec<String>), ParseError> {
    // Most of what is said to be YAML is JSON, and a deep one must not be left to the reader of YAML, which recurses.
    if bytes.trim_ascii_start().first().is_some_and(|first| matches!(first, b'{' | b'[')) {
        match super::parse(bytes) {
            Err(ParseError::Syntax(_)) => {}
            read => return read,
        }
    }
    if nested(bytes) > DEPTH_MOST {
        return Err(ParseError::TooDeep);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ParseError::Syntax(format!("yaml: {error}")))?;
    let read = |duplicate_keys: DuplicateKeyPolicy| {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: DEPTH_MOST, max_nodes: 1_000_000 },
            duplicate_keys: duplicate_keys,
            with_snippet: false,
        };
        serde_saphyr::from_str_with_options::<Value>(text, options)
    };
    match read(DuplicateKeyPolicy::Error) {
        Ok(value) => Ok((value, Vec::new())),
        Err(strict) => match read(DuplicateKeyPolicy::LastWins) {
            Ok(value) => Ok((value, vec![strict.to_string()])),
            Err(error) => Err(ParseError::Syntax(format!("yaml: {error}"))),
        },
    }
}

/// How deep brackets and lists of lists go at most, looked at without understanding: strings count too.
fn nested(bytes: &[u8]) -> usize {
    let (mut depth, mut deepest, mut dashes) = (0_usize, 0, 0);
    for byte in bytes {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'-' => dashes += 1,
            b' ' => {}
            _ => dashes = 0,
        }
        deepest = deepest.max(depth).max(dashes);
    }
    deepest
}
