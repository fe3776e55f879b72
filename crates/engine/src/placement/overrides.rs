//! How a copy differs from its template in one cluster: overriders, in the order in which Karmada carries them out.
//!
//! ```text
//!   policies of the clusterset, then those of the namespace;
//!   among these the vaguest first, so that the closest has the last word; then by name
//!   in each rule: image, command, args, labels, annotations, plaintext
//! ```

mod fence;
pub mod image;

use std::collections::BTreeMap;

use atoll_apimachinery::patch;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::Stamp;
use super::affinity::{ClusterFact, fits};
use super::choose::{Meant, meant};
use super::object::{ObjectKey, pod_spec};
use super::policy::{ClusterAffinity, PolicyId, ResourceSelector};
use crate::names::ClusterId;

/// An override policy, and who wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Overriding {
    /// What it says.
    pub spec: OverrideSpec,
    /// Who wrote it.
    pub stamp: Stamp,
}

/// `spec` of an `OverridePolicy` or `ClusterOverridePolicy`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OverrideSpec {
    /// What it speaks of; everything if none.
    pub resource_selectors: Vec<ResourceSelector>,
    /// The rules.
    pub override_rules: Vec<Rule>,
    /// The old way to say one rule.
    pub target_cluster: Option<ClusterAffinity>,
    /// The old way to say one rule.
    pub overriders: Overriders,
}

/// What is changed in which clusters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// The clusters; all if none.
    pub target_cluster: Option<ClusterAffinity>,
    /// What is changed.
    pub overriders: Overriders,
}

/// What is changed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Overriders {
    /// Parts of images.
    pub image_overrider: Vec<image::ImageOverrider>,
    /// Commands of containers.
    pub command_overrider: Vec<WordsOverrider>,
    /// Arguments of containers.
    pub args_overrider: Vec<WordsOverrider>,
    /// Labels.
    pub labels_overrider: Vec<MapOverrider>,
    /// Annotations.
    pub annotations_overrider: Vec<MapOverrider>,
    /// Anything, by JSON pointer.
    pub plaintext: Vec<Plaintext>,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operator {
    /// Something comes.
    Add,
    /// Something goes.
    Remove,
    /// Something becomes something else.
    Replace,
}

/// Words that come to, or go from, a container's command or arguments.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WordsOverrider {
    /// The container.
    pub container_name: String,
    /// What is done.
    pub operator: Operator,
    /// The words.
    #[serde(default)]
    pub value: Vec<String>,
}

/// Labels or annotations.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct MapOverrider {
    /// What is done.
    pub operator: Operator,
    /// Keys and values.
    pub value: BTreeMap<String, String>,
}

/// Anything, by JSON pointer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Plaintext {
    /// Where.
    pub path: String,
    /// What is done.
    pub operator: Operator,
    /// With what.
    #[serde(default)]
    pub value: Value,
}

/// An override that can't be carried out: nothing is written to the cluster, since half of it would be worse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{policy} can't be applied: {why}")]
pub struct OverrideError {
    /// The policy.
    pub policy: PolicyId,
    /// Why.
    pub why: String,
}

/// A policy that has changed a copy, and who wrote it.
pub type Changed<'a> = (&'a PolicyId, &'a Stamp);

/// Changes a copy for a cluster by all policies that speak of it; says which have made a difference.
pub fn apply<'a>(
    policies: &'a BTreeMap<PolicyId, Overriding>,
    key: &ObjectKey,
    mut object: Value,
    id: &ClusterId,
    cluster: &ClusterFact,
) -> Result<(Value, Vec<Changed<'a>>), OverrideError> {
    let mut speaking: Vec<(bool, Meant, &PolicyId, &Overriding)> = policies
        .iter()
        .filter(|(policy, _)| policy.namespace.as_ref().is_none_or(|own| *own == key.namespace))
        .filter_map(|(policy, overriding)| {
            let selectors = &overriding.spec.resource_selectors;
            let closely = if selectors.is_empty() { Meant::Kind } else { meant(selectors, key, &object)? };
            Some((policy.namespace.is_some(), closely, policy, overriding))
        })
        .collect();
    speaking.sort_by(|a, b| (a.0, a.1, &a.2.name).cmp(&(b.0, b.1, &b.2.name)));
    let mut changed = Vec::new();
    for (_, _, policy, Overriding { spec, stamp }) in speaking {
        let old = Rule { target_cluster: spec.target_cluster.clone(), overriders: spec.overriders.clone() };
        let rules =
            if spec.override_rules.is_empty() { std::slice::from_ref(&old) } else { &spec.override_rules };
        for rule in rules {
            if rule.target_cluster.as_ref().is_none_or(|target| fits(target, id, cluster).is_ok()) {
                let new = change(object.clone(), &rule.overriders).and_then(|new| {
                    fence::check(&object, &new)?;
                    Ok(new)
                });
                let new = new.map_err(|why| OverrideError { policy: policy.clone(), why })?;
                if new != object && changed.last() != Some(&(policy, stamp)) {
                    changed.push((policy, stamp));
                }
                object = new;
            }
        }
    }
    Ok((object, changed))
}

fn change(mut object: Value, overriders: &Overriders) -> Result<Value, String> {
    for one in &overriders.image_overrider {
        image::change(&mut object, one)?;
    }
    for one in &overriders.command_overrider {
        words(&mut object, "command", one);
    }
    for one in &overriders.args_overrider {
        words(&mut object, "args", one);
    }
    for one in &overriders.labels_overrider {
        map(&mut object, "labels", one);
    }
    for one in &overriders.annotations_overrider {
        map(&mut object, "annotations", one);
    }
    let patches: Vec<Value> = overriders
        .plaintext
        .iter()
        .map(|one| match one.operator {
            Operator::Add => json!({ "op": "add", "path": one.path, "value": one.value }),
            Operator::Remove => json!({ "op": "remove", "path": one.path }),
            Operator::Replace => json!({ "op": "replace", "path": one.path, "value": one.value }),
        })
        .collect();
    if patches.is_empty() {
        return Ok(object);
    }
    patch::json(&object, &Value::Array(patches)).map_err(|error| error.to_string())
}

/// The containers of an object that makes pods.
fn containers(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    let at = pod_spec(object).map(|(at, _)| format!("{at}/containers"));
    at.and_then(|at| object.pointer_mut(&at)).and_then(Value::as_array_mut).into_iter().flatten()
}

fn words(object: &mut Value, field: &str, overrider: &WordsOverrider) {
    for container in
        containers(object).filter(|container| container["name"] == overrider.container_name.as_str())
    {
        let there = container[field].as_array().cloned().unwrap_or_default();
        let given = overrider.value.iter().map(|word| Value::from(word.as_str()));
        let new: Vec<Value> = match overrider.operator {
            Operator::Add => there.into_iter().chain(given).collect(),
            Operator::Remove => {
                let gone: Vec<Value> = given.collect();
                there.into_iter().filter(|word| !gone.contains(word)).collect()
            }
            Operator::Replace => there, // the schema has no such operator here
        };
        container[field] = Value::Array(new);
    }
}

fn map(object: &mut Value, field: &str, overrider: &MapOverrider) {
    let meta = &mut object["metadata"];
    for (key, value) in &overrider.value {
        let there = meta[field].get(key).is_some();
        match overrider.operator {
            Operator::Add => meta[field][key.as_str()] = value.as_str().into(),
            Operator::Replace if there => meta[field][key.as_str()] = value.as_str().into(),
            Operator::Remove if there => {
                drop(meta[field].as_object_mut().and_then(|map| map.remove(key)));
            }
            Operator::Replace | Operator::Remove => {}
        }
    }
}
