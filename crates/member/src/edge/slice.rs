//! EndpointSlices, both ways.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::names::{annotation, label, managed_by, prefix};
use atoll_engine::facts::{EndpointFact, SliceFact};
use atoll_engine::intent::Intent;
use atoll_engine::limits::{ENDPOINTS_OF_SLICE, PORTS};
use atoll_engine::names::{BadName, ClusterId, Namespace, ServiceKey, ServiceName, SliceName, Uid};
use atoll_engine::plan::{Endpoint, Slice};
use atoll_link::{Field, Problem};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::endpoints;
use super::{Edge, Unreadable, meta};
use crate::core::event::{OwnSlice, Seen};
use crate::core::object::{Attached, Kind, SliceBody, Version};

/// So much is said of one slice: an operator needs an example, not a flood.
const MOST_PROBLEMS: usize = 8;

/// Reads a slice: ours, a fact, or neither.
pub(crate) fn read(
    slice: &EndpointSlice,
    edge: &Edge,
    left_out: &mut Vec<Problem>,
) -> Result<Seen, Unreadable> {
    let namespace = meta::namespace(&slice.metadata)?;
    let name = SliceName::parse(slice.metadata.name.as_deref().unwrap_or_default())?;
    let named = |key: &str| {
        let name = meta::label(&slice.metadata, key)?;
        Some(ServiceKey { namespace: namespace.clone(), name: ServiceName::parse(name).ok()? })
    };
    if meta::is_ours(&slice.metadata, &edge.hub) {
        return own(slice, name, namespace, edge).map(Seen::OwnSlice);
    }
    let family = endpoints::family(&slice.address_type);
    match (named(label::SERVICE_NAME), family, is_multicluster(slice)) {
        (Some(of), Some(family), false) => {
            let mut leave = |field, why: BadName| {
                if left_out.len() >= MOST_PROBLEMS {
                    return;
                }
                let object = meta::object(Kind::Slice, &slice.metadata);
                left_out.push(Problem::Unrepresentable { object, field, why: why.to_string() });
            };
            let mut ports = Vec::new();
            for port in slice.ports.iter().flatten().take(PORTS as usize) {
                match endpoints::read_port(port, &edge.interned) {
                    Ok(port) => ports.push(port),
                    Err(why) => leave(Field::Port, why),
                }
            }
            let mut ends = Vec::new();
            for endpoint in slice.endpoints.iter().flatten().take(ENDPOINTS_OF_SLICE) {
                match endpoints::read(endpoint, &edge.interned) {
                    Ok(Endpoint { addresses, conditions, hostname, node, zone, for_zones, for_nodes: _ }) => {
                        ends.push(EndpointFact { addresses, conditions, hostname, node, zone, for_zones });
                    }
                    Err(why) => leave(Field::Endpoint, why),
                }
            }
            let fact = SliceFact { family, ports, endpoints: ends };
            Ok(Seen::Slice(namespace, name, of, fact))
        }
        (Some(_) | None, Some(_) | None, _) => Ok(Seen::OtherSlice(namespace, name)),
    }
}

/// Slices that any multi-cluster controller wrote are never facts: exports would loop.
fn is_multicluster(slice: &EndpointSlice) -> bool {
    let labels = slice.metadata.labels.iter().flatten();
    labels.into_iter().any(|(key, value)| match key.as_str() {
        label::MANAGED_BY => managed_by::is_multicluster(value),
        label::HUB => true,
        other => other.ends_with("/source-cluster"),
    })
}

