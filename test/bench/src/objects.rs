//! The objects that the benchmark makes, and how its slices are told apart.

pub(crate) mod hub;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use atoll_api::names::{label, managed_by};
use atoll_api::types::{ServiceExport, ServiceImport};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use crate::options::{ENDPOINTS, Network, Who};

/// On everything that the benchmark makes, floor and copier included: the service that it belongs to.
pub(crate) const SERVICE: &str = "bench.atoll.dev/service";
/// What it is: one of [`SOURCE`], [`EXPORT`], [`COPY`].
pub(crate) const ROLE: &str = "bench.atoll.dev/role";
/// A Service or slice to be exported.
pub(crate) const SOURCE: &str = "source";
/// What stands in for a ServiceExport with the floor.
pub(crate) const EXPORT: &str = "export";
/// What floor and copier write.
pub(crate) const COPY: &str = "copy";
/// The writer of all our slices: no controller takes them for its own.
const WRITER: &str = "bench.atoll.dev";

/// The name of service number `index`.
pub(crate) fn service_name(index: usize) -> String {
    format!("s{index:04}")
}

/// The name of its slice at the source.
pub(crate) fn slice_name(service: &str) -> String {
    format!("{service}-source")
}

/// The name that floor and copier give their copy of a source's slice.
pub(crate) fn copied_name(slice: &str) -> String {
    format!("copied-{slice}")
}

fn meta(who: Who, name: &str, labels: &[(&str, &str)]) -> ObjectMeta {
    let labels: BTreeMap<_, _> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(who.namespace().to_owned()),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

fn made<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object made of constants has its type's shape")
}

/// The Service of `name`: no selector, so no controller makes endpoints for it.
pub(crate) fn source_service(who: Who, name: &str) -> Service {
    service(meta(who, name, &[(SERVICE, name), (ROLE, SOURCE)]))
}

/// A floor's derived Service.
pub(crate) fn derived_service(name: &str) -> Service {
    service(meta(Who::Floor, &format!("derived-{name}"), &[(SERVICE, name), (ROLE, COPY)]))
}

fn service(metadata: ObjectMeta) -> Service {
    let spec = made(json!({
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
    }));
    Service { metadata, spec: Some(spec), ..Service::default() }
}

/// The slice of `name` with content number `revision`.
pub(crate) fn source_slice(who: Who, name: &str, network: Network, revision: usize) -> EndpointSlice {
    let endpoints = (0..ENDPOINTS).map(|endpoint| {
        json!({
            "addresses": [network.address(revision, endpoint).to_string()],
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "zone": format!("zone-{}", endpoint % 3),
        })
    });
    let labels = [(SERVICE, name), (ROLE, SOURCE), (label::SERVICE_NAME, name), (label::MANAGED_BY, WRITER)];
    EndpointSlice {
        metadata: meta(who, &slice_name(name), &labels),
        address_type: "IPv4".to_owned(),
        endpoints: Some(made(endpoints.collect())),
        ports: Some(made(json!([{"name": "http", "port": 8080, "protocol": "TCP"}]))),
    }
}

/// What the floor or the copier holds of a source's slice: the same content, under as many labels as ours has.
pub(crate) fn copied_slice(who: Who, source: &EndpointSlice) -> Option<EndpointSlice> {
    let name = source.metadata.labels.as_ref()?.get(SERVICE)?;
    let derived = format!("derived-{name}");
    let labels = [
        (SERVICE, name.as_str()),
        (ROLE, COPY),
        (label::SERVICE_NAME, &derived),
        (label::MANAGED_BY, WRITER),
        ("bench.atoll.dev/source-cluster", "source"),
    ];
    let metadata = meta(who, &copied_name(source.metadata.name.as_ref()?), &labels);
    Some(EndpointSlice { metadata, ..source.clone() })
}

/// The export that makes the product move.
pub(crate) fn export(name: &str) -> ServiceExport {
    let metadata = meta(Who::Ours, name, &[(SERVICE, name)]);
    ServiceExport { metadata, ..ServiceExport::default() }
}

