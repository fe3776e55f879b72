//! Events about objects in the hub's API, as `kubectl describe` shows them.

use std::borrow::Cow;

use atoll_api::names::kind::networking;
use atoll_api::types::MultiClusterService;
use k8s_openapi::api::core::v1::Event;
use kube::Resource;
use serde_json::json;

/// A real API server takes no longer ones.
const LONGEST: usize = 1000;

/// What an event is about.
pub(crate) struct About<'a> {
    pub(crate) api_version: Cow<'a, str>,
    pub(crate) kind: &'a str,
    /// Empty if it is in none.
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
}

impl<'a> About<'a> {
    /// A `MultiClusterService`.
    pub(crate) fn multi_cluster_service(namespace: &'a str, name: &'a str, uid: &'a str) -> Self {
        let api_version = MultiClusterService::api_version(&());
        Self { api_version, kind: networking::MULTI_CLUSTER_SERVICE, namespace, name, uid }
    }
}

/// An event of this moment.
pub(crate) fn event(
    about: &About<'_>,
    warning: bool,
    reason: &str,
    message: &str,
) -> Result<Event, serde_json::Error> {
    let now = jiff::Timestamp::now();
    let namespace = if about.namespace.is_empty() { "default" } else { about.namespace };
    let seconds = format!("{now:.0}");
    serde_json::from_value(json!({
        "metadata": { "namespace": namespace, "name": format!("{}.{:x}", about.name.replace(':', "."), now.as_nanosecond()) },
        "involvedObject": {
            "apiVersion": about.api_version, "kind": about.kind,
            "namespace": about.namespace, "name": about.name, "uid": about.uid,
        },
        "type": if warning { "Warning" } else { "Normal" },
        "reason": reason,
        "message": message.chars().take(LONGEST).collect::<String>(),
        "source": { "component": "atoll-hub" },
        "reportingComponent": "atoll-hub",
        "firstTimestamp": seconds, "lastTimestamp": seconds, "count": 1,
    }))
}
