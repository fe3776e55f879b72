//! Watching: which events come, in which order, and how a watch ends.

use serde_json::{Value, json};

use crate::answer::version;
use crate::fixtures::{Kind, labelled, map, maps, object};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    changes_come_in_order_from_a_listed_version,
    without_a_version_what_is_there_comes_first,
    a_version_of_zero_begins_with_what_is_there,
    a_watch_can_begin_in_the_past,
    an_object_that_stops_matching_is_deleted_to_the_watcher,
    a_watch_of_one_name_sees_only_that,
    a_watch_of_a_namespace_sees_only_that,
    a_watch_of_everything_sees_all_namespaces,
    initial_events_end_with_a_bookmark,
    initial_events_of_a_selector_end_too,
    without_initial_events_only_what_follows_comes,
    initial_events_need_a_match,
    initial_events_are_for_watches_only,
    a_watch_ends_after_its_seconds,
    a_forgotten_version_is_gone,
    a_version_to_watch_from_must_be_a_number,
    a_deleted_object_has_the_version_of_its_deletion,
    a_finalized_object_is_modified_and_then_deleted,
    a_write_of_nothing_is_no_event,
    two_watchers_see_the_same,
    only_metadata_is_watched,
    tables_are_watched,
    custom_objects_are_watched_with_kind,
    a_watch_of_a_broken_selector_is_refused,
    a_watch_answers_in_chunks_of_json,
    kube_watches_with_a_streamed_list,
    kube_watches_with_a_plain_list,
}

async fn changes_come_in_order_from_a_listed_version(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("before", json!({}))).await.created();
    let from = api.get(&maps(&ns)).await.version();
    let mut watch = api.watch(&format!("{}?resourceVersion={from}", maps(&ns))).await;
    let made = api.post(&maps(&ns), map("a", json!({"n": "1"}))).await;
    let changed = api.merge(&format!("{}/a", maps(&ns)), json!({"data": {"n": "2"}})).await;
    api.delete(&format!("{}/a", maps(&ns))).await.ok();
    assert_eq!(watch.expect("ADDED", "a").await, made.body);
    assert_eq!(watch.expect("MODIFIED", "a").await, changed.body);
    assert_eq!(watch.expect("DELETED", "a").await["data"]["n"], "2");
}

async fn without_a_version_what_is_there_comes_first(api: Target) {
    let ns = api.namespace().await;
    for name in ["b", "a"] {
        api.post(&maps(&ns), map(name, json!({}))).await.created();
    }
    let mut watch = api.watch(&maps(&ns)).await;
    let mut names = Vec::new();
    for _ in 0..2 {
        let (kind, object) = watch.next().await.expect("it goes on");
        assert_eq!(kind, "ADDED");
        names.push(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    }
    names.sort();
    assert_eq!(names, ["a", "b"]);
    api.post(&maps(&ns), map("c", json!({}))).await.created();
    watch.expect("ADDED", "c").await;
}

async fn a_version_of_zero_begins_with_what_is_there(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({}))).await.version();
    // "Any version" may be behind; ask for one that is not, so that `a` is there.
    api.get(&format!("{}?resourceVersion={made}", maps(&ns))).await.ok();
    let mut watch = api.watch(&format!("{}?resourceVersion=0", maps(&ns))).await;
    watch.expect("ADDED", "a").await;
    api.delete(&format!("{}/a", maps(&ns))).await.ok();
    watch.expect("DELETED", "a").await;
}

async fn a_watch_can_begin_in_the_past(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({}))).await.version();
    for n in ["1", "2"] {
        api.merge(&format!("{}/a", maps(&ns)), json!({"data": {"n": n}})).await.ok();
    }
    api.delete(&format!("{}/a", maps(&ns))).await.ok();
    let mut watch = api.watch(&format!("{}?resourceVersion={made}", maps(&ns))).await;
    assert_eq!(watch.expect("MODIFIED", "a").await["data"]["n"], "1");
    assert_eq!(watch.expect("MODIFIED", "a").await["data"]["n"], "2");
    watch.expect("DELETED", "a").await;
}

