//! The hub's side of the stage: `MultiClusterServices` and the Services that they speak of.

use atoll_api::names::{label, managed_by};
use atoll_api::types::MultiClusterService;
use k8s_openapi::api::core::v1::{Event, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};

use super::{Member, in_flight};
use crate::error::{Doing, Error};
use crate::objects::hub::{self as objects, bindings};
use crate::objects::{self as slices, SERVICE};
use crate::options::Who;
use crate::stand_in::StandIn;
use crate::sweep::delete;

/// The hub's API, and who provides and consumes.
pub(crate) struct HubSide {
    pub(crate) client: Client,
    pub(crate) provider: String,
    pub(crate) consumers: Vec<String>,
}

impl HubSide {
    /// Has services cross.
    pub(super) async fn intend(&self, who: Who, names: &[String]) -> Result<(), Error> {
        let (provider, consumers, post) = (&self.provider, &self.consumers, &PostParams::default());
        let made = match who {
            Who::Ours => {
                let api: &Api<MultiClusterService> = &Api::namespaced(self.client.clone(), who.namespace());
                in_flight(names, |name| async {
                    api.create(post, &objects::mcs(name, provider, consumers)).await.map(drop)
                })
                .await
            }
            Who::Floor | Who::Copier => {
                let api = &self.stand_ins(StandIn::Mcs);
                in_flight(names, |name| async {
                    api.create(post, &objects::stand_in_mcs(name, provider, consumers)).await.map(drop)
                })
                .await
            }
        };
        made.doing(|| format!("make the MultiClusterServices of {who:?}"))
    }

    fn stand_ins(&self, of: StandIn) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), Who::Floor.namespace(), &of.resource())
    }

    /// What is not as `count` services of ours leave it, if something is not.
    pub(super) async fn lacks(&self, members: &[Member], count: usize) -> Result<Option<String>, Error> {
        let (namespace, all) = (Who::Ours.namespace(), ListParams::default());
        let doing = || "list what the hub holds".to_owned();
        let intents: Api<MultiClusterService> = Api::namespaced(self.client.clone(), namespace);
        let intents = intents.list(&all).await.doing(doing)?.items;
        let done = intents.iter().filter(|one| objects::is_dispatched(one)).count();
        let bindings: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &bindings());
        let bindings = bindings.list(&all).await.doing(doing)?.items;
        let applied = bindings.iter().filter(|binding| objects::is_applied(binding)).count();
        if [intents.len(), done, bindings.len(), applied] != [count; 4] {
            return Ok(Some(format!(
                "the hub has {done} of {} MultiClusterServices and {applied} of {} bindings done, of {count}",
                intents.len(),
                bindings.len()
            )));
        }
        for member in members {
            let doing = || format!("list what {} holds", member.name);
            let services: Api<Service> = Api::namespaced(member.client.clone(), namespace);
            let services = services.list_metadata(&all).await.doing(doing)?.items.len();
            let copies: Api<EndpointSlice> = Api::namespaced(member.client.clone(), namespace);
            let dispatched = format!("{}={}", label::MANAGED_BY, managed_by::KARMADA_DISPATCH);
            let copies =
                copies.list_metadata(&all.clone().labels(&dispatched)).await.doing(doing)?.items.len();
            let wanted = if self.consumers.contains(&member.name) { count } else { 0 };
            if (services, copies) != (count, wanted) {
                let name = &member.name;
                return Ok(Some(format!("{name} holds {services} Services and {copies} slices of {count}")));
            }
        }
        Ok(None)
    }

    /// Deletes services again, but for the slices that they came from.
    pub(super) async fn withdraw(&self, who: Who, names: &[String], members: &[Member]) -> Result<(), Error> {
        let namespace = who.namespace();
        match who {
            // The product deletes its own; the Service is last, since copies go with it.
            Who::Ours => {
                delete::<MultiClusterService>(&self.client, namespace, names.to_vec()).await?;
                delete::<Service>(&self.client, namespace, names.to_vec()).await?;
            }
            Who::Floor => {
                let ours = &ListParams::default().labels(SERVICE);
                for stand_in in [StandIn::Mcs, StandIn::Binding] {
                    let named = names.iter().map(|name| match stand_in {
                        StandIn::Mcs => name.clone(),
                        StandIn::Binding => format!("{name}-service"),
                    });
                    let (api, at_once) = (&self.stand_ins(stand_in), &DeleteParams::default());
                    in_flight(&named.collect::<Vec<_>>(), |name| async move {
                        match api.delete(name, at_once).await {
                            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                            gone => gone.map(drop),
                        }
                    })
                    .await
                    .doing(|| format!("delete {} of the floor", stand_in.plural()))?;
                }
                delete::<Service>(&self.client, namespace, names.to_vec()).await?;
                let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
                let gone = events.delete_collection(&DeleteParams::default(), ours).await;
                gone.doing(|| "delete the events of the floor".to_owned())?;
                for Member { client, .. } in members {
                    delete::<Service>(client, namespace, names.to_vec()).await?;
                }
            }
            Who::Copier => {}
        }
        if who != Who::Ours {
            let copies = names.iter().map(|name| slices::copied_name(&slices::slice_name(name)));
            let copies: Vec<_> = copies.collect();
            for Member { client, .. } in members {
                delete::<EndpointSlice>(client, namespace, copies.clone()).await?;
            }
        }
        Ok(())
    }
}
