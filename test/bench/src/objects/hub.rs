//! What lies in the hub's API: templates, the policy that selects them, `MultiClusterServices`, and what the floor writes in place of
//! the product's bindings and statuses.

use atoll_api::names::kind::{networking, policy, work};
use atoll_api::types::MultiClusterService;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::{COPY, ROLE, SERVICE, SOURCE, made, meta, service};
use crate::options::Who;
use crate::stand_in::StandIn;

/// What makes the floor move: a `ConfigMap`, where the product gets a policy.
pub(crate) const POLICY: &str = "policy";
/// The key of a `ConfigMap` that tells its contents apart.
const REVISION: &str = "revision";
/// As much as a small configuration file.
const FILLER: usize = 500;

/// The name of template number `index`.
pub(crate) fn template_name(index: usize) -> String {
    format!("c{index:05}")
}

/// A `ConfigMap` of the hub with content number `revision`.
pub(crate) fn template(who: Who, name: &str, revision: usize) -> ConfigMap {
    let metadata = meta(who, name, &[(SERVICE, name), (ROLE, SOURCE)]);
    let data = [(REVISION.to_owned(), revision.to_string()), ("file".to_owned(), "x".repeat(FILLER))];
    ConfigMap { metadata, data: Some(data.into()), ..ConfigMap::default() }
}

/// The floor's copy of a template, with as many labels as ours has.
pub(crate) fn copied_map(template: &ConfigMap) -> Option<ConfigMap> {
    let name = template.metadata.name.as_deref()?;
    let labels = [(SERVICE, name), (ROLE, COPY), ("bench.atoll.dev/propagated-by", "floor")];
    Some(ConfigMap { metadata: meta(Who::Floor, name, &labels), ..template.clone() })
}

/// Whose copy a `ConfigMap` of a member is, of which template, with which content. The product's has the template's labels and one more.
pub(crate) fn held_map(map: &ConfigMap) -> Option<(Who, &str, usize)> {
    let who = Who::of(map.metadata.namespace.as_deref()?)?;
    let labels = map.metadata.labels.as_ref()?;
    let role = if who == Who::Ours { SOURCE } else { COPY };
    labels.get(ROLE).filter(|is| *is == role)?;
    let revision = map.data.as_ref()?.get(REVISION)?.parse().ok()?;
    Some((who, labels.get(SERVICE)?, revision))
}

/// What makes the product bring every template to these clusters.
pub(crate) fn propagation_policy(clusters: &[String]) -> DynamicObject {
    made(json!({
        "apiVersion": format!("{}/{}", policy::GROUP, policy::V1ALPHA1),
        "kind": policy::PROPAGATION_POLICY,
        "metadata": {"name": POLICY, "namespace": Who::Ours.namespace()},
        "spec": {
            "resourceSelectors": [{
                "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {ROLE: SOURCE}},
            }],
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
        },
    }))
}

/// What makes the floor bring every template to all clusters.
pub(crate) fn stand_in_policy() -> ConfigMap {
    ConfigMap { metadata: meta(Who::Floor, POLICY, &[(ROLE, POLICY)]), ..ConfigMap::default() }
}

/// The kind of policies.
pub(crate) fn policies() -> ApiResource {
    let kind = GroupVersionKind::gvk(policy::GROUP, policy::V1ALPHA1, policy::PROPAGATION_POLICY);
    ApiResource::from_gvk_with_plural(&kind, policy::PROPAGATION_POLICIES)
}

/// The kind of the product's bindings.
pub(crate) fn bindings() -> ApiResource {
    let kind = GroupVersionKind::gvk(work::GROUP, work::V1ALPHA2, work::RESOURCE_BINDING);
    ApiResource::from_gvk_with_plural(&kind, work::RESOURCE_BINDINGS)
}

/// Whether a binding says that every cluster holds its copy.
pub(crate) fn is_applied(binding: &DynamicObject) -> bool {
    let conditions = binding.data["status"]["conditions"].as_array();
    conditions
        .is_some_and(|all| all.iter().any(|one| one["type"] == "FullyApplied" && one["status"] == "True"))
}

/// What the floor writes in place of the binding of a template of `kind`: as much as ours says.
pub(crate) fn stand_in_binding(kind: &str, name: &str, clusters: &[String]) -> Value {
    let (api_version, is) = StandIn::Binding.type_meta();
    let namespace = Who::Floor.namespace();
    let each: Vec<_> = clusters.iter().map(|cluster| json!({"name": cluster})).collect();
    json!({
        "apiVersion": api_version, "kind": is,
        "metadata": {
            "name": format!("{name}-{}", kind.to_lowercase()), "namespace": namespace,
            "labels": {SERVICE: name},
            "annotations": {
                "bench.atoll.dev/holders": clusters.join(","),
                "propagationpolicy.bench.atoll.dev/name": POLICY,
                "propagationpolicy.bench.atoll.dev/namespace": namespace,
            },
        },
        "spec": {
            "resource": {
                "apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name,
                "uid": "00000000-0000-4000-8000-000000000000",
            },
            "clusters": each,
            "placement": {"clusterAffinity": {"clusterNames": clusters}},
            "conflictResolution": "Abort",
            "propagateDeps": false,
        },
    })
}

