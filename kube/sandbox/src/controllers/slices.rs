//! EndpointSlices of Services with selectors.
//!
//! ```text
//!   Service, its pods, their nodes ──▶ endpoints, by ports ──▶ fill: which slice holds which ──▶ requests
//! ```
//! As few slices as possible are written: an endpoint stays in its slice, and a slice that would go becomes one that
//! would come.

mod endpoint;
mod fill;
#[cfg(test)]
mod tests;

use super::action::{Action, Kind, Plan};
use super::facts::{Node, Pod, Service, Slice, StringMap};
use super::template::owner;
use endpoint::Group;
use fill::Filled;
use serde_json::{Map, Value, json};

/// The controller that writes these slices, in the words of Kubernetes.
pub(crate) const MANAGER: &str = "endpointslice-controller.k8s.io";
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// Makes the slices of a Service what they should be. `pods` are those that it selects, `slices` are ours that bear its
/// name, `node` finds a node.
pub(crate) fn plan<'a>(
    service: &Service,
    pods: &[&Pod],
    slices: &[&Slice],
    node: impl Fn(&str) -> Option<&'a Node>,
) -> Plan {
    let mut plan = Plan::default();
    if service.selector.is_none() {
        return plan;
    }
    let (mut creates, mut updates, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
    for slice in slices.iter().filter(|slice| !service.families.contains(&slice.family)) {
        deletes.push(*slice);
    }
    for family in &service.families {
        let present: Vec<&Slice> = slices.iter().copied().filter(|slice| slice.family == *family).collect();
        let groups = endpoint::groups(service, pods, family, &node);
        let mut change = family_change(service, &present, groups);
        // A slice of an earlier Service of this name is not ours to reuse: the garbage collector deletes it.
        let (reusable, gone): (Vec<_>, Vec<_>) =
            change.deletes.into_iter().partition(|slice| slice.service_uid == service.meta.uid);
        let reused = reusable.len().min(change.creates.len());
        for slice in &reusable[..reused] {
            if let Some(filled) = change.creates.pop() {
                change.updates.push((*slice, filled));
            }
        }
        deletes.extend(gone.into_iter().chain(reusable[reused..].iter().copied()));
        creates.extend(change.creates.into_iter().map(|filled| (family, filled)));
        updates.extend(change.updates.into_iter().map(|(slice, filled)| (family, slice, filled)));
    }
    if !service.meta.going {
        for (family, filled) in creates {
            let body = body(service, family, &filled, None);
            plan.actions.push(Action::Create(Kind::Slice, body));
        }
    }
    for (family, slice, filled) in updates {
        plan.actions.push(Action::Replace(Kind::Slice, body(service, family, &filled, Some(slice))));
    }
    let deletes = deletes.into_iter().filter(|slice| !slice.meta.going);
    plan.actions.extend(deletes.map(|slice| Action::Delete(Kind::Slice, (&slice.meta).into())));
    plan
}

/// What changes among the slices of one address family.
#[derive(Default)]
struct Change<'a> {
    creates: Vec<Filled>,
    updates: Vec<(&'a Slice, Filled)>,
    deletes: Vec<&'a Slice>,
}

fn family_change<'a>(service: &Service, present: &[&'a Slice], groups: Vec<Group>) -> Change<'a> {
    let labels = labels(service);
    let mut change = Change::default();
    let mut unclaimed: Vec<&Slice> = Vec::new();
    for slice in present {
        if slice.service_uid == service.meta.uid {
            unclaimed.push(slice);
        } else {
            change.deletes.push(slice);
        }
    }
    for group in groups {
        let (own, others) =
            unclaimed.into_iter().partition(|slice| endpoint::same_ports(&slice.ports, &group.ports));
        unclaimed = others;
        fill::fill(own, group, &labels, &mut change);
    }
    change.deletes.extend(unclaimed);
    // A Service without endpoints has one slice that says so.
    if change.deletes.len() == present.len() && change.creates.is_empty() {
        let is_placeholder = |slice: &Slice| {
            slice.service_uid == service.meta.uid
                && slice.ports.is_empty()
                && slice.endpoints.is_empty()
                && slice.meta.labels == labels
        };
        match change.deletes.as_slice() {
            [only] if is_placeholder(only) => change.deletes.clear(),
            _ => change.creates.push(Filled::default()),
        }
    }
    change
}

fn labels(service: &Service) -> StringMap {
    let mut labels = service.meta.labels.clone();
    labels.remove(HEADLESS);
    if service.headless {
        labels.insert(HEADLESS.to_owned(), String::new());
    }
    labels.insert(SERVICE_NAME.to_owned(), service.meta.name.clone());
    labels.insert(MANAGED_BY.to_owned(), MANAGER.to_owned());
    labels
}

fn body(service: &Service, family: &str, filled: &Filled, slice: Option<&Slice>) -> Value {
    let mut meta = Map::new();
    meta.insert("namespace".to_owned(), service.meta.namespace.as_str().into());
    meta.insert("labels".to_owned(), json!(labels(service)));
    meta.insert("ownerReferences".to_owned(), json!([owner("v1", "Service", &service.meta)]));
    meta.insert("generateName".to_owned(), format!("{}-", service.meta.name).into());
    if let Some(slice) = slice {
        meta.insert("name".to_owned(), slice.meta.name.as_str().into());
        meta.insert("uid".to_owned(), slice.meta.uid.as_str().into());
        meta.insert("resourceVersion".to_owned(), slice.meta.version.to_string().into());
    }
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta,
        "addressType": family, "ports": filled.ports, "endpoints": filled.endpoints,
    })
}
