//! What happens is seen, in order and once.

use super::api;
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": name}}})).unwrap()
}

fn seen(event: WatchEvent<ConfigMap>) -> String {
    let name = |map: ConfigMap| map.metadata.name.unwrap();
    match event {
        WatchEvent::Added(map) => format!("added {}", name(map)),
        WatchEvent::Modified(map) => format!("modified {}", name(map)),
        WatchEvent::Deleted(map) => format!("deleted {}", name(map)),
        WatchEvent::Bookmark(_) => "bookmark".into(),
        WatchEvent::Error(status) => format!("error {}", status.code),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_sees_what_its_selector_selects_come_and_go() {
    let (_api, client) = api().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let params = WatchParams::default().labels("app=a").timeout(30);
    let events = maps.watch(&params, "0").await.unwrap();
    let label = |value: &str| Patch::Merge(json!({"metadata": {"labels": {"app": value}}}));
    let patch = PatchParams::default();
    maps.patch("a", &patch, &Patch::Merge(json!({"data": {"x": "y"}}))).await.unwrap();
    maps.patch("a", &patch, &label("b")).await.unwrap();
    maps.create(&PostParams::default(), &map("c")).await.unwrap();
    maps.patch("c", &patch, &label("a")).await.unwrap();
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let events: Vec<String> = events.map_ok(seen).try_collect().await.unwrap();
    let want = ["added a", "modified a", "deleted a", "added c", "deleted c", "bookmark"];
    assert_eq!(events, want);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_ends_with_a_mark_and_goes_on() {
    let (_api, client) = api().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let config = watcher::Config::default().streaming_lists();
    let mut objects = watcher(maps.clone(), config).applied_objects().boxed();
    assert_eq!(objects.next().await.unwrap().unwrap().metadata.name.as_deref(), Some("a"));
    maps.create(&PostParams::default(), &map("b")).await.unwrap();
    assert_eq!(objects.next().await.unwrap().unwrap().metadata.name.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_name_selects_no_longer_one() {
    let (_api, client) = api().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    maps.create(&PostParams::default(), &map("ab")).await.unwrap();
    let listed = maps.list(&ListParams::default().fields("metadata.name=a")).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    let events =
        maps.watch(&WatchParams::default().fields("metadata.name=a").timeout(30), "0").await.unwrap();
    maps.delete("ab", &DeleteParams::default()).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let events: Vec<String> = events.map_ok(seen).try_collect().await.unwrap();
    assert_eq!(events, ["added a", "deleted a", "bookmark"]);
}