/// A binding's status with as much to say as ours.
pub(crate) fn binding_status(clusters: &[String]) -> Value {
    let condition = |of: &str, reason: &str, message: &str| {
        json!({
            "type": of, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let each = clusters.iter().map(|name| json!({"clusterName": name, "applied": true, "health": "Healthy"}));
    json!({
        "conditions": [
            condition("Scheduled", "Success", "clusters were selected"),
            condition("FullyApplied", "FullyAppliedSuccess", "all selected clusters are up to date"),
        ],
        "aggregatedStatus": each.collect::<Vec<_>>(),
    })
}

/// The floor's copy of the Service that a `MultiClusterService` speaks of.
pub(crate) fn copied_service(name: &str) -> Service {
    let labels = [(SERVICE, name), (ROLE, COPY), ("bench.atoll.dev/propagated-by", "floor")];
    service(meta(Who::Floor, name, &labels))
}

fn mcs_spec(provider: &str, consumers: &[String]) -> Value {
    let consumers: Vec<_> = consumers.iter().map(|name| json!({"name": name})).collect();
    json!({
        "types": [networking::CROSS_CLUSTER],
        "providerClusters": [{"name": provider}],
        "consumerClusters": consumers,
    })
}

/// The `MultiClusterService` that makes the product move.
pub(crate) fn mcs(name: &str, provider: &str, consumers: &[String]) -> MultiClusterService {
    let metadata = meta(Who::Ours, name, &[(SERVICE, name)]);
    MultiClusterService { metadata, spec: made(mcs_spec(provider, consumers)), status: None }
}

/// What makes the floor move in its place.
pub(crate) fn stand_in_mcs(name: &str, provider: &str, consumers: &[String]) -> DynamicObject {
    let (api_version, kind) = StandIn::Mcs.type_meta();
    made(json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": meta(Who::Floor, name, &[(SERVICE, name), (ROLE, SOURCE)]),
        "spec": mcs_spec(provider, consumers),
    }))
}

/// A status with as much to say as that of a `MultiClusterService`.
pub(crate) fn mcs_status(provider: &str, consumers: &[String]) -> Value {
    let condition = |of: &str, message: &str| {
        json!({
            "type": of, "status": "True", "reason": of, "message": message, "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let consumer = |name: &String| json!({"name": name, "role": "Consumer", "slices": 1});
    let mut clusters = vec![json!({"name": provider, "role": "Provider", "endpoints": 10})];
    clusters.extend(consumers.iter().filter(|name| *name != provider).map(consumer));
    json!({
        "conditions": [
            condition("ServiceApplied", "Service is propagated to target clusters."),
            condition("EndpointSliceDispatched", "EndpointSlice are dispatched successfully"),
        ],
        "providers": 1, "consumers": consumers.len(), "endpoints": 10, "clusters": clusters,
    })
}

/// Whether a `MultiClusterService` says that all of it is done.
pub(crate) fn is_dispatched(mcs: &MultiClusterService) -> bool {
    let conditions = mcs.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.len() == 2 && conditions.iter().all(|condition| condition.status == "True")
}

/// An event, as long as ours.
pub(crate) fn stand_in_event(of: &str, reason: &str, message: &str) -> Value {
    let namespace = Who::Floor.namespace();
    let (api_version, kind) = StandIn::Mcs.type_meta();
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"generateName": format!("{of}."), "namespace": namespace, "labels": {SERVICE: of}},
        "involvedObject": {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": of},
        "type": "Normal", "reason": reason, "message": message, "count": 1,
        "source": {"component": "bench"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_says_whose_it_is_and_which_content_it_has() {
        for (who, copy) in [
            (Who::Floor, copied_map(&template(Who::Floor, "c00007", 3)).unwrap()),
            (Who::Ours, template(Who::Ours, "c00007", 3)),
        ] {
            assert_eq!(held_map(&copy), Some((who, "c00007", 3)));
        }
        assert_eq!(held_map(&template(Who::Floor, "c00007", 3)), None, "the floor's own template");
        assert_eq!(held_map(&stand_in_policy()), None);
    }

    #[test]
    fn the_policy_speaks_of_templates_and_of_nothing_else_of_the_benchmark() {
        let policy = propagation_policy(&["a".to_owned(), "b".to_owned()]);
        let selected = &policy.data["spec"]["resourceSelectors"][0]["labelSelector"]["matchLabels"];
        let labels = template(Who::Ours, "c", 0).metadata.labels.unwrap();
        assert_eq!(selected[ROLE].as_str(), labels.get(ROLE).map(String::as_str));
        assert_eq!(policy.data["spec"]["placement"]["clusterAffinity"]["clusterNames"], json!(["a", "b"]));
    }

    #[test]
    fn what_is_done_is_told_from_what_is_not() {
        let binding = |status: Value| -> DynamicObject {
            let mut object = stand_in_binding("ConfigMap", "c", &["a".to_owned()]);
            object["status"] = status;
            made(object)
        };
        assert!(is_applied(&binding(binding_status(&["a".to_owned()]))));
        assert!(!is_applied(&binding(json!({}))));
        let mut mcs = mcs("s", "a", &["b".to_owned()]);
        assert!(!is_dispatched(&mcs));
        mcs.status = Some(made(mcs_status("a", &["b".to_owned()])));
        assert!(is_dispatched(&mcs));
    }
}
