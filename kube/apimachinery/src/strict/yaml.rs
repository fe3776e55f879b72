//! YAML as far as it means JSON.

use super::ParseError;
use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

/// Most levels in YAML: its reader needs much more of the stack for each than ours.
const DEPTH_MOST: usize = 64;

/// Most values in YAML: a few lines of aliases make any number of them.
const NODES_MOST: usize = 100_000;

/// Most bytes of text in YAML, each alias counted: more than any body has that is taken (3 MB), and little enough for the memory.
const TEXT_MOST: usize = 4 << 20;

/// Reads one YAML document as [`super::parse`] reads JSON. Of duplicate fields the first one is told, by what the
/// reader says about it: it does not know the path.
///
/// # Errors
/// Where it is not YAML, has no meaning in JSON, or is nested too deeply.
pub fn parse_yaml(bytes: &[u8]) -> Result<(Value, Vec<String>), ParseError> {
    // What is called YAML is JSON more often than not, and JSON may be deeper.
    if bytes.trim_ascii_start().starts_with(b"{")
        && let read @ (Ok(_) | Err(ParseError::TooDeep)) = super::parse(bytes)
    {
        return read;
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ParseError::Syntax(format!("yaml: {error}")))?;
    let read = |duplicate_keys: DuplicateKeyPolicy| {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_depth: DEPTH_MOST, max_nodes: NODES_MOST, max_total_scalar_bytes: TEXT_MOST },
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
