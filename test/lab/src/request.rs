//! A request to a Kubernetes API, as its server understands it.

use serde::Serialize;

/// What is asked of an API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ApiRequest {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource's plural; empty for paths that are no resource.
    pub resource: String,
    /// `status`, `scale`, …; empty for the resource itself.
    pub subresource: String,
    /// The namespace; empty for cluster-scoped resources and lists over all namespaces.
    pub namespace: String,
    /// The object's name; empty for lists, and for creates as a gate sees them.
    pub name: String,
}

impl ApiRequest {
    /// Reads a request off its method, path and query.
    pub fn parse(method: &str, path: &str, query: &str) -> Self {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        let group = match parts.next() {
            Some("api") => parts.next().map(|_version| ""),
            Some("apis") => parts.next().and_then(|group| parts.next().map(|_version| group)),
            _ => None,
        };
        let mut parts: Vec<_> = parts.collect();
        let mut request = Self { group: group.unwrap_or_default().to_owned(), ..Self::default() };
        // `namespaces/<name>` alone is the namespace itself, and so are its subresources.
        if parts.len() >= 3 && parts[0] == "namespaces" && !matches!(parts[2], "status" | "finalize") {
            request.namespace = parts[1].to_owned();
            parts.drain(..2);
        }
        if group.is_some() {
            let mut parts = parts.into_iter().map(str::to_owned);
            request.resource = parts.next().unwrap_or_default();
            request.name = parts.next().unwrap_or_default();
            request.subresource = parts.next().unwrap_or_default();
        }
        request.verb = request.verb_of(method, query).to_owned();
        request
    }

    fn verb_of(&self, method: &str, query: &str) -> &'static str {
        let watches = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1" | "watch"));
        match method {
            "GET" if !self.resource.is_empty() && watches => "watch",
            "GET" if !self.resource.is_empty() && self.name.is_empty() => "list",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if self.name.is_empty() => "deletecollection",
            "DELETE" => "delete",
            _ => "get",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_a_method_say_what_is_asked() {
        for (method, path, query, want) in [
            ("GET", "/api/v1/pods", "", "list||pods||/"),
            ("GET", "/api/v1/namespaces/shop/pods", "limit=5&watch=true", "watch||pods||shop/"),
            ("DELETE", "/api/v1/namespaces/shop/pods", "", "deletecollection||pods||shop/"),
            ("DELETE", "/api/v1/namespaces/shop", "", "delete||namespaces||/shop"),
            ("PUT", "/api/v1/namespaces/shop/finalize", "", "update||namespaces|finalize|/shop"),
            (
                "PUT",
                "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/web-1",
                "",
                "update|discovery.k8s.io|endpointslices||shop/web-1",
            ),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b/status",
                "",
                "patch|apps|deployments|status|a/b",
            ),
            ("GET", "/readyz", "", "get||||/"),
            ("POST", "/api/v1/nodes", "", "create||nodes||/"),
        ] {
            let r = ApiRequest::parse(method, path, query);
            let got =
                format!("{}|{}|{}|{}|{}/{}", r.verb, r.group, r.resource, r.subresource, r.namespace, r.name);
            assert_eq!(got, want, "{method} {path}");
        }
    }
}
