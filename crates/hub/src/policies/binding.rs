//! A binding: what was decided of one template, what became of it, and who may hold a copy; as Karmada's users know it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_api::names::annotation::{self, policy as claimed};
use atoll_api::names::condition::binding as of;
use atoll_api::names::finalizer;
use atoll_api::names::kind::work;
use atoll_api::names::reason::binding as why;
use atoll_engine::names::ClusterId;
use atoll_engine::placement::access::Author;
use atoll_engine::placement::object::{Kind, ObjectKey, replicas};
use atoll_engine::placement::policy::PolicyId;
use atoll_engine::placement::{Decision, Placed};
use atoll_link::CopyState;
use serde_json::{Value, json};

use crate::api::conditions::{condition, dated};

/// What is known of each cluster that may hold a copy.
pub(super) type Holders = BTreeMap<ClusterId, Held>;

/// What a cluster holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Held {
    /// It has said so.
    Said(CopyState),
    /// It has not said anything in this life.
    Silent,
    /// Nothing was ordered, for this reason.
    Unordered(String),
}

/// The binding of an object, by kind and name.
pub(super) fn key_of(object: &ObjectKey, taken: impl Fn(&ObjectKey) -> bool) -> ObjectKey {
    let kind =
        if object.namespace.is_empty() { work::CLUSTER_RESOURCE_BINDING } else { work::RESOURCE_BINDING };
    let name = format!("{}-{}", object.name.replace(':', "."), object.kind.kind).to_lowercase();
    let mut key = ObjectKey { kind: kind_of(kind), namespace: object.namespace.clone(), name: name.clone() };
    if taken(&key) {
        // Two groups may have the same kind.
        key.name = format!("{name}.{}", object.kind.api_version.replace('/', ".")).to_lowercase();
    }
    key
}

fn kind_of(kind: &str) -> Kind {
    Kind::new(format!("{}/{}", work::GROUP, work::V1ALPHA2), kind)
}

/// Both kinds of bindings.
pub(super) fn kinds() -> [Kind; 2] {
    [kind_of(work::RESOURCE_BINDING), kind_of(work::CLUSTER_RESOURCE_BINDING)]
}

/// What holds a binding up.
pub(super) fn finalizer_of(binding: &ObjectKey) -> &'static str {
    if binding.namespace.is_empty() { finalizer::CLUSTER_BINDING } else { finalizer::BINDING }
}

/// A binding of a former life.
pub(super) struct Recalled {
    /// The object that it is of.
    pub(super) of: ObjectKey,
    /// What was decided, unless it only went along.
    pub(super) decision: Option<Decision>,
    /// Who may hold a copy.
    pub(super) holders: BTreeSet<ClusterId>,
    /// The bindings of those that it went along with.
    pub(super) required_by: Vec<ObjectKey>,
}

