//! An imported slice as the hub's API shows it.

use std::collections::BTreeMap;

use atoll_api::names::{annotation, label, managed_by, prefix};
use atoll_engine::names::ServiceKey;
use atoll_engine::plan::Slice;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use crate::edge::{endpoints, meta};

/// The copy of an imported slice of `of`, for the API of the hub with this uid.
pub fn mirrored(of: &ServiceKey, slice: &Slice, hub: &str) -> EndpointSlice {
    let labels = [
        (label::HUB, hub.to_owned()),
        (label::MANAGED_BY, managed_by::KARMADA_IMPORT.to_owned()),
        (label::SERVICE_NAME, format!("{}{}", prefix::DERIVED, of.name).chars().take(63).collect()),
        (label::MCS_SERVICE_NAME, of.name.to_string()),
        (label::SOURCE_CLUSTER, slice.source.to_string()),
    ];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let mut metadata = meta::write(&of.namespace, slice.name.as_str(), labels, None);
    let source = (annotation::PROVISION_CLUSTER.to_owned(), slice.source.to_string());
    metadata.annotations = Some(BTreeMap::from([source]));
    EndpointSlice {
        metadata,
        address_type: slice.family.as_str().to_owned(),
        // Nodes are the source's own business, also where only the source's slice is planned so far.
        endpoints: Some(
            slice.endpoints.iter().map(|one| Endpoint { node_name: None, ..endpoints::write(one) }).collect(),
        ),
        ports: Some(slice.ports.iter().map(endpoints::write_port).collect()),
    }
}
