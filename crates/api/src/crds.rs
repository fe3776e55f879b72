//! The CRDs as they are installed: several versions of one schema, as published, and what decides an upgrade.
//!
//! ```
//! use atoll_api::crds;
//! let names: Vec<_> = crds::all().into_iter().filter_map(|crd| crd.metadata.name).collect();
//! assert_eq!(names[0], "clusterproperties.about.k8s.io");
//! assert!(crds::yaml(&crds::all()).expect("CRDs are plain data").starts_with("apiVersion: apiextensions.k8s.io/v1\n"));
//! ```

mod karmada;
mod outline;
pub mod refusals;
pub mod rules;
mod structural;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::CustomResourceExt;

use crate::names::{annotation, kind};
use crate::revision::{self, Labels, Revision, Verdict};
use crate::types::{
    Cluster, ClusterProperty, MultiClusterService, ServiceExport, ServiceImport, SharingPolicy,
};

/// Where the group `k8s.io` agreed to the kind; the API server wants to see it on the CRD.
const ABOUT_API_APPROVAL: &str = "https://github.com/kubernetes/enhancements/pull/3084";

/// Every CRD: first those of members.
pub fn all() -> Vec<CustomResourceDefinition> {
    let [properties, exports, imports] = of_members();
    let own = [properties, cluster(), exports, imports, multi_cluster_service(), sharing_policy()];
    own.into_iter().chain(policies()).collect()
}

/// What every member has.
pub fn of_members() -> [CustomResourceDefinition; 3] {
    [cluster_property(), service_export(), service_import()]
}

/// What the hub has: membership, services over clusters, policies and bindings, and the kinds of members as intents. Each is made when
/// it is asked for: all of them at once are megabytes.
pub fn of_hub() -> impl Iterator<Item = CustomResourceDefinition> {
    let own: [fn() -> CustomResourceDefinition; 5] =
        [cluster, service_export, service_import, multi_cluster_service, sharing_policy];
    own.into_iter().map(|make| make()).chain(policies())
}

/// Karmada's policies and bindings, for the hub; each is made when it is asked for.
pub fn policies() -> impl Iterator<Item = CustomResourceDefinition> {
    let made: [fn(bool) -> Option<CustomResourceDefinition>; 3] =
        [karmada::override_policy, karmada::propagation_policy, karmada::resource_binding];
    let [overrides, propagation, bindings] = made;
    let order = [
        (overrides, false),
        (propagation, false),
        (overrides, true),
        (propagation, true),
        (bindings, false),
        (bindings, true),
    ];
    order.into_iter().filter_map(|(make, namespaced)| make(namespaced))
}

/// `clusterproperties.about.k8s.io`, for members.
pub fn cluster_property() -> CustomResourceDefinition {
    let mut crd = installable::<ClusterProperty>(&[kind::about::V1ALPHA1], &revision::OWN);
    structural::let_spec_be_absent(&mut crd);
    let approval = (annotation::API_APPROVED.to_owned(), ABOUT_API_APPROVAL.to_owned());
    crd.metadata.annotations = Some(Labels::from([approval]));
    crd
}

/// `clusters.cluster.karmada.io`, for the hub.
pub fn cluster() -> CustomResourceDefinition {
    installable::<Cluster>(&[], &revision::OWN)
}

/// `serviceexports.multicluster.x-k8s.io`, for members and, as an intent, for the hub.
pub fn service_export() -> CustomResourceDefinition {
    let mut crd = installable::<ServiceExport>(&[kind::mcs::V1ALPHA1], &revision::MCS);
    structural::let_spec_be_absent(&mut crd);
    crd
}

/// `serviceimports.multicluster.x-k8s.io`, for members and, as an intent, for the hub.
pub fn service_import() -> CustomResourceDefinition {
    let mut crd = installable::<ServiceImport>(&[kind::mcs::V1ALPHA1], &revision::MCS);
    structural::let_spec_be_absent(&mut crd);
    crd
}

/// `multiclusterservices.networking.karmada.io`, for the hub.
pub fn multi_cluster_service() -> CustomResourceDefinition {
    let mut crd = installable::<MultiClusterService>(&[], &revision::OWN);
    rules::install(&mut crd, rules::MULTI_CLUSTER_SERVICE);
    crd
}

/// `sharingpolicies.atoll.dev`, for the hub.
pub fn sharing_policy() -> CustomResourceDefinition {
    installable::<SharingPolicy>(&[], &revision::OWN)
}

/// Renders CRDs as one YAML stream, in the order given; the same CRDs always give the same text.
pub fn yaml(crds: &[CustomResourceDefinition]) -> Result<String, serde_saphyr::SerializeError> {
    let documents = crds.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("---\n"))
}

/// May `installed`, as a member's API gave it, be replaced by `ours`?
pub fn judge(ours: &CustomResourceDefinition, installed: &CustomResourceDefinition) -> Verdict {
    let revision = if ours.spec.group == kind::mcs::GROUP { revision::MCS } else { revision::OWN };
    let versions: Vec<_> = ours.spec.versions.iter().map(|version| version.name.as_str()).collect();
    let labels = installed.metadata.labels.clone().unwrap_or_default();
    let stored = installed.status.as_ref().and_then(|status| status.stored_versions.as_deref());
    revision::judge(&revision, &versions, &labels, stored.unwrap_or_default())
}

/// The derived CRD, tidied and labelled, with older versions that are served beside the stored one.
fn installable<K: CustomResourceExt>(older: &[&str], revision: &Revision) -> CustomResourceDefinition {
    let mut crd = K::crd();
    structural::tidy(&mut crd);
    crd.metadata.labels = Some(revision.labels());
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    // One schema for all versions by construction: without a conversion webhook they must not differ.
    let stored = crd.spec.versions.remove(0);
    crd.spec.versions = older.iter().map(|name| served_beside(name, &stored)).collect();
    crd.spec.versions.push(stored);
    crd
}

fn served_beside(name: &str, stored: &CustomResourceDefinitionVersion) -> CustomResourceDefinitionVersion {
    CustomResourceDefinitionVersion { name: name.to_owned(), storage: false, ..stored.clone() }
}
