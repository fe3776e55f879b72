//! What is known of a member's networks: what was learnt is pinned once, on its Secret, where it counts; a condition of its `Cluster`
//! says what counts.

use std::time::Duration;

use atoll_api::names::annotation::network;
use atoll_api::names::{condition, event as events, kind, reason};
use atoll_api::types::Cluster;
use atoll_apimachinery::conditions;
use atoll_engine::names::ClusterId;
use atoll_engine::network::{Networks, Ranges as Known};
use atoll_member::Permit;
use atoll_member::events::{About, Events, Notice};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use crate::membership::annotations;
use crate::membership::connect::why;
use crate::membership::credentials;
use crate::membership::networks::Ranges;

/// Before a write is tried again; and how long the first writes of a new member are left to others.
const PAUSE: Duration = Duration::from_secs(2);

/// Pins what was learnt, for as long as it takes, and says so by an event.
pub(crate) async fn write(
    hub: &Client,
    namespace: &str,
    permit: &Permit,
    told: &Events,
    id: &ClusterId,
    learnt: &Known,
) {
    let text = |ranges: &[ipnet::IpNet]| Ranges(ranges.iter().copied().collect()).to_string();
    let annotations = json!({
        network::LEARNT_PODS: text(&learnt.pods), network::LEARNT_NODES: text(&learnt.nodes),
    });
    let api: Api<Cluster> = Api::all(hub.clone());
    let pinned = async || -> Result<Option<Cluster>, kube::Error> {
        let Some(cluster) = api.get_opt(id.as_str()).await? else { return Ok(None) };
        if let Some(secret) = own_secret(hub, namespace, &cluster, id).await? {
            let before = annotations::of_networks(cluster.annotations());
            let bound = secret.annotations().contains_key(network::BOUND);
            let mut all = if bound { json!({}) } else { json!(before) };
            all[network::BOUND] = "true".into();
            for (key, ranges) in annotations.as_object().into_iter().flatten() {
                all[key] = ranges.clone();
            }
            annotate(hub, namespace, &secret, &all).await?;
        }
        let patch = json!({ "metadata": { "annotations": annotations } });
        api.patch(id.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await.map(Some)
    };
    while permit.holds() {
        match pinned().await {
            Ok(Some(cluster)) => {
                return tell(told, &cluster, events::cluster::NETWORKS_PINNED, pinned_now(learnt));
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(cluster = %id, why = why(&error), "cannot pin the member's networks");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Copies what the `Cluster` says of its networks to its Secret, once; from then on only the Secret counts.
pub(crate) async fn bind(hub: &Client, namespace: &str, permit: &Permit, told: &Events, id: &ClusterId) {
    let api: Api<Cluster> = Api::all(hub.clone());
    let bound = async || -> Result<Option<(Cluster, bool)>, kube::Error> {
        let Some(cluster) = api.get_opt(id.as_str()).await? else { return Ok(None) };
        let Some(secret) = own_secret(hub, namespace, &cluster, id).await? else { return Ok(None) };
        if secret.annotations().contains_key(network::BOUND) {
            return Ok(None);
        }
        let said = annotations::of_networks(cluster.annotations());
        let some = !said.is_empty();
        let mut all = json!(said);
        all[network::BOUND] = "true".into();
        annotate(hub, namespace, &secret, &all).await?;
        Ok(Some((cluster, some)))
    };
    while permit.holds() {
        match bound().await {
            Ok(Some((cluster, true))) => {
                let message = format!(
                    "what the annotations of this Cluster say of its networks was copied to its Secret; from now on only annotations of the Secret count (kubectl -n {namespace} annotate secret)"
                );
                return tell(told, &cluster, events::cluster::NETWORKS_BOUND, message);
            }
            Ok(Some((_, false)) | None) => return,
            Err(error) => {
                tracing::warn!(cluster = %id, why = why(&error), "cannot copy the member's networks to its Secret");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The Secret that the `Cluster` names, if it was made for it.
async fn own_secret(
    hub: &Client,
    namespace: &str,
    cluster: &Cluster,
    id: &ClusterId,
) -> Result<Option<Secret>, kube::Error> {
    let Some(at) = cluster.spec.secret_ref.as_ref().filter(|at| at.namespace == namespace) else {
        return Ok(None);
    };
    let found = Api::<Secret>::namespaced(hub.clone(), namespace).get_opt(&at.name).await?;
    Ok(found.filter(|secret| credentials::read(secret).is_some_and(|read| read.are_of(id))))
}

async fn annotate(
    hub: &Client,
    namespace: &str,
    secret: &Secret,
    annotations: &serde_json::Value,
) -> Result<(), kube::Error> {
    let patch =
        json!({ "metadata": { "resourceVersion": secret.resource_version(), "annotations": annotations } });
    let api: Api<Secret> = Api::namespaced(hub.clone(), namespace);
    api.patch(&secret.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
}

fn pinned_now(learnt: &Known) -> String {
    let what = if learnt.pods.is_empty() {
        "the addresses of its nodes"
    } else {
        "its pod networks and the addresses of its nodes"
    };
    format!(
        "this member joined by an older release or by hand: {what} were read from it now and pinned (annotations {} and {} of its Secret); to change them, declare its networks",
        network::LEARNT_PODS,
        network::LEARNT_NODES
    )
}

fn tell(told: &Events, cluster: &Cluster, reason: &'static str, message: String) {
    let name = cluster.name_any();
    tracing::info!(cluster = name, "{message}");
    let about = About {
        api_version: Cluster::api_version(&()),
        kind: kind::cluster::CLUSTER.into(),
        namespace: String::new(),
        name: cluster.name_any(),
        uid: cluster.uid(),
    };
    told.tell(Notice { about, warning: false, reason, message });
}

/// Shows what counts.
pub(crate) async fn show(hub: &Client, permit: &Permit, id: &ClusterId, counts: &Networks) {
    let api: Api<Cluster> = Api::all(hub.clone());
    while permit.holds() {
        let shown = async {
            let Some(cluster) = api.get_opt(id.as_str()).await? else { return Ok::<(), kube::Error>(()) };
            let written = cluster.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
            let Some(conditions) = updated(written, &cluster, counts, Time(Timestamp::now())) else {
                return Ok(());
            };
            let patch = json!({
                "metadata": { "resourceVersion": cluster.metadata.resource_version },
                "status": { "conditions": conditions },
            });
            api.patch_status(id.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
        };
        match shown.await {
            Ok(()) => return,
            Err(error) => {
                tracing::debug!(cluster = %id, why = why(&error), "cannot show the member's networks");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The conditions with what is known of the networks now; none if that stands there already.
fn updated(
    existing: &[Condition],
    cluster: &Cluster,
    counts: &Networks,
    now: Time,
) -> Option<Vec<Condition>> {
    let (status, reason, mut message) = said(counts);
    if differs(cluster, counts) {
        message.push_str(
            "; the annotations of this Cluster say otherwise and do not count: annotate its Secret, or join it again",
        );
    }
    let kind = condition::cluster::NETWORKS_DECLARED;
    let old = existing.iter().find(|condition| condition.type_ == kind);
    if old.is_some_and(|old| old.status == status && old.reason == reason && old.message == message) {
        return None;
    }
    let before = old.map(|old| (old.status.as_str(), old.last_transition_time.clone()));
    let new = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: conditions::since(before, status, now),
        observed_generation: None,
    };
    let others = existing.iter().filter(|condition| condition.type_ != kind).cloned();
    Some(others.chain([new]).collect())
}

/// Whether the `Cluster` says something else than what counts.
fn differs(cluster: &Cluster, counts: &Networks) -> bool {
    let but_for_what_is_bound = |networks: &Networks| {
        let mut networks = Networks { since: 0, ..networks.clone() };
        networks.observed.api.clear();
        networks
    };
    annotations::networks(cluster)
        .map_or(true, |said| but_for_what_is_bound(&said) != but_for_what_is_bound(counts))
}

/// Status, reason and message of the condition.
fn said(networks: &Networks) -> (&'static str, &'static str, String) {
    let text = |ranges: &[ipnet::IpNet]| Ranges(ranges.iter().copied().collect()).to_string();
    let only = |pods: &[ipnet::IpNet]| {
        format!("only endpoints in {} and on the known addresses of its nodes are exported", text(pods))
    };
    if !networks.declared.pods.is_empty() {
        ("True", reason::cluster::NETWORKS_DECLARED, only(&networks.declared.pods))
    } else if networks.binding && !networks.observed.pods.is_empty() {
        ("True", reason::cluster::NETWORKS_READ_AT_JOIN, only(&networks.observed.pods))
    } else if !networks.learnt.pods.is_empty() {
        ("True", reason::cluster::NETWORKS_READ_AT_FIRST_CONTACT, only(&networks.learnt.pods))
    } else {
        let message = format!(
            "its pod networks are not known: it can export any address that is not another member's; declare them with `atoll join --pod-cidr` or the annotation {} on its Secret",
            network::PODS
        );
        ("False", reason::cluster::NETWORKS_NOT_DECLARED, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_sees_whose_networks_are_known_and_how() {
        let cluster = |annotations: serde_json::Value| -> Cluster {
            serde_json::from_value(json!({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
                "metadata": { "name": "paris", "annotations": annotations }, "spec": { "syncMode": "Push" },
            }))
            .unwrap()
        };
        let at = |seconds| Time(Timestamp::from_second(seconds).unwrap());
        for (annotations, status, reason) in [
            (json!({}), "False", "NotDeclared"),
            (json!({"atoll.dev/pod-cidrs": "10.1.0.0/16"}), "True", "Declared"),
            (json!({"atoll.dev/observed-pod-cidrs": "10.1.0.0/16"}), "False", "NotDeclared"),
            (
                json!({"atoll.dev/observed-pod-cidrs": "10.1.0.0/16", "atoll.dev/observed-node-cidrs": ""}),
                "True",
                "ReadAtJoin",
            ),
            (json!({"atoll.dev/learnt-pod-cidrs": "10.1.0.0/16"}), "True", "ReadAtFirstContact"),
        ] {
            let cluster = cluster(annotations);
            let counts = annotations::networks(&cluster).unwrap();
            let written = updated(&[], &cluster, &counts, at(1)).unwrap();
            assert_eq!((written[0].status.as_str(), written[0].reason.as_str()), (status, reason));
            assert_eq!(updated(&written, &cluster, &counts, at(2)), None, "it is there already");
            let other = Networks { endpoints: vec!["127.0.0.0/8".parse().unwrap()], ..counts };
            let told = updated(&written, &cluster, &other, at(3)).unwrap();
            assert!(told[0].message.contains("do not count"), "{told:?}");
        }
    }
}
