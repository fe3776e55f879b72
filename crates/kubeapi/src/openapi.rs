//! OpenAPI v3: what `kubectl apply`, `explain`, `diff` and `edit` want to know of every kind.

mod document;

use crate::answer::Answer;
use crate::encode;
use crate::negotiate::Notation;
use crate::refusal::Refusal;
use crate::registry::Registry;
use http::StatusCode;
use http::request::Parts;
use serde_json::{Map, Value, json};

/// The page at a path below `/openapi`.
pub(crate) fn page(registry: &Registry, path: &str, _parts: &Parts) -> Answer {
    let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
    match steps.as_slice() {
        ["openapi", "v3"] => Answer::value(StatusCode::OK, &index(registry), Notation::Json),
        ["openapi", "v3", "api", version] => group_version(registry, "", version),
        ["openapi", "v3", "apis", group, version] => group_version(registry, group, version),
        // Only clients from before 1.24 read it; they get no schemas and do without.
        ["openapi", "v2"] => {
            let nothing = json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": {}, "definitions": {}});
            Answer::value(StatusCode::OK, &nothing, Notation::Json)
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
            let hash = fingerprint(version);
            paths.insert(
                path.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash:016X}")}),
            );
        }
    }
    json!({"paths": paths})
}

fn fingerprint(version: &crate::registry::Version) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(crate::api::KUBERNETES.as_bytes());
    for resource in version.resources.values() {
        add(resource.names.plural.as_bytes());
        if let Some(custom) = &resource.custom {
            add(&encode::write(&custom.document));
        }
    }
    hash
}

fn group_version(registry: &Registry, group: &str, version: &str) -> Answer {
    match registry.version(group, version) {
        Some(version) => Answer::value(StatusCode::OK, &document::document(group, version), Notation::Json),
        None => Answer::refusal(&Refusal::unknown_resource(), Notation::Json),
    }
}
