//! What a request asks for, read off its method, path and query alone.

mod options;

pub(crate) use options::{DeleteOptions, ListOptions, Propagation, Validation, VersionMatch, WriteOptions};

use atoll_apimachinery::names;
use atoll_apimachinery::selector::fields;
use http::Method;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// A request line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    /// The verb that access is granted by: `get`, `list`, …, or the method in small letters for other paths.
    pub(crate) verb: &'static str,
    pub(crate) path: String,
    pub(crate) query: Query,
    /// The resource, unless the path is another one (`/healthz`, `/apis`).
    pub(crate) target: Option<Target>,
    /// The one name that is meant, also when a list or watch says it by a field selector.
    pub(crate) named: String,
}

/// A resource in a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// There is more after the subresource, which nothing here serves.
    pub(crate) deeper: bool,
}

/// The query's parameters, decoded, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(
            form_urlencoded::parse(text.as_bytes())
                .map(|(key, value)| (key.into_owned(), value.into_owned()))
                .collect(),
        )
    }

    /// Every parameter and its value.
    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The first value of a parameter.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// A parameter as an API server reads booleans: anything but `false` and `0` is true.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.first(key).map(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }
}

impl RequestInfo {
    /// Takes a request line apart. `None` when the path is not text.
    pub(crate) fn parse(method: &Method, path: &str, query: &str) -> Option<Self> {
        let path = match percent_decode_str(path).decode_utf8().ok()? {
            Cow::Borrowed(path) => path.to_owned(),
            Cow::Owned(path) => path,
        };
        let query = Query::parse(query);
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (target, watch_path) = resource(&parts);
        let verb = match &target {
            None => plain_verb(method),
            Some(target) => resource_verb(method, target, &query, watch_path),
        };
        let named = match &target {
            Some(target) if matches!(verb, "list" | "watch") && target.name.is_empty() => {
                selected_name(&query)
            }
            Some(target) => target.name.clone(),
            None => String::new(),
        };
        Some(Self { verb, path, query, target, named })
    }
}

fn selected_name(query: &Query) -> String {
    let selector = fields::Selector::parse(query.first("fieldSelector").unwrap_or_default());
    let name = selector.ok().and_then(|selector| selector.exactly("metadata.name").map(str::to_owned));
    name.filter(|name| names::path_segment(name, false).is_empty()).unwrap_or_default()
}

fn plain_verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        _ => "",
    }
}

fn resource_verb(method: &Method, target: &Target, query: &Query, watch_path: bool) -> &'static str {
    if watch_path {
        return "watch";
    }
    match method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if target.name.is_empty() => "deletecollection",
        "DELETE" => "delete",
        "GET" | "HEAD" if !target.name.is_empty() => "get",
        "GET" | "HEAD" if query.flag("watch") == Some(true) => "watch",
        "GET" | "HEAD" => "list",
        _ => "",
    }
}

/// The resource that a path names, and whether it has the old `watch` prefix.
fn resource(parts: &[&str]) -> (Option<Target>, bool) {
    let (group, rest) = match parts {
        ["api", rest @ ..] if rest.len() >= 2 => ("", rest),
        ["apis", group, rest @ ..] if rest.len() >= 2 => (*group, rest),
        _ => return (None, false),
    };
    let [version, rest @ ..] = rest else { return (None, false) };
    let (watch, rest) = match rest {
        ["watch", more @ ..] if !more.is_empty() => (true, more),
        _ => (false, rest),
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, more @ ..]
            if more.first().is_some_and(|next| !matches!(*next, "status" | "finalize")) =>
        {
            (*namespace, more)
        }
        // A namespace is named by itself.
        ["namespaces", namespace, ..] => (*namespace, rest),
        _ => ("", rest),
    };
    let part = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
    let target = Target {
        group: group.to_owned(),
        version: (*version).to_owned(),
        namespace: namespace.to_owned(),
        resource: part(0),
        name: part(1),
        subresource: part(2),
        deeper: rest.len() > 3,
    };
    (Some(target), watch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(method: &Method, uri: &str) -> RequestInfo {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        RequestInfo::parse(method, path, query).unwrap()
    }

    #[test]
    fn a_path_and_a_method_make_a_verb_on_a_resource() {
        for (method, uri, verb, want) in [
            (Method::GET, "/api/v1/pods", "list", ["", "v1", "", "pods", "", ""]),
            (Method::GET, "/api/v1/pods?watch=1", "watch", ["", "v1", "", "pods", "", ""]),
            (Method::GET, "/api/v1/pods?watch=false", "list", ["", "v1", "", "pods", "", ""]),
            (Method::GET, "/api/v1/namespaces/a/pods/b", "get", ["", "v1", "a", "pods", "b", ""]),
            (Method::GET, "/api/v1/watch/namespaces/a/pods/b", "watch", ["", "v1", "a", "pods", "b", ""]),
            (
                Method::PUT,
                "/api/v1/namespaces/a/status",
                "update",
                ["", "v1", "a", "namespaces", "a", "status"],
            ),
            (Method::DELETE, "/api/v1/namespaces/a", "delete", ["", "v1", "a", "namespaces", "a", ""]),
            (
                Method::DELETE,
                "/api/v1/namespaces/a/pods",
                "deletecollection",
                ["", "v1", "a", "pods", "", ""],
            ),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "patch",
                ["apps", "v1", "a", "deployments", "b", "scale"],
            ),
            (Method::POST, "/apis/x.io/v1/things", "create", ["x.io", "v1", "", "things", "", ""]),
        ] {
            let info = parsed(&method, uri);
            let target = info.target.unwrap();
            let got = [
                &target.group,
                &target.version,
                &target.namespace,
                &target.resource,
                &target.name,
                &target.subresource,
            ];
            assert_eq!(info.verb, verb, "{uri}");
            assert_eq!(got, want.each_ref(), "{uri}");
        }
    }

    #[test]
    fn other_paths_are_no_resources() {
        for uri in [
            "/",
            "/healthz",
            "/api",
            "/api/v1",
            "/apis",
            "/apis/apps",
            "/apis/apps/v1",
            "/openapi/v3/apis/apps/v1",
        ] {
            assert_eq!(parsed(&Method::GET, uri).target, None, "{uri}");
        }
    }

    #[test]
    fn paths_that_are_not_text_are_refused() {
        assert_eq!(RequestInfo::parse(&Method::GET, "/api/v1/pods/%ff", ""), None);
    }
}
