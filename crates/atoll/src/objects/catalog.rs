//! What a cluster serves, and what people call it. Pure: discovery in, resources out.

use atoll_api::names::kind::cluster;
use kube::core::discovery::v2::APIGroupDiscoveryList;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands for itself in a path or a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of a member in the hub's API.
pub(crate) fn member(name: &str) -> String {
    let (group, version, plural) = (cluster::GROUP, cluster::V1ALPHA1, cluster::CLUSTERS);
    format!("/apis/{group}/{version}/{plural}/{}", escaped(name))
}

/// Text as it stands in a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// One resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
}

impl Resource {
    /// `deployment.apps`, `service`: as kubectl calls it when it speaks of one.
    pub(crate) fn label(&self) -> String {
        match self.group.as_str() {
            "" => self.kind.to_lowercase(),
            group => format!("{}.{group}", self.kind.to_lowercase()),
        }
    }

    /// `deployments.apps`, `services`: as `join --allow-propagation` and RBAC call them.
    pub(crate) fn group_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The path of all of them, in one namespace or in all.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let place = match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("namespaces/{}/", escaped(namespace)),
            None => String::new(),
        };
        format!("{root}/{}/{place}{}", self.api_version(), self.plural)
    }

    /// The path of one of them.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(Some(namespace)), escaped(name))
    }

    fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|own| own == verb)
    }

    /// Whether it goes by this name; plural, singular, kind and short names count.
    fn has_name(&self, name: &str) -> bool {
        let names = [&self.plural, &self.singular, &self.kind];
        names.into_iter().chain(&self.short).any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Whether `apps`, or `v1.apps`, is where it is.
    fn is_in(&self, place: &str) -> bool {
        place == self.group || place == format!("{}.{}", self.version, self.group).trim_end_matches('.')
    }
}

/// Everything that a cluster serves: the core first, the preferred version of a group before others.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog(Vec<Resource>);

impl Catalog {
    pub(crate) fn read(lists: &[APIGroupDiscoveryList]) -> Self {
        let mut all = Vec::new();
        for group in lists.iter().flat_map(|list| &list.items) {
            let name = group.metadata.as_ref().and_then(|metadata| metadata.name.clone()).unwrap_or_default();
            for version in &group.versions {
                for resource in &version.resources {
                    let kind = resource.response_kind.as_ref().and_then(|kind| kind.kind.clone());
                    let (Some(plural), Some(kind)) = (resource.resource.clone(), kind) else { continue };
                    all.push(Resource {
                        group: name.clone(),
                        version: version.version.clone().unwrap_or_default(),
                        singular: resource.singular_resource.clone().unwrap_or_default(),
                        short: resource.short_names.clone(),
                        categories: resource.categories.clone(),
                        namespaced: resource.scope.as_deref() == Some("Namespaced"),
                        verbs: resource.verbs.clone(),
                        plural,
                        kind,
                    });
                }
            }
        }
        Self(all)
    }

    /// The resource that objects of this kind are.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.0.iter().find(|one| one.kind == kind && one.api_version() == api_version && one.can("get"))
    }

    /// What a person means by a word: a resource by any of its names, with its group (and version) if they say so, or all of
    /// a category. Empty if nothing is called so.
    pub(crate) fn find(&self, word: &str) -> Vec<&Resource> {
        let (name, place) = match word.split_once('.') {
            Some((name, place)) => (name, Some(place)),
            None => (word, None),
        };
        let fits = |one: &&Resource| {
            one.can("get") && one.has_name(name) && place.is_none_or(|place| one.is_in(place))
        };
        if let Some(found) = self.0.iter().find(fits) {
            return vec![found];
        }
        let mut members: Vec<&Resource> = Vec::new();
        for one in &self.0 {
            let known =
                members.iter().any(|other| (&other.group, &other.plural) == (&one.group, &one.plural));
            if !known && one.can("list") && one.categories.iter().any(|category| category == word) {
                members.push(one);
            }
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn catalog() -> Catalog {
        let resource = |plural: &str, kind: &str, short: &[&str], categories: &[&str], scope: &str| {
            json!({
                "resource": plural, "responseKind": {"kind": kind}, "scope": scope, "singularResource": kind.to_lowercase(),
                "verbs": ["get", "list"], "shortNames": short, "categories": categories,
            })
        };
        let list = |items: serde_json::Value| serde_json::from_value(json!({"items": items})).unwrap();
        let core = list(json!([{"metadata": {}, "versions": [{"version": "v1", "resources": [
            resource("events", "Event", &["ev"], &[], "Namespaced"),
            resource("pods", "Pod", &["po"], &["all"], "Namespaced"),
            resource("namespaces", "Namespace", &["ns"], &[], "Cluster"),
        ]}]}]));
        let named = list(json!([
            {"metadata": {"name": "apps"}, "versions": [
                {"version": "v1", "resources": [resource("deployments", "Deployment", &["deploy"], &["all"], "Namespaced")]},
                {"version": "v1beta1", "resources": [resource("deployments", "Deployment", &["deploy"], &["all"], "Namespaced")]},
            ]},
            {"metadata": {"name": "events.k8s.io"}, "versions": [
                {"version": "v1", "resources": [resource("events", "Event", &["ev"], &[], "Namespaced")]},
            ]},
        ]));
        Catalog::read(&[core, named])
    }

    #[test]
    fn a_word_is_any_of_a_resources_names() {
        let catalog = catalog();
        for (word, want) in [
            ("pods", &["v1 pods"][..]),
            ("Pod", &["v1 pods"]),
            ("po", &["v1 pods"]),
            ("deploy", &["apps/v1 deployments"]),
            ("deployments.apps", &["apps/v1 deployments"]),
            ("deployments.v1beta1.apps", &["apps/v1beta1 deployments"]),
            ("pods.v1", &["v1 pods"]),
            ("events", &["v1 events"]),
            ("events.events.k8s.io", &["events.k8s.io/v1 events"]),
            ("all", &["v1 pods", "apps/v1 deployments"]),
            ("deployments.batch", &[]),
            ("nothing", &[]),
        ] {
            let found = catalog.find(word);
            let found: Vec<String> =
                found.iter().map(|one| format!("{} {}", one.api_version(), one.plural)).collect();
            assert_eq!(found, want, "{word}");
        }
    }

    #[test]
    fn paths_are_of_the_group_and_namespace() {
        let catalog = catalog();
        let deployments = catalog.of_kind("apps/v1", "Deployment").unwrap();
        assert_eq!(deployments.collection(None), "/apis/apps/v1/deployments");
        assert_eq!(deployments.object("shop", "web"), "/apis/apps/v1/namespaces/shop/deployments/web");
        assert_eq!(deployments.label(), "deployment.apps");
        let namespaces = catalog.of_kind("v1", "Namespace").unwrap();
        assert_eq!(namespaces.object("shop", "a/b?c"), "/api/v1/namespaces/a%2Fb%3Fc");
        assert!(catalog.of_kind("apps/v2", "Deployment").is_none());
    }
}
