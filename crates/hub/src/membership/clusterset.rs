//! Which clusterset this is: the hub's uid, the set's name, and which cluster is behind each member's name.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::names::FIELD_MANAGER;
use atoll_engine::names::ClusterId;
pub(crate) use atoll_member::cluster_uid;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::membership::connect::code;

/// The `ConfigMap` with the name of the set.
const CLUSTERSET: &str = "atoll-clusterset";
/// Longer names serve no user.
const LONGEST_NAME: usize = 128;
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

/// The hub's uid, the value of the label on everything of ours: of kube-system, else of the hub's own namespace.
pub(crate) async fn hub_uid(client: &Client, namespace: &str) -> Result<Arc<str>, kube::Error> {
    if let Some(uid) = cluster_uid(client).await? {
        return Ok(uid.into());
    }
    let own = Api::<Namespace>::all(client.clone()).get(namespace).await?;
    Ok(own.metadata.uid.unwrap_or_default().into())
}

/// The name of a clusterset, and the `ConfigMap` that says it, if it was made just now.
pub(crate) struct Named {
    pub(crate) name: Arc<str>,
    pub(crate) made: Option<ConfigMap>,
}

/// Whether a clusterset can be called so: a DNS name, since others make names of it.
pub(crate) fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.chars().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= LONGEST_NAME && text.split('.').all(label)
}

/// The name of the clusterset. Whoever asks first decides it; `wished` then, else one made of the hub's uid.
pub(crate) async fn name(
    client: &Client,
    namespace: &str,
    hub: &str,
    wished: Option<&str>,
) -> Result<Named, kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    if let Some(name) = read_name(&api).await? {
        return Ok(Named { name, made: None });
    }
    let default = || format!("atoll-{}", hub.get(..8).unwrap_or(hub));
    let name = wished.map_or_else(default, str::to_owned);
    let metadata = ObjectMeta { name: Some(CLUSTERSET.to_owned()), ..ObjectMeta::default() };
    let data = BTreeMap::from([("name".to_owned(), name.clone())]);
    let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
    match api.create(&PostParams::default(), &map).await {
        Ok(made) => Ok(Named { name: name.into(), made: Some(made) }),
        Err(error) if code(&error) == Some(409) => {
            if let Some(name) = read_name(&api).await? {
                return Ok(Named { name, made: None });
            }
            // It is there and says nothing.
            let patch = json!({ "data": { "name": name } });
            api.patch(CLUSTERSET, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            Ok(Named { name: name.into(), made: None })
        }
        Err(error) => Err(error),
    }
}

async fn read_name(api: &Api<ConfigMap>) -> Result<Option<Arc<str>>, kube::Error> {
    let found = api.get_opt(CLUSTERSET).await?;
    let name = found.and_then(|map| map.data).and_then(|mut data| data.remove("name"));
    Ok(name.filter(|name| !name.is_empty()).map(Into::into))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clusterset_has_a_dns_name() {
        for good in ["prod", "atoll-1234abcd", "eu.prod.example"] {
            assert!(is_name(good), "{good}");
        }
        let long = "a".repeat(64);
        for bad in ["", " ", "Prod", "a b", "-a", "a-", "a..b", ".", &long] {
            assert!(!is_name(bad), "{bad:?}");
        }
    }
}
