//! What belongs to nobody goes, and namespaces take along what is in them.

use super::{api, until};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::json;

async fn family(client: &Client) -> Api<ConfigMap> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let parent: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "parent"}})).unwrap();
    let parent = maps.create(&PostParams::default(), &parent).await.unwrap();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": parent.metadata.uid, "blockOwnerDeletion": true});
    let child =
        serde_json::from_value(json!({"metadata": {"name": "child", "ownerReferences": [owner]}})).unwrap();
    maps.create(&PostParams::default(), &child).await.unwrap();
    maps
}

fn by(policy: PropagationPolicy) -> DeleteParams {
    DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() }
}

#[tokio::test(start_paused = true)]
async fn what_is_owned_goes_with_its_owner() {
    for policy in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        let (_api, client) = api().await;
        let maps = family(&client).await;
        maps.delete("parent", &by(policy.clone())).await.unwrap();
        until(&format!("both are gone, {policy:?}"), async || {
            maps.get_opt("child").await.unwrap().is_none() && maps.get_opt("parent").await.unwrap().is_none()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_stays_and_forgets_its_owner() {
    let (_api, client) = api().await;
    let maps = family(&client).await;
    maps.delete("parent", &by(PropagationPolicy::Orphan)).await.unwrap();
    until("the parent is gone", async || maps.get_opt("parent").await.unwrap().is_none()).await;
    assert_eq!(maps.get("child").await.unwrap().metadata.owner_references, None);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_an_object_until_it_is_taken_away() {
    let (_api, client) = api().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let held = serde_json::from_value(json!({"metadata": {"name": "held", "finalizers": ["test.io/hold"]}}))
        .unwrap();
    maps.create(&PostParams::default(), &held).await.unwrap();
    let going = maps.delete("held", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    assert!(maps.get("held").await.is_ok());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &PatchParams::default(), &release).await.unwrap();
    assert!(maps.get_opt("held").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let (_api, client) = api().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    until("the namespace is gone", async || namespaces.get_opt("shop").await.unwrap().is_none()).await;
    assert!(maps.list(&Default::default()).await.unwrap().items.is_empty());
}
