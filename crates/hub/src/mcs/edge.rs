//! A `MultiClusterService` as the engine knows it.

use std::collections::BTreeSet;

use atoll_api::names::annotation;
use atoll_api::names::kind::networking::{CROSS_CLUSTER, LOAD_BALANCER};
use atoll_api::types::MultiClusterService;
use atoll_engine::facts::{Liveness, Locality};
use atoll_engine::intent::{AskedPort, Clusters, CrossCluster};
use atoll_engine::names::{ClusterId, PortName, ServiceKey};
use kube::ResourceExt;

use crate::mcs::balancing;
use crate::policies::Standing;

/// What it asks for, and what of it is said to its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// What it asks for.
    pub(crate) intent: CrossCluster,
    /// Deprecated fields that are honoured, and words that mean nothing to us.
    pub(crate) remarks: Vec<String>,
    /// Fields that have newer names. They work.
    pub(crate) outdated: Vec<String>,
    /// Who wrote it, as its annotation says.
    pub(crate) author: Option<String>,
    /// Why it does not count, if it does not: then the intent is frozen.
    pub(crate) refused: Option<String>,
}

impl Asked {
    /// The same, by an author of this standing.
    pub(super) fn by(mut self, standing: Standing) -> Self {
        self.refused = standing.err();
        self.intent.frozen = self.refused.is_some();
        self
    }
}

/// The service that it speaks for.
pub(crate) fn key(object: &MultiClusterService) -> Option<ServiceKey> {
    ServiceKey::parse(&object.namespace()?, &object.name_any()).ok()
}

/// What it asks for; none if it is of another type. The one place that decides whether it has a load balancer: if it is of that type and
/// load balancers are ours.
pub(crate) fn asked(object: &MultiClusterService, balances: bool) -> Option<Asked> {
    let spec = &object.spec;
    let balanced = balances && spec.types.iter().any(|one| one == LOAD_BALANCER);
    if !balanced && !spec.types.iter().any(|one| one == CROSS_CLUSTER) {
        return None;
    }
    let mut outdated = Vec::new();
    let mut remarks = if balanced { balancing::remarks(object.annotations()) } else { Vec::new() };
    let range = spec.range.as_ref().map(|range| &range.cluster_names[..]).unwrap_or_default();
    let mut side = |new: &[atoll_api::types::multi_cluster_service::ClusterSelector],
                    old: &[String],
                    old_name: &str,
                    new_name: &str| {
        if !new.is_empty() {
            return named(new.iter().map(|one| one.name.as_str()), &mut remarks);
        }
        let (old, old_name) = if old.is_empty() { (range, "range") } else { (old, old_name) };
        if !old.is_empty() {
            outdated.push(format!("spec.{old_name} is deprecated; it is used as spec.{new_name}"));
        }
        named(old.iter().map(String::as_str), &mut remarks)
    };
    let providers = side(
        &spec.provider_clusters,
        &spec.service_provision_clusters,
        "serviceProvisionClusters",
        "providerClusters",
    );
    let consumers = side(
        &spec.consumer_clusters,
        &spec.service_consumption_clusters,
        "serviceConsumptionClusters",
        "consumerClusters",
    );
    let ports = spec.ports.iter().filter_map(|port| {
        let name = port.name.as_deref().filter(|name| !name.is_empty());
        Some(AskedPort {
            name: name.map(PortName::parse).transpose().ok()?,
            port: u16::try_from(port.port).ok()?,
        })
    });
    let intent = CrossCluster {
        providers,
        // Whoever comes through a load balancer is in no cluster.
        consumers: if balanced { Clusters::Named(BTreeSet::new()) } else { consumers },
        ports: ports.collect(),
        liveness: liveness(object, &mut remarks),
        locality: locality(object, &mut remarks),
        hostnames: object.annotations().get(annotation::HOSTNAMES).is_some_and(|value| value == "true"),
        balanced,
        frozen: false,
    };
    let author = object.annotations().get(annotation::AUTHOR).cloned();
    Some(Asked { intent, remarks, outdated, author, refused: None })
}

fn named<'a>(names: impl Iterator<Item = &'a str>, remarks: &mut Vec<String>) -> Clusters {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Clusters::All;
    }
    // A name that no cluster can have is no cluster, and not all clusters.
    let ids: BTreeSet<ClusterId> = names.iter().filter_map(|name| ClusterId::parse(*name).ok()).collect();
    let bad = names.iter().filter(|name| ClusterId::parse(**name).is_err());
    remarks.extend(bad.map(|name| format!("{name:?} is not a valid cluster name")));
    Clusters::Named(ids)
}