async fn an_object_that_stops_matching_is_deleted_to_the_watcher(api: Target) {
    let ns = api.namespace().await;
    let from = api.get(&maps(&ns)).await.version();
    let mut watch = api.watch(&format!("{}?resourceVersion={from}&labelSelector=on%3Dyes", maps(&ns))).await;
    api.post(&maps(&ns), labelled("a", json!({}))).await.created();
    let on = api.merge(&format!("{}/a", maps(&ns)), json!({"metadata": {"labels": {"on": "yes"}}})).await;
    api.merge(&format!("{}/a", maps(&ns)), json!({"data": {"k": "v"}})).await.ok();
    let off = api.merge(&format!("{}/a", maps(&ns)), json!({"metadata": {"labels": {"on": "no"}}})).await;
    api.merge(&format!("{}/a", maps(&ns)), json!({"data": {"k": "unseen"}})).await.ok();
    api.merge(&format!("{}/a", maps(&ns)), json!({"metadata": {"labels": {"on": "yes"}}})).await.ok();
    assert_eq!(watch.expect("ADDED", "a").await, on.body);
    watch.expect("MODIFIED", "a").await;
    let gone = watch.expect("DELETED", "a").await;
    // It shows what matched last, with the version of the change.
    assert_eq!((&gone["metadata"]["labels"]["on"], &gone["data"]["k"]), (&json!("yes"), &json!("v")));
    assert_eq!(version(&gone), off.version());
    assert_eq!(watch.expect("ADDED", "a").await["data"]["k"], "unseen");
}

async fn a_watch_of_one_name_sees_only_that(api: Target) {
    let ns = api.namespace().await;
    let from = api.get(&maps(&ns)).await.version();
    let path = format!("{}?resourceVersion={from}&fieldSelector=metadata.name%3Db", maps(&ns));
    let mut watch = api.watch(&path).await;
    for name in ["a", "b", "c"] {
        api.post(&maps(&ns), map(name, json!({}))).await.created();
    }
    api.delete(&format!("{}/b", maps(&ns))).await.ok();
    watch.expect("ADDED", "b").await;
    watch.expect("DELETED", "b").await;
}

async fn a_watch_of_a_namespace_sees_only_that(api: Target) {
    let ns = api.namespace().await;
    let from = api.get(&maps(&ns)).await.version();
    let mut watch = api.watch(&format!("{}?resourceVersion={from}", maps(&ns))).await;
    let elsewhere = api.post(&maps("default"), map(&ns, json!({}))).await;
    elsewhere.created();
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    watch.expect("ADDED", "a").await;
    api.delete(&format!("{}/{ns}", maps("default"))).await.ok();
}

async fn a_watch_of_everything_sees_all_namespaces(api: Target) {
    let ns = api.namespace().await;
    let from = api.get(&maps(&ns)).await.version();
    let path = format!("/api/v1/configmaps?resourceVersion={from}&labelSelector=of%3D{ns}");
    let mut watch = api.watch(&path).await;
    api.post(&maps("default"), labelled(&ns, json!({"of": ns}))).await.created();
    api.post(&maps(&ns), labelled("a", json!({"of": ns}))).await.created();
    assert_eq!(watch.expect("ADDED", &ns).await["metadata"]["namespace"], "default");
    assert_eq!(watch.expect("ADDED", "a").await["metadata"]["namespace"], ns.as_str());
    api.delete(&format!("{}/{ns}", maps("default"))).await.ok();
}

const INITIAL: &str = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// Whether the server can stream what is there: a real one can't on an etcd before 3.4.31, which Debian has.
async fn streams(api: &Target) -> bool {
    let first = api.watch(&format!("{}?{INITIAL}", maps("default"))).await.next().await;
    let (kind, object) = first.expect("something is said");
    let old = "a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled";
    let cannot = kind == "ERROR" && object["message"] == old;
    assert!(!cannot || api.real, "{object:#}");
    !cannot
}