/// What a binding of a former life says; whether to believe it is for [`super::seal`].
pub(super) fn recall(binding: &Value) -> Option<Recalled> {
    let (meta, spec) = (&binding["metadata"], &binding["spec"]);
    let of: ObjectKey = serde_json::from_value(spec["resource"].clone()).ok()?;
    let annotation = |name: &str| meta["annotations"][name].as_str().map(str::to_owned);
    let policy = match (annotation(claimed::NAME), annotation(claimed::CLUSTER_NAME)) {
        (Some(name), _) => Some(PolicyId { namespace: annotation(claimed::NAMESPACE), name }),
        (None, Some(name)) => Some(PolicyId { namespace: None, name }),
        (None, None) => None,
    };
    let listed = spec["clusters"].as_array().into_iter().flatten();
    let clusters: BTreeMap<ClusterId, Option<i64>> = listed
        .filter_map(|one| Some((ClusterId::parse(one["name"].as_str()?).ok()?, one["replicas"].as_i64())))
        .collect();
    let named = annotation(annotation::HOLDERS).unwrap_or_default();
    let mut holders: BTreeSet<ClusterId> =
        named.split(',').filter_map(|name| ClusterId::parse(name).ok()).collect();
    holders.extend(clusters.keys().cloned());
    let flag = |name: &str| spec[name].as_bool().unwrap_or(false);
    let decided = !spec["placement"].is_null();
    let decision = decided.then(|| Decision {
        policy,
        placement: serde_json::from_value(spec["placement"].clone()).unwrap_or_default(),
        written: Arc::new(spec["placement"].clone()),
        clusters,
        affinity: None,
        propagate_deps: flag("propagateDeps"),
        conflict: serde_json::from_value(spec["conflictResolution"].clone()).unwrap_or_default(),
        suspension: serde_json::from_value(spec["suspension"].clone()).unwrap_or_default(),
        preserve: flag("preserveResourcesOnDeletion"),
        author: annotation(annotation::AUTHOR).and_then(|stamp| Author::read(&stamp)).map(Arc::new),
        uid: spec["resource"]["uid"].as_str().unwrap_or_default().to_owned(),
    });
    let parent = |one: &Value| {
        let (namespace, name) = (one["namespace"].as_str().unwrap_or_default(), one["name"].as_str()?);
        let kind = if namespace.is_empty() { work::CLUSTER_RESOURCE_BINDING } else { work::RESOURCE_BINDING };
        Some(ObjectKey { kind: kind_of(kind), namespace: namespace.to_owned(), name: name.to_owned() })
    };
    let required_by = spec["requiredBy"].as_array().into_iter().flatten().filter_map(parent).collect();
    Some(Recalled { of, decision, holders, required_by })
}

/// The binding as it is written.
pub(super) fn write(
    binding: &ObjectKey,
    object: &ObjectKey,
    template: &Value,
    placed: &Placed,
    holders: &Holders,
    required_by: &[ObjectKey],
) -> Value {
    // Its namespace goes only when no member holds a copy: who does is said nowhere else.
    let mut meta = json!({ "name": binding.name, "finalizers": [finalizer_of(binding)] });
    if !binding.namespace.is_empty() {
        meta["namespace"] = binding.namespace.as_str().into();
    }
    let names: Vec<_> = holders.keys().map(ClusterId::as_str).collect();
    meta["annotations"][annotation::HOLDERS] = names.join(",").into();
    let mut resource = serde_json::to_value(object).unwrap_or_default();
    resource["uid"] = template["metadata"]["uid"].clone();
    let mut spec = json!({ "resource": resource });
    if let Some(decision) = &placed.decision {
        match &decision.policy {
            Some(PolicyId { namespace: Some(namespace), name }) => {
                meta["annotations"][claimed::NAMESPACE] = namespace.as_str().into();
                meta["annotations"][claimed::NAME] = name.as_str().into();
            }
            Some(PolicyId { namespace: None, name }) => {
                meta["annotations"][claimed::CLUSTER_NAME] = name.as_str().into();
            }
            None => {}
        }
        if let Some(author) = &decision.author {
            let stamp = serde_json::to_string(&**author).unwrap_or_default();
            meta["annotations"][annotation::AUTHOR] = stamp.into();
        }
        let cluster = |(id, replicas): (&ClusterId, &Option<i64>)| match replicas {
            Some(replicas) => json!({ "name": id.as_str(), "replicas": replicas }),
            None => json!({ "name": id.as_str() }),
        };
        spec["clusters"] = decision.clusters.iter().map(cluster).collect();
        // An absent placement means every cluster: it is said, so that the next life knows that it was decided.
        let written = if decision.written.is_null() { json!({}) } else { (*decision.written).clone() };
        spec["placement"] = written;
        spec["conflictResolution"] = serde_json::to_value(decision.conflict).unwrap_or_default();
        spec["propagateDeps"] = decision.propagate_deps.into();
        if decision.preserve {
            spec["preserveResourcesOnDeletion"] = true.into();
        }
        if decision.suspension.dispatching || decision.suspension.dispatching_on_clusters.is_some() {
            let mut suspension = serde_json::to_value(&decision.suspension).unwrap_or_default();
            if let Some(map) = suspension.as_object_mut() {
                map.retain(|_, value| !value.is_null());
            }
            spec["suspension"] = suspension;
        }
        if let Some(replicas) = replicas(template) {
            spec["replicas"] = replicas.into();
        }
    }
    if !required_by.is_empty() {
        let parent = |parent: &ObjectKey| json!({ "namespace": parent.namespace, "name": parent.name });
        spec["requiredBy"] = required_by.iter().map(parent).collect();
    }
    json!({ "apiVersion": binding.kind.api_version, "kind": binding.kind.kind, "metadata": meta, "spec": spec })
}

