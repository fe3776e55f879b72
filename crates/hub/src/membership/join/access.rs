//! May the user do what a join needs? Asked before anything is made.

use atoll_api::names::kind::{about, cluster};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use super::JoinError;

/// A verb, a group and a resource; the last says whether it is in our namespace.
type Need = (&'static str, &'static str, &'static str, bool);

/// How many questions are under way at once.
const AT_ONCE: usize = 8;
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
/// What is applied needs `patch`, and `create` where it is absent.
const IN_MEMBER: &[Need] = &[
    ("get", "", "namespaces", false),
    ("create", "", "namespaces", false),
    ("get", "", "serviceaccounts", true),
    ("create", "", "serviceaccounts", true),
    ("patch", "", "serviceaccounts", true),
    ("get", "", "secrets", true),
    ("create", "", "secrets", true),
    ("patch", "", "secrets", true),
    ("create", "", "serviceaccounts/token", true),
    ("get", RBAC, "roles", true),
    ("create", RBAC, "roles", true),
    ("patch", RBAC, "roles", true),
    ("get", RBAC, "rolebindings", true),
    ("create", RBAC, "rolebindings", true),
    ("patch", RBAC, "rolebindings", true),
    ("get", RBAC, "clusterroles", false),
    ("create", RBAC, "clusterroles", false),
    ("patch", RBAC, "clusterroles", false),
    ("get", RBAC, "clusterrolebindings", false),
    ("create", RBAC, "clusterrolebindings", false),
    ("patch", RBAC, "clusterrolebindings", false),
    ("get", "apiextensions.k8s.io", "customresourcedefinitions", false),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions", false),
    ("get", about::GROUP, about::CLUSTER_PROPERTIES, false),
    ("create", about::GROUP, about::CLUSTER_PROPERTIES, false),
];
/// Where the member serves policies.
const POLICIES: &[Need] = &[
    ("get", ADMISSION, "validatingadmissionpolicies", false),
    ("create", ADMISSION, "validatingadmissionpolicies", false),
    ("patch", ADMISSION, "validatingadmissionpolicies", false),
    ("delete", ADMISSION, "validatingadmissionpolicies", false),
    ("get", ADMISSION, "validatingadmissionpolicybindings", false),
    ("create", ADMISSION, "validatingadmissionpolicybindings", false),
    ("patch", ADMISSION, "validatingadmissionpolicybindings", false),
    ("delete", ADMISSION, "validatingadmissionpolicybindings", false),
];
const IN_HUB: &[Need] = &[
    ("get", "", "secrets", true),
    ("create", "", "secrets", true),
    ("patch", "", "secrets", true),
    ("get", "", "configmaps", true),
    ("create", "", "configmaps", true),
    ("list", cluster::GROUP, cluster::CLUSTERS, false),
    ("get", cluster::GROUP, cluster::CLUSTERS, false),
    ("create", cluster::GROUP, cluster::CLUSTERS, false),
    ("patch", cluster::GROUP, cluster::CLUSTERS, false),
];

/// `policies`: the member serves them.
pub(super) async fn in_member(client: &Client, namespace: &str, policies: bool) -> Result<(), JoinError> {
    let needs = [IN_MEMBER, if policies { POLICIES } else { &[] }].concat();
    let missing = missing(client, namespace, &needs).await.map_err(JoinError::member)?;
    if missing.is_empty() { Ok(()) } else { Err(JoinError::Forbidden { place: "the member", missing }) }
}

pub(super) async fn in_hub(client: &Client, namespace: &str) -> Result<(), JoinError> {
    let missing = missing(client, namespace, IN_HUB).await.map_err(JoinError::hub)?;
    if missing.is_empty() { Ok(()) } else { Err(JoinError::Forbidden { place: "the hub", missing }) }
}

async fn missing(client: &Client, namespace: &str, needs: &[Need]) -> Result<Vec<String>, kube::Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answers = needs.iter().map(async |need| {
        let (verb, group, resource, namespaced) = need;
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let attributes = ResourceAttributes {
            verb: Some((*verb).to_owned()),
            group: Some((*group).to_owned()),
            resource: Some(plural.to_owned()),
            subresource: Some(subresource.to_owned()).filter(|subresource| !subresource.is_empty()),
            namespace: namespaced.then(|| namespace.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let question = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let answer = api.create(&PostParams::default(), &question).await?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        Ok::<_, kube::Error>((!allowed).then(|| format!("{verb} {resource}")))
    });
    let missing: Vec<Option<String>> = stream::iter(answers).buffered(AT_ONCE).try_collect().await?;
    Ok(missing.into_iter().flatten().collect())
}
