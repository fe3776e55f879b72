//! What is served, for clients that ask: the old way, group by group, and all at once.

use crate::http::answer::Answer;
use crate::http::encode;
use crate::http::negotiate::{self, MediaType};
use crate::resources::registry::{Fingerprint, Group, Page, Registry, Version};
use crate::resources::resource::{Resource, Subresource, api_version};
use http::header::{ETAG, IF_NONE_MATCH, VARY};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

/// The page at a path, if it is one of discovery.
pub(crate) fn page(registry: &Registry, path: &str, parts: &Parts) -> Option<Answer> {
    let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
    let aggregated = negotiate::aggregated_discovery(&parts.headers);
    let media_type = negotiate::output(&parts.headers).map_or(MediaType::Json, |output| output.media_type);
    let plain = |value: Value| Some(Answer::value(StatusCode::OK, &value, media_type));
    match (steps.as_slice(), aggregated) {
        ([""], _) => plain(json!({"paths": paths(registry)})),
        ([root @ ("api" | "apis")], Some(version)) => {
            let page = registry.page(&format!("{root} {version}"), || {
                all_at_once(registry, version, |group| group.is_empty() == (*root == "api"))
            });
            Some(aggregated_page(page, version, parts))
        }
        (["api"], None) => plain(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        })),
        (["apis"], None) => {
            let groups: Vec<Value> =
                named_groups(registry).map(|(name, group)| group_of(name, group, false)).collect();
            plain(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        (["apis", group], _) => plain(group_of(group, registry.groups().get(*group)?, true)),
        (["api", version], _) => plain(resources("", registry.version("", version)?)),
        (["apis", group, version], _) => plain(resources(group, registry.version(group, version)?)),
        _ => None,
    }
}

fn named_groups(registry: &Registry) -> impl Iterator<Item = (&String, &Group)> {
    registry.groups().iter().filter(|(name, _)| !name.is_empty())
}

fn paths(registry: &Registry) -> Vec<String> {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for (name, group) in named_groups(registry) {
        paths.push(format!("/apis/{name}"));
        paths.extend(group.versions.iter().map(|version| format!("/apis/{name}/{}", version.name)));
    }
    let others = ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"];
    paths.extend(others.map(str::to_owned));
    paths
}

fn group_of(name: &str, group: &Group, typed: bool) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({"groupVersion": api_version(name, &version.name), "version": version.name}))
        .collect();
    let mut value = json!({"name": name, "versions": versions, "preferredVersion": versions.first()});
    if typed {
        value["kind"] = "APIGroup".into();
        value["apiVersion"] = "v1".into();
    }
    value
}

/// The verbs of a subresource.
fn verbs(subresource: &Subresource) -> &'static [&'static str] {
    match subresource {
        Subresource::Status | Subresource::Scale(_) => &["get", "patch", "update"],
        Subresource::Finalize => &["update"],
        Subresource::Token => &["create"],
        Subresource::Log => &["get"],
        Subresource::Exec | Subresource::Attach => &["create", "get"],
    }
}

/// The type of a subresource: its own, or that of the object.
fn kind_of(resource: &Resource, subresource: &Subresource) -> (String, String, String) {
    match subresource {
        Subresource::Scale(_) => ("autoscaling".to_owned(), "v1".to_owned(), "Scale".to_owned()),
        Subresource::Token => {
            ("authentication.k8s.io".to_owned(), "v1".to_owned(), "TokenRequest".to_owned())
        }
        Subresource::Exec => (String::new(), String::new(), "PodExecOptions".to_owned()),
        Subresource::Attach => (String::new(), String::new(), "PodAttachOptions".to_owned()),
        Subresource::Status | Subresource::Finalize | Subresource::Log => own_kind(resource),
    }
}

/// The type of a resource. Built-in ones leave out the group and version that they are listed under.
fn own_kind(resource: &Resource) -> (String, String, String) {
    match resource.custom {
        Some(_) => (resource.group.clone(), resource.version.clone(), resource.names.kind.clone()),
        None => (String::new(), String::new(), resource.names.kind.clone()),
    }
}

fn resources(group: &str, version: &Version) -> Value {
    let mut list = Vec::new();
    for resource in version.resources.values() {
        let names = &resource.names;
        let mut entry = json!({
            "name": names.plural, "singularName": names.singular, "namespaced": resource.namespaced,
            "kind": names.kind, "verbs": resource.verbs,
        });
        if !names.short.is_empty() {
            entry["shortNames"] = json!(names.short);
        }
        if !names.categories.is_empty() {
            entry["categories"] = json!(names.categories);
        }
        list.push(entry);
        for subresource in &resource.subresources {
            let (group, version, kind) = kind_of(resource, subresource);
            let mut entry = json!({
                "name": format!("{}/{}", names.plural, subresource.name()), "singularName": "",
                "namespaced": resource.namespaced, "kind": kind, "verbs": verbs(subresource),
            });
            if !group.is_empty() && group != resource.group {
                entry["group"] = group.into();
                entry["version"] = version.into();
            }
            list.push(entry);
        }
    }
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, &version.name), "resources": list})
}

fn all_at_once(registry: &Registry, version: &str, wanted: impl Fn(&str) -> bool) -> Page {
    let items: Vec<Value> = registry
        .groups()
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, group)| {
            let versions: Vec<Value> = group.versions.iter().map(described).collect();
            let metadata = if name.is_empty() {
                json!({"creationTimestamp": null})
            } else {
                json!({"name": name, "creationTimestamp": null})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {}, "items": items,
    });
    let bytes = encode::write(&list);
    let mut print = Fingerprint::default();
    print.add(&bytes);
    Page { bytes, tag: format!("\"{}\"", print.text()) }
}

fn aggregated_page(page: Page, version: &str, parts: &Parts) -> Answer {
    let Page { bytes, tag } = page;
    let same = parts.headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let kind = format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    let mut answer = if same {
        Answer::json(StatusCode::NOT_MODIFIED, bytes::Bytes::new())
    } else {
        Answer::json(StatusCode::OK, bytes)
    };
    if let Ok(kind) = HeaderValue::from_str(&kind) {
        answer = answer.kind(kind);
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        answer = answer.header(ETAG, tag);
    }
    answer.header(VARY, HeaderValue::from_static("Accept"))
}

fn described(version: &Version) -> Value {
    let kind = |(group, version, kind): (String, String, String)| json!({"group": group, "version": version, "kind": kind});
    let resources: Vec<Value> = version
        .resources
        .values()
        .map(|resource| {
            let names = &resource.names;
            let mut entry = json!({
                "resource": names.plural,
                "responseKind": kind(own_kind(resource)),
                "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
                "singularResource": names.singular,
                "verbs": resource.verbs,
            });
            if !names.short.is_empty() {
                entry["shortNames"] = json!(names.short);
            }
            if !names.categories.is_empty() {
                entry["categories"] = json!(names.categories);
            }
            if !resource.subresources.is_empty() {
                let below = resource.subresources.iter().map(|subresource| {
                    json!({"subresource": subresource.name(), "responseKind": kind(kind_of(resource, subresource)), "verbs": verbs(subresource)})
                });
                entry["subresources"] = below.collect();
            }
            entry
        })
        .collect();
    json!({"version": version.name, "resources": resources, "freshness": "Current"})
}
