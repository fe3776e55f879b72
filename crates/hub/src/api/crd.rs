//! Puts our CRDs into an API, unless newer ones are there.

use std::time::Duration;

use atoll_api::crds;
use atoll_api::names::FIELD_MANAGER;
use atoll_api::revision::Verdict;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};

use crate::membership::connect::code;

/// How long an API server may take until it serves a new kind.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(20);

/// Installs a CRD, or replaces an older one, and waits until its kind is served. True if it was not there.
pub(crate) async fn ensure(client: &Client, ours: &CustomResourceDefinition) -> Result<bool, kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let name = ours.name_any();
    let made = match api.get_opt(&name).await? {
        None => match api.create(&params, ours).await {
            Ok(_) => true,
            Err(error) if code(&error) == Some(409) => false, // another client was faster
            Err(error) => return Err(error),
        },
        Some(installed) => {
            if let Verdict::Replace(_) = crds::judge(ours, &installed) {
                let mut new = ours.clone();
                new.metadata.resource_version = installed.metadata.resource_version;
                api.replace(&name, &params, &new).await?;
            }
            false
        }
    };
    let served = await_condition(api, &name, conditions::is_crd_established());
    match tokio::time::timeout(ESTABLISHED_WITHIN, served).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(crd = name, %error, "cannot check whether the kind is served"),
        Err(_) => tracing::warn!(crd = name, "the kind is not served yet"),
    }
    Ok(made)
}
