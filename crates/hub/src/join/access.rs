//! May the user do what a join needs? Asked before anything is made.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use super::JoinError;

/// A verb, a group and a resource; the last says whether it is in our namespace.
type Need = (&'static str, &'static str, &'static str, bool);

const RBAC: &str = "rbac.authorization.k8s.io";
const IN_MEMBER: &[Need] = &[
    ("get", "", "namespaces", false),
    ("create", "", "namespaces", false),
    ("create", "", "serviceaccounts", true),
    ("create", "", "secrets", true),
    ("get", "", "secrets", true),
    ("create", RBAC, "clusterroles", false),
    ("create", RBAC, "clusterrolebindings", false),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions", false),
    ("create", "about.k8s.io", "clusterproperties", false),
];
const IN_HUB: &[Need] = &[
    ("create", "", "secrets", true),
    ("create", "", "configmaps", true),
    ("create", "cluster.karmada.io", "clusters", false),
];

pub(super) async fn in_member(client: &Client, namespace: &str) -> Result<(), JoinError> {
    let missing = missing(client, namespace, IN_MEMBER).await.map_err(JoinError::member)?;
    if missing.is_empty() { Ok(()) } else { Err(JoinError::Forbidden { place: "the member", missing }) }
}

pub(super) async fn in_hub(client: &Client, namespace: &str) -> Result<(), JoinError> {
    let missing = missing(client, namespace, IN_HUB).await.map_err(JoinError::hub)?;
    if missing.is_empty() { Ok(()) } else { Err(JoinError::Forbidden { place: "the hub", missing }) }
}

async fn missing(client: &Client, namespace: &str, needs: &[Need]) -> Result<Vec<String>, kube::Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut missing = Vec::new();
    for (verb, group, resource, namespaced) in needs {
        let attributes = ResourceAttributes {
            verb: Some((*verb).to_owned()),
            group: Some((*group).to_owned()),
            resource: Some((*resource).to_owned()),
            namespace: namespaced.then(|| namespace.to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let question = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let answer = api.create(&PostParams::default(), &question).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            missing.push(format!("{verb} {resource}"));
        }
    }
    Ok(missing)
}
