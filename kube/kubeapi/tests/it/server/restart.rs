//! A server that starts again is the server that it was.

use super::crds::{establish, thing, things};
use super::until;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options};
use futures_util::StreamExt;
use kube::Client;
use kube::api::{Api as Objects, DynamicObject, PostParams};
use serde_json::json;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

async fn start(path: &Path) -> Client {
    // The last one lets go of its file when its tasks have ended.
    let opened = RefCell::new(None);
    until("the store's file is free", async || {
        *opened.borrow_mut() = Store::open(path).ok();
        opened.borrow().is_some()
    })
    .await;
    let api = Api::start(opened.into_inner().unwrap(), Options::default()).await.unwrap();
    Client::new(api.admin(), "default")
}

fn revision(object: &DynamicObject) -> u64 {
    object.metadata.resource_version.as_deref().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_objects_are_there_at_once_and_revisions_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let client = start(&path).await;
    establish(&client).await;
    let before: Objects<DynamicObject> = things(&client, "v1");
    let made = before.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await.unwrap();
    drop((before, client));

    let client = start(&path).await;
    let after = things(&client, "v1");
    assert_eq!(after.get("a").await.unwrap(), made, "no waiting for the kind to be served");
    let next = after.create(&PostParams::default(), &thing("b", &json!({"size": 1}))).await.unwrap();
    assert!(revision(&next) > revision(&made));
    // What happened before the start is not told: a client lists again.
    let stale = after.watch(&kube::api::WatchParams::default().timeout(5), "1").await.unwrap();
    let first = futures_util::TryStreamExt::try_collect::<Vec<_>>(stale).await.unwrap().into_iter().next();
    assert!(matches!(first, Some(kube::api::WatchEvent::Error(status)) if status.code == 410));
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_the_first_moment_goes_on() {
    let store = Store::memory();
    let first = Api::start(store.clone(), Options::default()).await.unwrap();
    establish(&Client::new(first.admin(), "default")).await;
    drop(first);

    let second = Api::start(store, Options::default()).await.unwrap();
    let client = Client::new(second.admin(), "default");
    let watched = things(&client, "v1").watch(&kube::api::WatchParams::default().timeout(60), "0").await;
    let mut watched = std::pin::pin!(watched.unwrap());
    // The kind is the one that was served from the start on: nobody is sent away to look again.
    let ended = tokio::time::timeout(Duration::from_secs(5), watched.next()).await;
    assert!(ended.is_err(), "{ended:?}");
}
