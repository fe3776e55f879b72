//! What the client can read (`Accept`) and what it wrote (`Content-Type`).

use crate::http::status_error::StatusError;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};

/// In which shape and media type an answer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) media_type: MediaType,
    pub(crate) shape: Shape,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    Yaml,
}

/// What an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The objects.
    Whole,
    /// What `kubectl get` prints; the version of the Table is `meta.k8s.io/…`.
    Table(&'static str),
    /// Their metadata.
    Metadata(&'static str),
}

/// One entry of an `Accept` header.
struct Clause<'a> {
    kind: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parameter(&self, name: &str) -> &'a str {
        self.parameters.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }
}

/// The entries of an `Accept` header, the most wanted first.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut all: Vec<(f32, Clause<'_>)> = header
        .split(',')
        .filter(|entry| !entry.trim().is_empty())
        .map(|entry| {
            let mut parts = entry.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
            let clause = Clause { kind, parameters };
            let weight = clause.parameter("q").parse().unwrap_or(1.0);
            (weight, clause)
        })
        .collect();
    all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    all.into_iter().map(|(_, clause)| clause).collect()
}

fn media_type(kind: &str) -> Option<MediaType> {
    match kind {
        "*/*" | "application/*" | "application/json" => Some(MediaType::Json),
        "application/yaml" => Some(MediaType::Yaml),
        _ => None,
    }
}

const WRITTEN: [&str; 2] = ["application/json", "application/yaml"];

fn accept(headers: &HeaderMap) -> &str {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Does the client take this kind, by its very name?
pub(crate) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    accept(headers).split(',').any(|one| one.split(';').next().is_some_and(|one| one.trim() == kind))
}

/// The shape and media type that the client wants most, of those that there are.
pub(crate) fn output(headers: &HeaderMap) -> Result<Output, StatusError> {
    let header = accept(headers);
    if header.trim().is_empty() {
        return Ok(Output { media_type: MediaType::Json, shape: Shape::Whole });
    }
    for clause in clauses(header) {
        let Some(media_type) = media_type(clause.kind) else { continue };
        let version = match (clause.parameter("g"), clause.parameter("v")) {
            ("meta.k8s.io", "v1") => Some("v1"),
            ("meta.k8s.io", "v1beta1") => Some("v1beta1"),
            _ => None,
        };
        let shape = match (clause.parameter("as"), version) {
            ("", _) => Shape::Whole,
            ("Table", Some(version)) => Shape::Table(version),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", Some(version)) => {
                Shape::Metadata(version)
            }
            _ => continue,
        };
        return Ok(Output { media_type, shape });
    }
    Err(StatusError::not_acceptable(&WRITTEN))
}

/// Does the client understand aggregated discovery? The version that it wants first.
pub(crate) fn aggregated_discovery(headers: &HeaderMap) -> Option<&'static str> {
    for clause in clauses(accept(headers)) {
        if media_type(clause.kind) != Some(MediaType::Json) {
            continue;
        }
        if clause.parameter("as") == "APIGroupDiscoveryList" && clause.parameter("g") == "apidiscovery.k8s.io"
        {
            match clause.parameter("v") {
                "v2" => return Some("v2"),
                "v2beta1" => return Some("v2beta1"),
                _ => {}
            }
        } else if clause.parameter("as").is_empty() {
            return None;
        }
    }
    None
}

/// The media type of protobuf bodies.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// In which media type a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Json,
    Yaml,
    Protobuf,
}

/// The media type of the body, without parameters.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim()
}

/// How to read the body of a create or an update.
pub(crate) fn input(headers: &HeaderMap, protobuf: bool) -> Result<Input, StatusError> {
    match content_type(headers) {
        "" | "application/json" => Ok(Input::Json),
        "application/yaml" => Ok(Input::Yaml),
        PROTOBUF if protobuf => Ok(Input::Protobuf),
        _ if protobuf => {
            let kinds = ["application/json", "application/yaml", PROTOBUF];
            Err(StatusError::unsupported_media(&kinds))
        }
        _ => Err(StatusError::unsupported_media(&WRITTEN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(accept: &str) -> Result<Output, StatusError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        output(&headers)
    }

    #[test]
    fn the_first_shape_that_there_is_wins() {
        let whole = Output { media_type: MediaType::Json, shape: Shape::Whole };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (accept, want) in [
            ("*/*", whole),
            ("application/json", whole),
            ("application/vnd.kubernetes.protobuf, application/json", whole),
            (
                "application/json;q=0.1, application/yaml",
                Output { media_type: MediaType::Yaml, shape: Shape::Whole },
            ),
            (kubectl, Output { media_type: MediaType::Json, shape: Shape::Table("v1") }),
            ("application/json;as=Unknown;v=v1;g=meta.k8s.io, application/json", whole),
        ] {
            assert_eq!(wants(accept).unwrap(), want, "{accept}");
        }
        let refused = wants("text/html").unwrap_err();
        assert_eq!(refused.code(), 406);
    }
}
