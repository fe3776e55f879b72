//! What this run of `join` made, so that it can be taken away again.

use std::future::Future;
use std::pin::Pin;

use atoll_api::names::property;
use atoll_api::types::ClusterProperty;
use kube::api::{DeleteParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::rbac;
use crate::connect::{code, why};

type Step = Pin<Box<dyn Future<Output = Result<(), kube::Error>> + Send>>;

/// Steps back, the last one first.
#[derive(Default)]
pub(super) struct Undo {
    steps: Vec<(String, Step)>,
}

impl Undo {
    /// Deletes an object that this run has made, and no other of its name.
    pub(super) fn made<K>(&mut self, api: Api<K>, object: &K)
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    {
        let name = object.name_any();
        let what = format!("{} {name}", K::kind(&()));
        let only = Preconditions { uid: object.uid(), resource_version: None };
        let step = async move {
            match api.delete(&name, &DeleteParams::default().preconditions(only)).await {
                Ok(_) => Ok(()),
                Err(error) if code(&error) == Some(404) => Ok(()),
                Err(error) => Err(error),
            }
        };
        self.steps.push((what, Box::pin(step)));
    }

    /// Deletes the member's properties, those that are not there yet and that this hub then made.
    pub(super) async fn properties(&mut self, member: &Client, hub: &str) -> Result<(), kube::Error> {
        let api: Api<ClusterProperty> = Api::all(member.clone());
        for name in [property::CLUSTER_ID, property::CLUSTERSET] {
            let there = match api.get_opt(name).await {
                Ok(found) => found.is_some(),
                Err(error) if code(&error) == Some(404) => false,
                Err(error) => return Err(error),
            };
            if !there {
                let (api, hub) = (api.clone(), hub.to_owned());
                let step = async move {
                    let found = match api.get_opt(name).await? {
                        Some(found) if rbac::is_of(&found, &hub) => found,
                        Some(_) | None => return Ok(()),
                    };
                    let only = Preconditions { uid: found.uid(), resource_version: None };
                    match api.delete(name, &DeleteParams::default().preconditions(only)).await {
                        Ok(_) => Ok(()),
                        Err(error) if code(&error) == Some(404) => Ok(()),
                        Err(error) => Err(error),
                    }
                };
                self.steps.push((format!("ClusterProperty {name}"), Box::pin(step)));
            }
        }
        Ok(())
    }

    /// Takes it all away; what can't be is said.
    pub(super) async fn all(self) {
        for (what, step) in self.steps.into_iter().rev() {
            match step.await {
                Ok(()) => tracing::info!("undone: {what}"),
                Err(error) => tracing::warn!(why = why(&error), "cannot undo: {what} is left behind"),
            }
        }
    }
}

/// Kinds that live in a namespace.
pub(super) fn namespaced<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(
    client: &Client,
    namespace: &str,
) -> Api<K> {
    Api::namespaced(client.clone(), namespace)
}
