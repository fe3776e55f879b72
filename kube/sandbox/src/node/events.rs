//! Events for people: why a pod does not run.

use super::Shared;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, PostParams};
use serde_json::json;
use std::sync::Arc;

/// Says so once, in an Event about the pod. The caller does not wait for it.
pub(super) fn warn(shared: &Arc<Shared>, pod: &Pod, reason: &str, message: &str) {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let name = pod.metadata.name.clone().unwrap_or_default();
    let now = Timestamp::now();
    let own_name = format!("{name}.{:016x}", now.as_nanosecond());
    let now = super::status::time(now);
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": own_name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "name": name, "namespace": namespace,
            "uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version,
        },
        "type": "Warning", "reason": reason, "message": message, "count": 1,
        "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": "kubelet", "host": shared.name},
        "reportingComponent": "kubelet", "reportingInstance": shared.name,
    });
    let Ok(event) = serde_json::from_value::<Event>(event) else { return };
    let events: Api<Event> = Api::namespaced(shared.client.clone(), &namespace);
    tokio::spawn(async move {
        if let Err(error) = events.create(&PostParams::default(), &event).await {
            tracing::debug!(%error, "cannot write an event");
        }
    });
}
