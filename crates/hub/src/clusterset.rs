//! Which clusterset this is: the hub's uid, the set's name, and which cluster is behind each member's name.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::names::FIELD_MANAGER;
use atoll_engine::names::ClusterId;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::connect::code;

/// The `ConfigMap` with the name of the set.
const CLUSTERSET: &str = "atoll-clusterset";
/// The `ConfigMap` with the kube-system uid of each member.
const MEMBERS: &str = "atoll-members";

/// Makes the hub's namespace if it is absent; true if it was.
pub(crate) async fn ensure_namespace(client: &Client, name: &str) -> Result<bool, kube::Error> {
    let api: Api<Namespace> = Api::all(client.clone());
    if api.get_opt(name).await?.is_some() {
        return Ok(false);
    }
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    match api.create(&PostParams::default(), &namespace).await {
        Ok(_) => Ok(true),
        Err(error) if code(&error) == Some(409) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The uid of a cluster: that of its namespace kube-system, if there is one.
pub(crate) async fn cluster_uid(client: &Client) -> Result<Option<String>, kube::Error> {
    let namespace = Api::<Namespace>::all(client.clone()).get_opt("kube-system").await?;
    Ok(namespace.and_then(|namespace| namespace.metadata.uid))
}

/// The hub's uid, the value of the label on everything of ours: of kube-system, else of the hub's own namespace.
pub(crate) async fn hub_uid(client: &Client, namespace: &str) -> Result<Arc<str>, kube::Error> {
    if let Some(uid) = cluster_uid(client).await? {
        return Ok(uid.into());
    }
    let own = Api::<Namespace>::all(client.clone()).get(namespace).await?;
    Ok(own.metadata.uid.unwrap_or_default().into())
}

/// The name of the clusterset. Whoever asks first decides it; `wished` then, else one made of the hub's uid.
pub(crate) async fn name(
    client: &Client,
    namespace: &str,
    hub: &str,
    wished: Option<&str>,
) -> Result<Arc<str>, kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    if let Some(name) = read_name(&api).await? {
        return Ok(name);
    }
    let default = || format!("atoll-{}", hub.get(..8).unwrap_or(hub));
    let name = wished.map_or_else(default, str::to_owned);
    let metadata = ObjectMeta { name: Some(CLUSTERSET.to_owned()), ..ObjectMeta::default() };
    let data = BTreeMap::from([("name".to_owned(), name.clone())]);
    let made = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
    match api.create(&PostParams::default(), &made).await {
        Ok(_) => Ok(name.into()),
        Err(error) if code(&error) == Some(409) => Ok(read_name(&api).await?.unwrap_or_else(|| name.into())),
        Err(error) => Err(error),
    }
}

async fn read_name(api: &Api<ConfigMap>) -> Result<Option<Arc<str>>, kube::Error> {
    let found = api.get_opt(CLUSTERSET).await?;
    Ok(found.and_then(|map| map.data).and_then(|data| data.get("name").map(|name| name.as_str().into())))
}

/// Which cluster was behind each member's name when a leader last looked.
pub(crate) async fn recorded(
    client: &Client,
    namespace: &str,
) -> Result<BTreeMap<ClusterId, Option<String>>, kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let data = api.get_opt(MEMBERS).await?.and_then(|map| map.data).unwrap_or_default();
    let read = data.into_iter().filter_map(|(name, uid)| {
        Some((ClusterId::parse(name).ok()?, Some(uid).filter(|uid| !uid.is_empty())))
    });
    Ok(read.collect())
}

/// Writes down which cluster is behind each member's name.
pub(crate) async fn record(
    client: &Client,
    namespace: &str,
    members: &BTreeMap<ClusterId, Option<String>>,
) -> Result<(), kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let data: BTreeMap<&str, &str> =
        members.iter().map(|(id, uid)| (id.as_str(), uid.as_deref().unwrap_or_default())).collect();
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": MEMBERS }, "data": data });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    api.patch(MEMBERS, &params, &Patch::Apply(&map)).await.map(drop)
}