fn liveness(object: &MultiClusterService, remarks: &mut Vec<String>) -> Option<Liveness> {
    let value = object.annotations().get(annotation::LIVENESS)?;
    let known = Liveness::parse(value);
    if known.is_none() {
        remarks.push(format!("invalid value {value:?} in {}", annotation::LIVENESS));
    }
    known
}

fn locality(object: &MultiClusterService, remarks: &mut Vec<String>) -> Option<Locality> {
    let value = object.annotations().get(annotation::LOCALITY)?;
    let known = Locality::parse(value);
    if known.is_none() {
        remarks.push(format!("invalid value {value:?} in {}", annotation::LOCALITY));
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[allow(clippy::needless_pass_by_value)] // a manifest is written where it is used
    fn read(spec: serde_json::Value, annotations: serde_json::Value) -> Option<Asked> {
        let object = serde_json::json!({
            "apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
            "metadata": {"name": "web", "namespace": "shop", "annotations": annotations}, "spec": spec,
        });
        asked(&serde_json::from_value(object).unwrap(), true)
    }

    fn some(ids: &[&str]) -> Clusters {
        Clusters::Named(ids.iter().map(|id| ClusterId::parse(*id).unwrap()).collect())
    }

    #[test]
    fn deprecated_fields_count_where_the_new_ones_are_empty_and_that_is_said() {
        let none = serde_json::json!({});
        let cross = |more: serde_json::Value| {
            let mut spec = serde_json::json!({"types": ["CrossCluster"]});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            read(spec, none.clone()).unwrap()
        };
        for (spec, providers, consumers, said) in [
            (serde_json::json!({}), Clusters::All, Clusters::All, 0),
            (serde_json::json!({"range": {"clusterNames": ["a"]}}), some(&["a"]), some(&["a"]), 2),
            (serde_json::json!({"serviceProvisionClusters": ["b"]}), some(&["b"]), Clusters::All, 1),
            (
                serde_json::json!({"serviceProvisionClusters": ["b"], "providerClusters": [{"name": "c"}],
                    "serviceConsumptionClusters": ["d"]}),
                some(&["c"]),
                some(&["d"]),
                1,
            ),
            (serde_json::json!({"consumerClusters": [{"name": "Not a name"}]}), Clusters::All, some(&[]), 1),
        ] {
            let asked = cross(spec.clone());
            assert_eq!((asked.intent.providers, asked.intent.consumers), (providers, consumers), "{spec}");
            assert_eq!(
                asked.remarks.len() + asked.outdated.len(),
                said,
                "{:?} {:?}",
                asked.remarks,
                asked.outdated
            );
        }
    }

    #[test]
    fn one_with_a_load_balancer_has_no_consumers_and_is_ours_only_if_we_balance() {
        let spec = serde_json::json!({"types": ["LoadBalancer"], "providerClusters": [{"name": "a"}],
            "consumerClusters": [{"name": "b"}]});
        let weights = serde_json::json!({"atoll.dev/weights": "a=3,b"});
        let Asked { intent, remarks, .. } = read(spec.clone(), weights).unwrap();
        assert!(intent.balanced);
        assert_eq!((intent.providers, intent.consumers), (some(&["a"]), some(&[])));
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        let object = serde_json::json!({
            "apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
            "metadata": {"name": "web", "namespace": "shop"}, "spec": spec,
        });
        assert_eq!(asked(&serde_json::from_value(object).unwrap(), false), None);
        let cross = read(serde_json::json!({"types": ["CrossCluster"]}), serde_json::json!({})).unwrap();
        assert!(!cross.intent.balanced);
    }

    #[test]
    fn annotations_choose_liveness_locality_and_hostnames() {
        let spec = serde_json::json!({"types": ["CrossCluster"], "ports": [{"port": 80}, {"name": "x", "port": 81}]});
        let set = serde_json::json!({"atoll.dev/liveness": "Withdraw", "atoll.dev/locality": "local-first",
            "atoll.dev/hostnames": "true"});
        let Asked { intent, remarks, .. } = read(spec.clone(), set).unwrap();
        assert_eq!(
            (intent.liveness, intent.locality),
            (Some(Liveness::Withdraw), Some(Locality::LocalFirst))
        );
        assert!(intent.hostnames && remarks.is_empty() && intent.ports.len() == 2);
        let odd = serde_json::json!({"atoll.dev/liveness": "Maybe", "atoll.dev/locality": "near"});
        let Asked { intent, remarks, .. } = read(spec, odd).unwrap();
        assert_eq!((intent.liveness, intent.locality, remarks.len()), (None, None, 2));
    }
}
