//! Selectors: what is understood can be written down and is understood the same; the server answers or refuses.

use crate::server::Server;
use atoll_apimachinery::selector::{fields, labels};
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

/// Reads the input as a selector of both kinds, and lists with it.
pub(crate) fn check(server: &Server, input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input);
    let text = text.trim_end_matches('\n');
    if let Ok(selector) = labels::Selector::parse(text) {
        let written = selector.to_string();
        if labels::Selector::parse(&written).as_ref() != Ok(&selector) {
            return Err(format!("labels {text:?} become {written:?}"));
        }
    }
    if let Ok(selector) = fields::Selector::parse(text)
        && selector.terms.iter().all(|term| !term.field.contains(['!', '\\']))
    {
        let written = selector.to_string();
        if fields::Selector::parse(&written).as_ref() != Ok(&selector) {
            return Err(format!("fields {text:?} become {written:?}"));
        }
    }
    let encoded = percent_encode(text.as_bytes(), NON_ALPHANUMERIC);
    for parameter in ["labelSelector", "fieldSelector"] {
        let path = format!("/api/v1/namespaces/default/configmaps?{parameter}={encoded}");
        let answer = server.ask("GET", &path, "", Vec::new())?;
        if !matches!(answer.code, StatusCode::OK | StatusCode::BAD_REQUEST) {
            return Err(format!("{parameter} {text:?}: {} {}", answer.code, answer.body));
        }
    }
    Ok(())
}
