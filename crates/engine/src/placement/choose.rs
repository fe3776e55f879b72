//! Which policy has a template: priority, then how closely it is meant, then the name; and who may take it from whom.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::object::ObjectKey;
use super::policy::{PolicyId, Preemption, PropagationSpec, ResourceSelector};

/// How closely a selector means an object. The order is that of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meant {
    /// By its kind alone.
    Kind,
    /// By its labels.
    Labels,
    /// By its name.
    Name,
}

/// How closely selectors mean an object; none if they do not.
pub fn meant(selectors: &[ResourceSelector], key: &ObjectKey, template: &Value) -> Option<Meant> {
    selectors.iter().filter_map(|selector| meant_by(selector, key, template)).max()
}

fn meant_by(selector: &ResourceSelector, key: &ObjectKey, template: &Value) -> Option<Meant> {
    if selector.kind != key.kind || !(selector.namespace.is_empty() || selector.namespace == key.namespace) {
        return None;
    }
    if !selector.name.is_empty() {
        return (selector.name == key.name).then_some(Meant::Name);
    }
    match &selector.label_selector {
        None => Some(Meant::Kind),
        Some(labels) => labels.0.matches_object(template).then_some(Meant::Labels),
    }
}

/// Whether a policy may speak of an object: one of a namespace speaks of that namespace only.
pub(super) fn in_reach(id: &PolicyId, key: &ObjectKey) -> bool {
    id.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
}

/// The policy that has the template, given the one that had it before. Those that are barred do not count.
pub fn choose<'a>(
    policies: &'a BTreeMap<PolicyId, PropagationSpec>,
    barred: &BTreeSet<PolicyId>,
    key: &ObjectKey,
    template: &Value,
    before: Option<&PolicyId>,
) -> Option<(&'a PolicyId, &'a PropagationSpec)> {
    let matching = |id: &PolicyId, spec: &PropagationSpec| {
        let counts = in_reach(id, key) && !barred.contains(id);
        counts.then(|| meant(&spec.resource_selectors, key, template)).flatten()
    };
    // Those of a namespace before the others; then the higher priority, the closer meaning, the first name.
    let rank = |id: &PolicyId, spec: &PropagationSpec, meant: Meant| {
        (id.namespace.is_some(), spec.priority, meant, std::cmp::Reverse(id.name.clone()))
    };
    let found =
        policies.iter().filter_map(|(id, spec)| Some((rank(id, spec, matching(id, spec)?), id, spec)));
    let kept =
        before.and_then(|id| policies.get_key_value(id)).filter(|(id, spec)| matching(id, spec).is_some());
    let Some((owner, owned)) = kept else {
        return found.max_by(|(a, ..), (b, ..)| a.cmp(b)).map(|(_, id, spec)| (id, spec));
    };
    let takes = |id: &PolicyId, spec: &PropagationSpec| {
        spec.preemption == Preemption::Always
            && match (id.namespace.is_some(), owner.namespace.is_some()) {
                (true, false) => true,
                (false, true) => false,
                (true, true) | (false, false) => spec.priority > owned.priority,
            }
    };
    let taker = found.filter(|(_, id, spec)| takes(id, spec)).max_by(|(a, ..), (b, ..)| a.cmp(b));
    Some(taker.map_or((owner, owned), |(_, id, spec)| (id, spec)))
}
