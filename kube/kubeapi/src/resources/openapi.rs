//! OpenAPI v3: what `kubectl apply`, `explain`, `diff` and `edit` want to know of every kind.

mod document;

use crate::http::answer::Answer;
use crate::http::negotiate::{self, MediaType};
use crate::http::request::Query;
use crate::http::status_error::StatusError;
use crate::resources::registry::{Fingerprint, Page, Registry, Version};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde_json::{Map, Value, json};

/// How a client asks for the old document in protobuf, and how it is named in the answer.
const OPENAPI_V2_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const OPENAPI_V2_KIND: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// A document without paths and definitions: `swagger: "2.0"`, `info: {title, version}`, and the two empty.
const EMPTY_V2: &[u8] = b"\x0a\x032.0\x12\x13\x0a\x0aKubernetes\x12\x05v1.36\x42\x00\x4a\x00";

/// The page at a path below `/openapi`.
pub(crate) fn page(registry: &Registry, path: &str, parts: &Parts) -> Answer {
    let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
    match steps.as_slice() {
        ["openapi", "v3"] => Answer::value(StatusCode::OK, &index(registry), MediaType::Json),
        ["openapi", "v3", "api", version] => group_version(registry, "", version, parts),
        ["openapi", "v3", "apis", group, version] => group_version(registry, group, version, parts),
        // Only clients from before 1.24 read it; they get no schemas and do without. kubectl also asks here for a kind
        // that it found nowhere else, and understands nothing but protobuf.
        ["openapi", "v2"] if negotiate::accepts(&parts.headers, OPENAPI_V2_ASKED) => {
            let kind = HeaderValue::from_static(OPENAPI_V2_KIND);
            Answer::json(StatusCode::OK, Bytes::from_static(EMPTY_V2)).kind(kind)
        }
        ["openapi", "v2"] => {
            let info = json!({"title": "Kubernetes", "version": format!("v{}", crate::api::KUBERNETES)});
            let nothing = json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}});
            Answer::value(StatusCode::OK, &nothing, MediaType::Json)
        }
        _ => Answer::no_page(),
    }
}

/// Which documents there are. A document's address changes with its content, so that clients may keep it.
fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (name, group) in registry.groups() {
        for version in &group.versions {
            let path = if name.is_empty() {
                format!("api/{}", version.name)
            } else {
                format!("apis/{name}/{}", version.name)
            };
            let hash = fingerprint(registry, name, version);
            let url = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// What a document is known by. The document itself is not kept: it is large, and clients keep it.
fn fingerprint(registry: &Registry, group: &str, version: &Version) -> String {
    let make = || {
        let mut print = Fingerprint::default();
        print.add(crate::api::KUBERNETES.as_bytes());
        for resource in version.resources.values() {
            print.add(resource.names.plural.as_bytes());
            if let Some(custom) = &resource.custom {
                print.add(&custom.document);
            }
        }
        Page { bytes: Bytes::new(), tag: print.text() }
    };
    registry.page(&format!("openapi {group} {}", version.name), make).tag
}

fn group_version(registry: &Registry, group: &str, version: &str, parts: &Parts) -> Answer {
    let Some(version) = registry.version(group, version) else {
        return Answer::error(&StatusError::unknown_resource(), MediaType::Json);
    };
    let hash = fingerprint(registry, group, version);
    let tag = format!("\"{hash}\"");
    let same = parts.headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut answer = if same {
        Answer::json(StatusCode::NOT_MODIFIED, Bytes::new())
    } else {
        Answer::value(StatusCode::OK, &document::document(group, version), MediaType::Json)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer = answer.header(ETAG, tag);
    }
    // What is asked for by its hash never changes.
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    if query.first("hash") == Some(&hash) {
        answer = answer.header(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
    }
    answer
}
