//! Namespaces of the benchmark's own, and taking away everything that it made.

use std::fmt::Debug;

use atoll_api::types::{Cluster, MultiClusterService, ServiceExport, ServiceImport};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::error::{Doing, Error};
use crate::objects::SERVICE;
use crate::options::Who;
use crate::stage::{Member, in_flight};

/// On the benchmark's namespaces.
const OWN: &str = "bench.atoll.dev/namespace";

/// Makes sure that `member` has the namespaces, and that they are ours to fill.
pub(crate) async fn namespaces(member: &Member, subjects: &[Who]) -> Result<(), Error> {
    let api: Api<Namespace> = Api::all(member.client.clone());
    for who in subjects {
        let namespace = who.namespace();
        let doing = || format!("make namespace `{namespace}` in {}", member.name);
        match api.get_opt(namespace).await.doing(doing)? {
            Some(found) if found.labels().contains_key(OWN) => {}
            Some(_) => return Err(Error::NamespaceTaken { cluster: member.name.clone(), namespace }),
            None => {
                let metadata = ObjectMeta {
                    name: Some(namespace.to_owned()),
                    labels: Some([(OWN.to_owned(), "true".to_owned())].into()),
                    ..ObjectMeta::default()
                };
                let made = Namespace { metadata, ..Namespace::default() };
                api.create(&PostParams::default(), &made).await.doing(doing)?;
            }
        }
    }
    Ok(())
}

/// Deletes what an earlier run, or this one, left in `member`. The product deletes its own when exports go.
pub(crate) async fn sweep(member: &Member, subjects: &[Who]) -> Result<(), Error> {
    let client = &member.client;
    for who in subjects {
        let namespace = who.namespace();
        if *who == Who::Ours {
            delete::<ServiceExport>(client, namespace, names::<ServiceExport>(client, namespace).await?)
                .await?;
        }
        delete::<ServiceImport>(client, namespace, names::<ServiceImport>(client, namespace).await?).await?;
        delete::<EndpointSlice>(client, namespace, names::<EndpointSlice>(client, namespace).await?).await?;
        delete::<Service>(client, namespace, names::<Service>(client, namespace).await?).await?;
    }
    Ok(())
}

/// Makes sure that the hub knows every one of `names` as a member: an intent for another would never come true.
pub(crate) async fn are_members<'a>(
    hub: &Client,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), Error> {
    let known = Api::<Cluster>::all(hub.clone()).list_metadata(&ListParams::default()).await;
    let known = known.doing(|| "list the hub's members".to_owned())?.items;
    let strangers = names.into_iter().filter(|name| known.iter().all(|member| member.name_any() != **name));
    let strangers: Vec<_> = strangers.collect();
    if strangers.is_empty() {
        return Ok(());
    }
    let members: Vec<_> = known.iter().map(ResourceExt::name_any).collect();
    Err(Error::Refused {
        what: format!("the hub has no member of this name: {}", strangers.join(", ")),
        hint: format!("name contexts or files as the members are called: {}", members.join(", ")),
    })
}

/// Deletes the intents and templates that an earlier run, or this one, left in the hub. The product follows.
pub(crate) async fn sweep_hub(hub: &Member, subjects: &[Who]) -> Result<(), Error> {
    let client = &hub.client;
    for who in subjects {
        let namespace = who.namespace();
        if *who == Who::Ours {
            let all = names::<MultiClusterService>(client, namespace).await?;
            delete::<MultiClusterService>(client, namespace, all).await?;
        }
        delete::<Service>(client, namespace, names::<Service>(client, namespace).await?).await?;
        delete::<ConfigMap>(client, namespace, names::<ConfigMap>(client, namespace).await?).await?;
    }
    Ok(())
}

/// Deletes the namespaces where a controller finishes that: elsewhere they would stay in Terminating for ever.
pub(crate) async fn drop_namespaces(member: &Member, subjects: &[Who]) -> Result<(), Error> {
    let api: Api<Namespace> = Api::all(member.client.clone());
    for who in subjects {
        let namespace = who.namespace();
        let accounts: Api<ServiceAccount> = Api::namespaced(member.client.clone(), namespace);
        let doing = || format!("delete namespace `{namespace}` in {}", member.name);
        if accounts.get_opt("default").await.doing(doing)?.is_some() {
            api.delete(namespace, &DeleteParams::default()).await.doing(doing)?;
        }
    }
    Ok(())
}

async fn names<K>(client: &Client, namespace: &str) -> Result<Vec<String>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let list = api.list_metadata(&ListParams::default().labels(SERVICE)).await;
    let list = list.doing(|| format!("list {} in `{namespace}`", K::plural(&())))?;
    Ok(list.items.iter().map(ResourceExt::name_any).collect())
}

/// Deletes objects by name; one that is gone already is as good.
pub(crate) async fn delete<K>(client: &Client, namespace: &str, names: Vec<String>) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let api: &Api<K> = &Api::namespaced(client.clone(), namespace);
    let background = &DeleteParams::default();
    in_flight(&names, |name| async move {
        match api.delete(name, background).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    })
    .await
    .doing(|| format!("delete {} in `{namespace}`", K::plural(&())))
}
