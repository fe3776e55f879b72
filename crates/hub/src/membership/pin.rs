//! What is known of a member's networks, on its `Cluster`: what was learnt is pinned there once, and a condition says what counts.

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
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;

use crate::membership::annotations;
use crate::membership::connect::why;
use crate::membership::networks::Ranges;

/// Before a write is tried again; and how long the first writes of a new member are left to others.
const PAUSE: Duration = Duration::from_secs(2);

/// Pins what was learnt, for as long as it takes, and says so by an event.
pub(crate) async fn write(hub: &Client, permit: &Permit, told: &Events, id: &ClusterId, learnt: &Known) {
    let text = |ranges: &[ipnet::IpNet]| Ranges(ranges.iter().copied().collect()).to_string();
    let annotations = json!({
        network::LEARNT_PODS: text(&learnt.pods), network::LEARNT_NODES: text(&learnt.nodes),
    });
    let patch = json!({ "metadata": { "annotations": annotations } });
    let api: Api<Cluster> = Api::all(hub.clone());
    while permit.holds() {
        match api.patch(id.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(cluster) => return tell(told, &cluster, learnt),
            Err(error) => {
                tracing::warn!(cluster = %id, why = why(&error), "cannot pin the member's networks");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn tell(told: &Events, cluster: &Cluster, learnt: &Known) {
    let name = cluster.name_any();
    let what = if learnt.pods.is_empty() {
        "the addresses of its nodes"
    } else {
        "its pod networks and the addresses of its nodes"
    };
    let message = format!(
        "this member joined by an older release or by hand: {what} were read from it now and pinned (annotations {} and {}); to change them, declare its networks",
        network::LEARNT_PODS,
        network::LEARNT_NODES
    );
    tracing::info!(cluster = name, "{message}");
    let about = About {
        api_version: Cluster::api_version(&()),
        kind: kind::cluster::CLUSTER.into(),
        namespace: String::new(),
        name,
        uid: cluster.uid(),
    };
    told.tell(Notice { about, warning: false, reason: events::cluster::NETWORKS_PINNED, message });
}

/// Shows what counts, unless whoever writes the member's health has done so meanwhile.
pub(crate) async fn show(hub: &Client, permit: &Permit, id: &ClusterId) {
    tokio::time::sleep(PAUSE).await;
    let api: Api<Cluster> = Api::all(hub.clone());
    while permit.holds() {
        let shown = async {
            let Some(cluster) = api.get_opt(id.as_str()).await? else { return Ok::<(), kube::Error>(()) };
            let written = cluster.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
            let Some(conditions) = updated(written, &cluster, Time(Timestamp::now())) else { return Ok(()) };
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
pub(crate) fn updated(existing: &[Condition], cluster: &Cluster, now: Time) -> Option<Vec<Condition>> {
    let (status, reason, message) = match annotations::networks(cluster) {
        Ok(networks) => said(&networks),
        Err(error) => ("False", reason::cluster::NETWORKS_NOT_DECLARED, error.to_string()),
    };
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
            "its pod networks are not known: it can export any address that is not another member's; declare them with `atoll join --pod-cidr` or the annotation {}",
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
            let written = updated(&[], &cluster, at(1)).unwrap();
            assert_eq!((written[0].status.as_str(), written[0].reason.as_str()), (status, reason));
            assert_eq!(updated(&written, &cluster, at(2)), None, "it is there already");
        }
    }
}
