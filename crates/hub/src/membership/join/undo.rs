//! What this run of `join` made, so that it can be taken away again.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use atoll_api::names::property;
use atoll_api::types::ClusterProperty;
use kube::api::{DeleteParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use super::{JoinError, rbac};
use crate::membership::connect::{code, why};

type Step = Pin<Box<dyn Future<Output = Result<(), kube::Error>> + Send>>;

/// Whether the user has asked to stop. Looked at between two writes: what is under way is waited for, since what was not
/// seen made could not be undone.
#[derive(Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Waits to be interrupted; never ends.
    pub(super) async fn by(&self, asked: impl Future<Output = ()>) -> Infallible {
        asked.await;
        tracing::warn!("interrupted: rolling back");
        self.0.store(true, Ordering::Relaxed);
        std::future::pending().await
    }
}

/// Steps back, the last one first.
#[derive(Default)]
pub(super) struct Undo {
    steps: Vec<(String, Step)>,
    interrupt: Interrupt,
}

impl Undo {
    pub(super) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// May more be made?
    pub(super) fn go_on(&self) -> Result<(), JoinError> {
        if self.interrupt.0.load(Ordering::Relaxed) { Err(JoinError::Interrupted) } else { Ok(()) }
    }

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
                Ok(()) => tracing::info!("rolled back: {what}"),
                Err(error) => tracing::warn!(why = why(&error), "cannot roll back: {what} is left behind"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn after_an_interrupt_nothing_more_is_made_and_what_is_under_way_ends() {
        let undo = Undo::default();
        let interrupt = undo.interrupt();
        assert!(undo.go_on().is_ok());
        let step = async {
            while undo.go_on().is_ok() {
                tokio::task::yield_now().await;
            }
            "ended"
        };
        let ended = tokio::select! {
            ended = step => ended,
            never = interrupt.by(std::future::ready(())) => match never {},
        };
        assert_eq!(ended, "ended");
        assert!(matches!(undo.go_on(), Err(JoinError::Interrupted)));
    }
}
