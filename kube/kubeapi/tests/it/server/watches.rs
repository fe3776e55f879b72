//! What happens is seen, in order and once.

use super::api;
use atoll_kubeapi::Body;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};

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

/// What a watch has made ready for a client that takes nothing, by taking just one piece of it.
async fn piece_of(watch: &mut Body) -> Bytes {
    watch.frame().await.unwrap().unwrap().into_data().unwrap()
}

#[tokio::test]
async fn watches_that_nobody_reads_hold_little_of_a_large_collection() {
    let (api, client) = api().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for at in 0..200 {
        let object =
            json!({"metadata": {"name": format!("map-{at:03}")}, "data": {"text": "x".repeat(10 << 10)}});
        maps.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }
    let greedy = api.admin();
    let path = "/api/v1/namespaces/default/configmaps?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let mut unread = Vec::new();
    for _ in 0..50 {
        let request = http::Request::get(path).body(Full::new(Bytes::new())).unwrap();
        unread.push(greedy.answer(request).await.into_body());
    }
    let mut text = Vec::new();
    for watch in &mut unread {
        text = piece_of(watch).await.to_vec();
        assert!(text.len() <= 64 << 10, "of two megabytes {} bytes are ready at once", text.len());
    }
    // What happens meanwhile is not lost, and the state is that of the beginning.
    maps.delete("map-199", &DeleteParams::default()).await.unwrap();
    maps.patch("map-198", &PatchParams::default(), &Patch::Merge(json!({"data": {"text": "new"}})))
        .await
        .unwrap();
    maps.create(&PostParams::default(), &map("new")).await.unwrap();
    let mut watch = unread.pop().unwrap();
    while !String::from_utf8_lossy(&text).contains(r#""name":"new""#) {
        let Some(frame) = watch.frame().await else {
            let text = String::from_utf8_lossy(&text).into_owned();
            panic!("it ended: {}", text.lines().last().unwrap_or_default());
        };
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let text = String::from_utf8(text).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<String> = events
        .iter()
        .map(|event| format!("{} {}", event["type"], event["object"]["metadata"]["name"]).replace('"', ""))
        .collect();
    let mut want: Vec<String> = (0..199).map(|at| format!("ADDED map-{at:03}")).collect();
    want.push("ADDED map-199".into()); // it was there then
    want.extend(["BOOKMARK null", "DELETED map-199", "MODIFIED map-198", "ADDED new"].map(str::to_owned));
    assert_eq!(told, want);
    let before = events.iter().find(|event| event["object"]["metadata"]["name"] == "map-198").unwrap();
    assert_eq!(before["object"]["data"]["text"].as_str().map(str::len), Some(10 << 10), "as it was then");
}