async fn initial_events_end_with_a_bookmark(api: Target) {
    if !streams(&api).await {
        return;
    }
    let ns = api.namespace().await;
    for name in ["a", "b"] {
        api.post(&maps(&ns), map(name, json!({}))).await.created();
    }
    let newest = api.get(&maps(&ns)).await.version();
    let mut watch = api.watch(&format!("{}?{INITIAL}", maps(&ns))).await;
    watch.expect("ADDED", "a").await;
    watch.expect("ADDED", "b").await;
    let end = watch.expect("BOOKMARK", "").await;
    assert_eq!(end["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!((&end["kind"], &end["apiVersion"]), (&json!("ConfigMap"), &json!("v1")));
    let number = |text: String| text.parse::<u64>().unwrap_or_default();
    assert!(number(version(&end)) >= number(newest));
    api.post(&maps(&ns), map("c", json!({}))).await.created();
    watch.expect("ADDED", "c").await;
}

async fn initial_events_of_a_selector_end_too(api: Target) {
    if !streams(&api).await {
        return;
    }
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let mut watch = api.watch(&format!("{}?{INITIAL}&labelSelector=none", maps(&ns))).await;
    let end = watch.expect("BOOKMARK", "").await;
    assert_eq!(end["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

async fn without_initial_events_only_what_follows_comes(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let path = format!("{}?sendInitialEvents=false&resourceVersionMatch=NotOlderThan", maps(&ns));
    let mut watch = api.watch(&path).await;
    api.post(&maps(&ns), map("b", json!({}))).await.created();
    watch.expect("ADDED", "b").await;
}

async fn initial_events_need_a_match(api: Target) {
    let answer = api.watch(&format!("{}?sendInitialEvents=true", maps("default"))).await.refusal().await;
    answer.refused(422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
}

async fn initial_events_are_for_watches_only(api: Target) {
    let answer = api.get(&format!("{}?{INITIAL}", maps("default"))).await;
    answer.refused_with(
        422,
        "Invalid",
        "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
    );
}

async fn a_watch_ends_after_its_seconds(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let since = std::time::Instant::now();
    let mut watch = api.watch(&format!("{}?timeoutSeconds=1", maps(&ns))).await;
    watch.expect("ADDED", "a").await;
    assert!(watch.next().await.is_none(), "it ends cleanly");
    let took = since.elapsed().as_secs_f32();
    assert!((0.9..15.0).contains(&took), "{took} s");
}

async fn a_forgotten_version_is_gone(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    // A real server remembers nothing of a kind from before it was served.
    kind.with_spec(object(json!({}))).await;
    let mut watch = api.watch(&format!("{}?resourceVersion=1", kind.path(&ns))).await;
    let (kind, status) = watch.next().await.expect("something is said");
    assert_eq!(kind, "ERROR");
    assert_eq!(
        (&status["kind"], &status["code"], &status["reason"]),
        (&json!("Status"), &json!(410), &json!("Expired"))
    );
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("too old resource version: 1 ("), "{message}");
    assert!(watch.next().await.is_none(), "and that is all");
}

async fn a_version_to_watch_from_must_be_a_number(api: Target) {
    let answer = api.watch(&format!("{}?resourceVersion=x", maps("default"))).await.refusal().await;
    answer.refused(
        500,
        "",
        "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax",
    );
}

async fn a_deleted_object_has_the_version_of_its_deletion(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({}))).await.version();
    let mut watch = api.watch(&format!("{}?resourceVersion={made}", maps(&ns))).await;
    api.delete(&format!("{}/a", maps(&ns))).await.ok();
    let gone = watch.expect("DELETED", "a").await;
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    assert!(number(&version(&gone)) > number(&made), "{gone:#}");
    let now = api.get(&maps(&ns)).await.version();
    assert!(number(&version(&gone)) <= number(&now));
}

async fn a_finalized_object_is_modified_and_then_deleted(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["finalizers"] = json!(["example.com/wait"]);
    let made = api.post(&maps(&ns), body).await.version();
    let mut watch = api.watch(&format!("{}?resourceVersion={made}", maps(&ns))).await;
    api.delete(&format!("{}/a", maps(&ns))).await.ok();
    api.merge(&format!("{}/a", maps(&ns)), json!({"metadata": {"finalizers": null}})).await.ok();
    let going = watch.expect("MODIFIED", "a").await;
    assert!(going["metadata"]["deletionTimestamp"].is_string(), "{going:#}");
    let gone = watch.expect("DELETED", "a").await;
    assert!(gone["metadata"]["deletionTimestamp"].is_string(), "{gone:#}");
    // It shows what was last stored: with its finalizer.
    assert_eq!(gone["metadata"]["finalizers"], json!(["example.com/wait"]), "{gone:#}");
}

async fn a_write_of_nothing_is_no_event(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({"k": "v"}))).await;
    let mut watch = api.watch(&format!("{}?resourceVersion={}", maps(&ns), made.version())).await;
    let path = format!("{}/a", maps(&ns));
    let same = api.merge(&path, json!({"data": {"k": "v"}})).await;
    assert_eq!(same.version(), made.version());
    assert_eq!(api.put(&path, made.body.clone()).await.version(), made.version());
    api.merge(&path, json!({"data": {"k": "other"}})).await.ok();
    assert_eq!(watch.expect("MODIFIED", "a").await["data"]["k"], "other");
}

async fn two_watchers_see_the_same(api: Target) {
    let ns = api.namespace().await;
    let from = api.get(&maps(&ns)).await.version();
    let path = format!("{}?resourceVersion={from}", maps(&ns));
    let (mut one, mut two) = (api.watch(&path).await, api.watch(&path).await);
    for name in ["a", "b", "c"] {
        api.post(&maps(&ns), map(name, json!({}))).await.created();
    }
    for name in ["a", "b", "c"] {
        assert_eq!(one.expect("ADDED", name).await, two.expect("ADDED", name).await);
    }
}

async fn only_metadata_is_watched(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({"k": "v"}))).await.created();
    let accept = [("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")];
    let mut watch = api.watch_as(&maps(&ns), &accept).await;
    let object = watch.expect("ADDED", "a").await;
    assert_eq!(
        (&object["kind"], &object["apiVersion"]),
        (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(object["data"], Value::Null);
}

async fn tables_are_watched(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({"k": "v"}))).await.created();
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let mut watch = api.watch_as(&maps(&ns), &accept).await;
    let (kind, table) = watch.next().await.expect("it goes on");
    assert_eq!((kind.as_str(), &table["kind"]), ("ADDED", &json!("Table")));
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    api.merge(&format!("{}/a", maps(&ns)), json!({"data": {"l": "w"}})).await.ok();
    let (kind, table) = watch.next().await.expect("it goes on");
    assert_eq!(kind, "MODIFIED");
    // Columns come once.
    assert_eq!(table["columnDefinitions"].as_array().map_or(0, Vec::len), 0, "{table:#}");
    assert_eq!(table["rows"][0]["cells"][1], 2);
}