fn own(
    slice: &EndpointSlice,
    name: SliceName,
    namespace: Namespace,
    edge: &Edge,
) -> Result<OwnSlice, Unreadable> {
    let labelled = |key| meta::label(&slice.metadata, key).and_then(|name| ServiceName::parse(name).ok());
    let managed_by = meta::label(&slice.metadata, label::MANAGED_BY);
    // The label may have been edited: names of imported slices have a prefix that no other has.
    let dispatched = managed_by == Some(managed_by::KARMADA_DISPATCH)
        || (managed_by != Some(managed_by::ATOLL) && !name.as_str().starts_with(prefix::IMPORTED));
    let intent = if dispatched { Intent::CrossCluster } else { Intent::Export };
    let said = labelled(match intent {
        Intent::Export => label::MCS_SERVICE_NAME,
        Intent::CrossCluster => label::SERVICE_NAME,
    });
    let labelled_well = said.is_some();
    // The label was taken off: the state machine may know whose it is; without a plan it goes by this.
    let of = ServiceKey { namespace, name: said.map_or_else(|| guess(slice, &name), Ok)? };
    let version = meta::version(&slice.metadata)?;
    let source = match intent {
        Intent::Export => meta::label(&slice.metadata, label::SOURCE_CLUSTER),
        Intent::CrossCluster => meta::annotation(&slice.metadata, annotation::PROVISION_CLUSTER),
    };
    let source = source.and_then(|id| ClusterId::parse(id).ok());
    let owner = slice.metadata.owner_references.iter().flatten().find(|owner| owner.kind == "Service");
    let attached = Attached {
        to: labelled(label::SERVICE_NAME),
        owner: owner.and_then(|owner| Uid::parse(owner.uid.as_str()).ok()),
        headless: meta::label(&slice.metadata, label::HEADLESS).is_some(),
    };
    let ours = labelled_well && managed_by == Some(manager(intent));
    let content = source.clone().filter(|_| ours).and_then(|source| content(slice, &name, source, edge));
    let whole =
        |slice| SliceBody { of: of.clone(), intent, attached: attached.clone(), slice: Arc::new(slice) };
    let body = content.map(whole);
    Ok(OwnSlice { of, name, intent, source, version, attached, body })
}

/// Who manages the slices of an intent, for others to read.
fn manager(intent: Intent) -> &'static str {
    match intent {
        Intent::Export => managed_by::ATOLL,
        Intent::CrossCluster => managed_by::KARMADA_DISPATCH,
    }
}

/// The service that a slice of ours without a label may belong to: that of its derived Service, or one of its own name, which
/// no plan has, so that it goes.
fn guess(slice: &EndpointSlice, name: &SliceName) -> Result<ServiceName, BadName> {
    let derived =
        meta::label(&slice.metadata, label::SERVICE_NAME).and_then(|name| name.strip_prefix(prefix::DERIVED));
    if let Some(derived) = derived.and_then(|name| ServiceName::parse(name).ok()) {
        return Ok(derived);
    }
    let plain = name.as_str().replace('.', "-");
    let short = plain.get(..plain.len().min(63)).unwrap_or_default();
    ServiceName::parse(short.trim_end_matches('-'))
}

/// What a slice of ours holds; none if we would never write that.
fn content(slice: &EndpointSlice, name: &SliceName, source: ClusterId, edge: &Edge) -> Option<Slice> {
    let ports = slice.ports.iter().flatten().map(|port| endpoints::read_port(port, &edge.interned));
    let ends = slice.endpoints.iter().flatten().map(|endpoint| {
        if endpoint.target_ref.is_some() || endpoint.deprecated_topology.is_some() {
            return None;
        }
        endpoints::read(endpoint, &edge.interned).ok()
    });
    Some(Slice {
        name: name.clone(),
        original: name.clone(),
        source,
        family: endpoints::family(&slice.address_type)?,
        ports: ports.collect::<Result<_, _>>().ok()?,
        endpoints: ends.collect::<Option<_>>()?,
        notes: Vec::new(),
    })
}