/// What became of it, cluster by cluster.
pub(super) fn status(placed: &Placed, holders: &Holders, before: &Value, now: &str) -> Value {
    let scheduled = match &placed.nowhere {
        None => condition(of::SCHEDULED, true, why::SCHEDULED, &scheduled_text(placed)),
        Some(nowhere) => condition(of::SCHEDULED, false, nowhere.reason(), &nowhere.text()),
    };
    let lacking: Vec<String> = holders
        .iter()
        .filter_map(|(id, held)| {
            not_applied(held, placed.copies.contains_key(id)).map(|why| format!("{id}: {why}"))
        })
        .collect();
    let fully = if placed.nowhere.is_some() {
        condition(of::FULLY_APPLIED, false, why::NOT_FULLY_APPLIED, "no cluster was selected")
    } else if lacking.is_empty() {
        condition(of::FULLY_APPLIED, true, why::FULLY_APPLIED, "all selected clusters are up to date")
    } else {
        condition(of::FULLY_APPLIED, false, why::NOT_FULLY_APPLIED, &lacking.join("; "))
    };
    let conditions: Vec<Value> = [scheduled, fully].into_iter().map(|one| dated(one, before, now)).collect();
    let each: Vec<Value> = holders.iter().map(|(id, held)| aggregated(id, held)).collect();
    json!({ "conditions": conditions, "aggregatedStatus": each })
}

fn scheduled_text(placed: &Placed) -> String {
    if placed.unknown.is_empty() {
        return "clusters were selected".to_owned();
    }
    let unknown: Vec<_> = placed.unknown.iter().map(String::as_str).collect();
    format!("clusters were selected; not a member: {}", unknown.join(", "))
}

/// Whether a cluster that should hold it does.
pub(super) fn applied(held: &Held) -> Result<(), String> {
    not_applied(held, true).map_or(Ok(()), Err)
}

/// Why a cluster does not hold it, or still does.
fn not_applied(held: &Held, wanted: bool) -> Option<String> {
    match held {
        Held::Said(CopyState::Applied { .. }) if wanted => None,
        Held::Said(CopyState::NotApplied(why)) => Some(why.to_string()),
        Held::Said(CopyState::Applied { .. } | CopyState::Gone) => Some("it is being deleted".to_owned()),
        Held::Silent => Some("the cluster has not reported yet".to_owned()),
        Held::Unordered(why) => Some(why.clone()),
    }
}

fn aggregated(id: &ClusterId, held: &Held) -> Value {
    let mut one = json!({ "clusterName": id.as_str(), "applied": false, "health": "Unknown" });
    match held {
        Held::Said(CopyState::Applied { status, healthy }) => {
            one["applied"] = true.into();
            if status.is_object() {
                one["status"] = status.clone();
            }
            one["health"] = match healthy {
                Some(true) | None => "Healthy",
                Some(false) => "Unhealthy",
            }
            .into();
        }
        Held::Said(CopyState::NotApplied(why)) => one["appliedMessage"] = why.to_string().into(),
        Held::Said(CopyState::Gone) => one["appliedMessage"] = "gone".into(),
        Held::Silent => one["appliedMessage"] = "the cluster has not reported yet".into(),
        Held::Unordered(why) => one["appliedMessage"] = why.as_str().into(),
    }
    one
}