async fn custom_objects_are_watched_with_kind(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"size": {"type": "integer"}}))).await;
    let from = api.get(&kind.path(&ns)).await.version();
    let mut watch = api.watch(&format!("{}?resourceVersion={from}", kind.path(&ns))).await;
    let made = api.post(&kind.path(&ns), kind.object("a", json!({"size": 1}))).await;
    assert_eq!(watch.expect("ADDED", "a").await, made.body);
    api.delete(&format!("{}/a", kind.path(&ns))).await.ok();
    assert_eq!(watch.expect("DELETED", "a").await["kind"], "Widget");
}

async fn a_watch_of_a_broken_selector_is_refused(api: Target) {
    let answer = api.watch(&format!("{}?labelSelector=a%20b", maps("default"))).await.refusal().await;
    answer.refused_with(400, "BadRequest", "unable to parse requirement");
}

async fn a_watch_answers_in_chunks_of_json(api: Target) {
    let ns = api.namespace().await;
    let watch = api.watch(&format!("{}?timeoutSeconds=1", maps(&ns))).await;
    assert_eq!(watch.head.status.as_u16(), 200);
    assert_eq!(watch.head.headers["content-type"], "application/json");
    let answer = api.send(Call::get(&maps(&ns)).query("watch", "true").query("timeoutSeconds", "1")).await;
    assert_eq!((answer.code, answer.text().as_str()), (200, ""));
}

/// The names that kube's watcher tells until its list is complete, and the next two after.
async fn seen_by_kube(api: &Target, config: kube::runtime::watcher::Config) -> Vec<String> {
    use futures_util::StreamExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::watcher::Event;
    let ns = api.namespace().await;
    for name in ["a", "b", "c"] {
        api.post(&maps(&ns), map(name, json!({}))).await.created();
    }
    let maps_of: kube::Api<ConfigMap> = kube::Api::namespaced(api.client.clone(), &ns);
    let mut events = std::pin::pin!(kube::runtime::watcher(maps_of, config));
    let mut seen = Vec::new();
    let patience = std::time::Duration::from_secs(30);
    while seen.len() < 7 {
        let event = tokio::time::timeout(patience, events.next()).await.expect("something happens");
        let name = |map: ConfigMap| map.metadata.name.unwrap_or_default();
        match event.expect("it goes on").expect("it is no error") {
            Event::Init => seen.push("init".to_owned()),
            Event::InitApply(map) => seen.push(name(map)),
            Event::InitDone => {
                seen.push("done".to_owned());
                api.post(&maps(&ns), map("d", json!({}))).await.created();
                api.delete(&format!("{}/a", maps(&ns))).await.ok();
            }
            Event::Apply(map) => seen.push(format!("+{}", name(map))),
            Event::Delete(map) => seen.push(format!("-{}", name(map))),
        }
    }
    seen
}

async fn kube_watches_with_a_streamed_list(api: Target) {
    if !streams(&api).await {
        return;
    }
    let config = kube::runtime::watcher::Config::default().streaming_lists();
    assert_eq!(seen_by_kube(&api, config).await, ["init", "a", "b", "c", "done", "+d", "-a"]);
}

async fn kube_watches_with_a_plain_list(api: Target) {
    let config = kube::runtime::watcher::Config::default().page_size(2);
    assert_eq!(seen_by_kube(&api, config).await, ["init", "a", "b", "c", "done", "+d", "-a"]);
}