/// What makes the floor move: a ServiceImport, because a ServiceExport would make the product move, too. It costs the
/// same: same group, same server, same store, a status of the same size.
pub(crate) fn stand_in_export(name: &str) -> ServiceImport {
    let metadata = meta(Who::Floor, &format!("export-{name}"), &[(SERVICE, name), (ROLE, EXPORT)]);
    ServiceImport { metadata, ..import(name, &[]) }
}

/// The floor's ServiceImport.
pub(crate) fn import(name: &str, ips: &[String]) -> ServiceImport {
    ServiceImport {
        metadata: meta(Who::Floor, name, &[(SERVICE, name), (ROLE, COPY)]),
        spec: made(json!({
            "type": "ClusterSetIP", "ips": ips, "ipFamilies": ["IPv4"], "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        })),
        status: None,
    }
}

/// A status with as much to say as ours: `types` are its conditions.
pub(crate) fn with_status(mut object: ServiceImport, types: &[&str]) -> ServiceImport {
    let conditions = types.iter().map(|kind| {
        json!({
            "type": kind, "status": "True", "reason": kind, "message": format!("the floor says {kind}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        })
    });
    object.status =
        Some(made(json!({"clusters": [{"cluster": "source"}], "conditions": conditions.collect::<Value>()})));
    object
}

/// Whose slice it is as an importer holds it, of which service, and the address that tells its content; `None` for
/// every other slice.
pub(crate) fn held(slice: &EndpointSlice) -> Option<(Who, &str, Option<Ipv4Addr>)> {
    let who = Who::of(slice.metadata.namespace.as_deref()?)?;
    let labels = slice.metadata.labels.as_ref()?;
    let service = match who {
        Who::Ours if labels.get(label::MANAGED_BY).is_some_and(|by| managed_by::is_multicluster(by)) => {
            // What a MultiClusterService brought has the native name alone.
            labels.get(label::MCS_SERVICE_NAME).or_else(|| labels.get(label::SERVICE_NAME))?
        }
        Who::Ours => return None,
        Who::Floor | Who::Copier if labels.get(ROLE).is_some_and(|role| role == COPY) => {
            labels.get(SERVICE)?
        }
        Who::Floor | Who::Copier => return None,
    };
    let first = slice.endpoints.as_ref().and_then(|endpoints| endpoints.first()?.addresses.first());
    Some((who, service, first.and_then(|address| address.parse().ok())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_says_whose_it_is_and_a_source_does_not() {
        let network = Network::default();
        for who in [Who::Floor, Who::Copier] {
            let source = source_slice(who, "s0007", network, 3);
            assert_eq!(held(&source), None);
            let copy = copied_slice(who, &source).unwrap();
            assert_eq!(held(&copy), Some((who, "s0007", Some(network.address(3, 0)))));
            assert_eq!(copy.endpoints.as_ref().map(Vec::len), Some(10));
        }
    }

    #[test]
    fn the_products_slices_are_known_by_the_standards_labels() {
        let mut slice = source_slice(Who::Ours, "s0001", Network::default(), 0);
        assert_eq!(held(&slice), None, "a source");
        let labels = slice.metadata.labels.as_mut().unwrap();
        labels.insert(label::MANAGED_BY.to_owned(), managed_by::ATOLL.to_owned());
        labels.insert(label::MCS_SERVICE_NAME.to_owned(), "s0001".to_owned());
        assert_eq!(
            held(&slice).map(|(who, name, _)| (who, name.to_owned())),
            Some((Who::Ours, "s0001".into()))
        );
    }

    #[test]
    fn nothing_of_the_floor_is_what_the_product_looks_for() {
        let slice = copied_slice(Who::Floor, &source_slice(Who::Floor, "s", Network::default(), 0)).unwrap();
        for object in [slice.metadata, import("s", &[]).metadata, stand_in_export("s").metadata] {
            let labels = object.labels.unwrap();
            for ours in [label::HUB, label::SOURCE_CLUSTER, label::MCS_SERVICE_NAME] {
                assert!(!labels.contains_key(ours), "{ours}");
            }
        }
    }
}
