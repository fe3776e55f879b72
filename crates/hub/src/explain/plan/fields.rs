//! What of an object changes, field by field, in words.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::explain::plan::FieldChange;
use atoll_engine::facts::{
    InternalTrafficPolicy, Pairs, ServicePort, SessionAffinity, SlicePort, TrafficDistribution,
};
use atoll_engine::names::ClusterId;
use atoll_engine::network::Family;
use atoll_engine::plan::Slice;
use atoll_engine::reason::text;
use atoll_member::core::object::{ImportBody, ServiceBody};

/// The fields that differ.
#[derive(Debug, Default)]
pub(super) struct Fields(pub(super) Vec<FieldChange>);

impl Fields {
    /// Notes a field if it differs.
    pub(super) fn note<T: PartialEq + ?Sized>(
        &mut self,
        field: &str,
        before: &T,
        after: &T,
        show: impl Fn(&T) -> String,
    ) {
        if before != after {
            self.0.push(FieldChange { field: field.to_owned(), before: show(before), after: show(after) });
        }
    }

    /// How clients are led, of Services and imports alike.
    fn traffic(&mut self, [before, after]: [Traffic; 2]) {
        self.note("sessionAffinity", &before.0, &after.0, |one| text::session_affinity(*one).to_owned());
        self.note("sessionAffinityConfig", &before.1, &after.1, |one| seconds(*one));
        self.note("internalTrafficPolicy", &before.2, &after.2, |one| {
            text::internal_traffic_policy(*one).to_owned()
        });
        self.note("trafficDistribution", &before.3, &after.3, |one| {
            one.map_or(String::new(), |one| text::traffic_distribution(one).to_owned())
        });
    }
}

/// Affinity and its timeout, internal traffic policy, traffic distribution.
type Traffic = (SessionAffinity, Option<u32>, InternalTrafficPolicy, Option<TrafficDistribution>);

/// What of a derived Service changes.
pub(super) fn service(before: &ServiceBody, after: &ServiceBody) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.note("clusterIP", &before.headless, &after.headless, |headless| {
        if *headless { "None" } else { "assigned" }.to_owned()
    });
    fields.note("ports", &before.ports[..], &after.ports, ports);
    let traffic = [before, after].map(|of| {
        (of.session_affinity, of.client_ip_timeout, of.internal_traffic_policy, of.traffic_distribution)
    });
    fields.traffic(traffic);
    fields.note("ipFamilies", &before.families[..], &after.families, families);
    fields.0
}

/// What of a ServiceImport changes, with the clusters that its status names.
pub(super) fn import(
    (before, clusters_before): (&ImportBody, &[ClusterId]),
    (after, clusters_after): (&ImportBody, &[ClusterId]),
) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.note("type", &before.headless, &after.headless, |one| text::import_type(*one).to_owned());
    fields.note("ports", &before.ports[..], &after.ports, ports);
    fields.note("ipFamilies", &before.families[..], &after.families, families);
    let traffic = [before, after].map(|of| {
        (of.session_affinity, of.client_ip_timeout, of.internal_traffic_policy, of.traffic_distribution)
    });
    fields.traffic(traffic);
    fields.note("labels", &before.labels, &after.labels, pairs);
    fields.note("annotations", &before.annotations, &after.annotations, pairs);
    fields.note("status.clusters", clusters_before, clusters_after, clusters);
    fields.0
}

/// What of a slice changes, but for its endpoints, which stand elsewhere; of them only how many there are.
pub(super) fn slice(before: &Slice, after: &Slice, service: [&str; 2]) -> Vec<FieldChange> {
    let mut fields = Fields::default();
    fields.note("service", service[0], service[1], str::to_owned);
    fields.note("ports", &before.ports[..], &after.ports, |all| {
        all.iter().map(slice_port).collect::<Vec<_>>().join(", ")
    });
    if before.endpoints != after.endpoints {
        let count = |slice: &Slice| slice.endpoints.len().to_string();
        fields.0.push(FieldChange {
            field: "endpoints".to_owned(),
            before: count(before),
            after: count(after),
        });
    }
    fields.0
}

/// Some clusters.
pub(super) fn clusters(ids: &[ClusterId]) -> String {
    ids.iter().map(ClusterId::as_str).collect::<Vec<_>>().join(", ")
}

fn ports(ports: &[ServicePort]) -> String {
    let one = |port: &ServicePort| {
        let name = if port.name.is_empty() { String::new() } else { format!("{} ", port.name) };
        let app = port.app_protocol.as_ref().map_or(String::new(), |app| format!(" ({app})"));
        format!("{name}{}/{}{app}", port.port, port.protocol.as_str())
    };
    ports.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn slice_port(port: &SlicePort) -> String {
    let name = if port.name.is_empty() { String::new() } else { format!("{} ", port.name) };
    let number = port.port.map_or_else(|| "any".to_owned(), |port| port.to_string());
    format!("{name}{number}/{}", port.protocol.as_str())
}

fn families(families: &[Family]) -> String {
    families.iter().map(|family| family.as_str()).collect::<Vec<_>>().join(", ")
}

fn seconds(timeout: Option<u32>) -> String {
    timeout.map_or(String::new(), |seconds| format!("{seconds}s"))
}

fn pairs(pairs: &Pairs) -> String {
    let pairs: &BTreeMap<Arc<str>, Arc<str>> = pairs;
    pairs.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}