/// The slice to be written.
pub(crate) fn write(body: &SliceBody, hub: &str, onto: Option<&Version>) -> EndpointSlice {
    let slice = &*body.slice;
    let mut labels = attached_labels(&body.attached);
    labels.extend([
        (label::HUB.to_owned(), hub.to_owned()),
        (label::MANAGED_BY.to_owned(), manager(body.intent).to_owned()),
    ]);
    let source = slice.source.to_string();
    let annotations = match body.intent {
        Intent::Export => {
            labels.insert(label::MCS_SERVICE_NAME.to_owned(), body.of.name.to_string());
            labels.insert(label::SOURCE_CLUSTER.to_owned(), source);
            None
        }
        Intent::CrossCluster => Some(BTreeMap::from([(annotation::PROVISION_CLUSTER.to_owned(), source)])),
    };
    let mut metadata = meta::write(&body.of.namespace, slice.name.as_str(), labels, onto);
    metadata.annotations = annotations;
    metadata.owner_references = meta::owners(owner(&body.attached), onto);
    EndpointSlice {
        metadata,
        address_type: slice.family.as_str().to_owned(),
        endpoints: Some(slice.endpoints.iter().map(endpoints::write).collect()),
        ports: Some(slice.ports.iter().map(endpoints::write_port).collect()),
    }
}

/// The reference to the derived Service.
fn owner(attached: &Attached) -> Option<OwnerReference> {
    Some(meta::owner(attached.to.as_ref()?, attached.owner.as_ref()?))
}

/// The labels by which a slice hangs on its derived Service.
fn attached_labels(attached: &Attached) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    if let Some(name) = &attached.to {
        labels.insert(label::SERVICE_NAME.to_owned(), name.to_string());
    }
    if attached.headless {
        labels.insert(label::HEADLESS.to_owned(), String::new());
    }
    labels
}

/// A merge patch that hangs a slice on another Service and touches nothing else.
pub(crate) fn attach(attached: &Attached, onto: &Version) -> serde_json::Value {
    let mut labels: serde_json::Map<String, serde_json::Value> =
        attached_labels(attached).into_iter().map(|(key, value)| (key, value.into())).collect();
    if !attached.headless {
        labels.insert(label::HEADLESS.to_owned(), serde_json::Value::Null);
    }
    let owners = meta::owners(owner(attached), Some(onto)).unwrap_or_default();
    serde_json::json!({"metadata": {
        "uid": onto.uid.as_str(),
        "resourceVersion": onto.revision.to_string(),
        "labels": labels,
        "ownerReferences": owners,
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_ours(name: &str, labels: &[(&str, &str)]) -> OwnSlice {
        let mut all = BTreeMap::from([(label::HUB, "hub"), (label::SOURCE_CLUSTER, "a")]);
        all.extend([(label::MANAGED_BY, managed_by::ATOLL)]);
        all.extend(labels.iter().copied());
        let slice = serde_json::json!({
            "addressType": "IPv4", "endpoints": [],
            "metadata": {"name": name, "namespace": "shop", "uid": "u", "resourceVersion": "5", "labels": all},
        });
        let slice: EndpointSlice = serde_json::from_value(slice).unwrap();
        let edge = Edge { hub: "hub".into(), interned: Arc::default() };
        match read(&slice, &edge, &mut Vec::new()) {
            Ok(Seen::OwnSlice(seen)) => seen,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_slice_with_our_hubs_label_is_ours_whatever_else_it_lacks() {
        let whole = read_ours("imported-a-web-1", &[(label::MCS_SERVICE_NAME, "web")]);
        assert!(whole.of.name.as_str() == "web" && whole.body.is_some());
        let long = format!("imported-a-{}.x", "w".repeat(80));
        let long_guess = format!("imported-a-{}", "w".repeat(52));
        for (name, labels, want) in [
            ("imported-a-web-1", &[(label::SERVICE_NAME, "derived-web")][..], "web"),
            ("imported-a-web-1", &[(label::MCS_SERVICE_NAME, "no name")], "imported-a-web-1"),
            (&long, &[], &long_guess),
        ] {
            let seen = read_ours(name, labels);
            assert_eq!(seen.of.name.as_str(), want);
            assert!(seen.body.is_none(), "it is to be repaired");
        }
    }
}
