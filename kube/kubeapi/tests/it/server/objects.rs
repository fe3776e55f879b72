//! Objects are created, read, changed and deleted.

use super::api;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;

fn map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(
        json!({"metadata": {"name": name, "labels": {"app": name}}, "data": {"key": value}}),
    )
    .unwrap()
}

fn reason(error: Error) -> (u16, String, String) {
    match error {
        Error::Api(status) => (status.code, status.reason, status.message),
        other => panic!("no Status: {other}"),
    }
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

#[tokio::test(start_paused = true)]
async fn an_object_is_created_read_replaced_and_deleted() {
    let (_api, client) = api().await;
    let maps = maps(&client);
    let made = maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    assert!(
        made.metadata.uid.is_some()
            && made.metadata.resource_version.is_some()
            && made.metadata.creation_timestamp.is_some()
    );
    assert_eq!(maps.get("a").await.unwrap(), made);
    let mut changed = made.clone();
    changed.data.as_mut().unwrap().insert("key".into(), "2".into());
    let replaced = maps.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_eq!(replaced.data.as_ref().unwrap()["key"], "2");
    assert!(replaced.metadata.resource_version > made.metadata.resource_version);
    // The state that it was made from is gone.
    let stale = maps.replace("a", &PostParams::default(), &changed).await.unwrap_err();
    assert_eq!(reason(stale), (409, "Conflict".into(), "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again".into()));
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let gone = maps.get("a").await.unwrap_err();
    assert_eq!(reason(gone), (404, "NotFound".into(), "configmaps \"a\" not found".into()));
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_once_and_needs_its_namespace() {
    let (_api, client) = api().await;
    let created = |client: &Client| maps(client);
    created(&client).create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let again = created(&client).create(&PostParams::default(), &map("a", "1")).await.unwrap_err();
    assert_eq!(reason(again), (409, "AlreadyExists".into(), "configmaps \"a\" already exists".into()));
    let elsewhere: Api<ConfigMap> = Api::namespaced(client, "nowhere");
    let nowhere = elsewhere.create(&PostParams::default(), &map("a", "1")).await.unwrap_err();
    assert_eq!(reason(nowhere), (404, "NotFound".into(), "namespaces \"nowhere\" not found".into()));
}

#[tokio::test(start_paused = true)]
async fn patches_of_all_kinds_are_carried_out() {
    let (_api, client) = api().await;
    let maps = maps(&client);
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let params = PatchParams::default();
    let merged = maps.patch("a", &params, &Patch::Merge(json!({"data": {"two": "2"}}))).await.unwrap();
    assert_eq!(merged.data.unwrap().len(), 2);
    let patch = json!([{"op": "remove", "path": "/data/key"}]).to_string().into_bytes();
    let request = http::Request::patch("/api/v1/namespaces/default/configmaps/a");
    let request = request.header("content-type", "application/json-patch+json").body(patch).unwrap();
    let patched: ConfigMap = client.request(request).await.unwrap();
    assert_eq!(patched.data.unwrap().into_iter().collect::<Vec<_>>(), [("two".to_owned(), "2".to_owned())]);
    let strategic = maps
        .patch("a", &params, &Patch::Strategic(json!({"data": {"two": null, "three": "3"}})))
        .await
        .unwrap();
    assert_eq!(strategic.data.unwrap()["three"], "3");
    let apply =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"x": "y"}});
    let applied = maps.patch("b", &PatchParams::apply("test"), &Patch::Apply(&apply)).await.unwrap();
    assert_eq!(applied.data.unwrap()["x"], "y");
    assert_eq!(applied.metadata.managed_fields.unwrap()[0].manager.as_deref(), Some("test"));
}

#[tokio::test(start_paused = true)]
async fn lists_are_selected_and_come_in_pages_of_one_revision() {
    let (_api, client) = api().await;
    let maps = maps(&client);
    for name in ["a", "b", "c", "d", "e"] {
        maps.create(&PostParams::default(), &map(name, "1")).await.unwrap();
    }
    let names = |list: kube::core::ObjectList<ConfigMap>| -> Vec<String> {
        list.items.into_iter().map(|map| map.metadata.name.unwrap()).collect()
    };
    let selected = maps.list(&ListParams::default().labels("app in (b, d)")).await.unwrap();
    assert_eq!(names(selected), ["b", "d"]);
    let selected =
        maps.list(&ListParams::default().fields("metadata.name!=a").labels("app!=b")).await.unwrap();
    assert_eq!(names(selected), ["c", "d", "e"]);
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    let (token, revision) =
        (first.metadata.continue_.clone().unwrap(), first.metadata.resource_version.clone());
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let second = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(second.metadata.resource_version, revision);
    assert_eq!(names(second), ["c", "d"], "the list is of the moment when it began");
}

#[tokio::test(start_paused = true)]
async fn kinds_get_what_a_cluster_gives_them() {
    let (_api, client) = api().await;
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let secret =
        serde_json::from_value(json!({"metadata": {"generateName": "s-"}, "stringData": {"a": "b"}}))
            .unwrap();
    let secret = secrets.create(&PostParams::default(), &secret).await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("Opaque"));
    assert_eq!(secret.data.unwrap()["a"].0, b"b");
    assert!(secret.metadata.name.unwrap().starts_with("s-"));
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = json!({"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let service =
        services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let spec = service.spec.unwrap();
    assert!(spec.cluster_ip.unwrap().starts_with("10.96."));
    assert!((30_000..32_768).contains(&spec.ports.unwrap()[0].node_port.unwrap()));
    let namespaces: Api<Namespace> = Api::all(client);
    let namespace = namespaces.get("default").await.unwrap();
    assert_eq!(namespace.status.unwrap().phase.as_deref(), Some("Active"));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_while_it_goes_gives_back_what_it_had() {
    let (_api, client) = api().await;
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let service = |name: &str, finalizers: &[&str]| -> Service {
        let spec = json!({"type": "NodePort", "clusterIP": "10.96.0.77", "ports": [{"port": 80, "nodePort": 30077}]});
        serde_json::from_value(json!({"metadata": {"name": name, "finalizers": finalizers}, "spec": spec}))
            .unwrap()
    };
    let post = PostParams::default();
    services.create(&post, &service("old", &["test.io/wait"])).await.unwrap();
    services.delete("old", &DeleteParams::default()).await.unwrap();
    // With its last finalizer goes its address, in one request.
    let mut last = services.get("old").await.unwrap();
    last.metadata.finalizers = None;
    let plain = json!({"type": "ExternalName", "externalName": "example.com", "clusterIP": ""});
    last.spec = Some(serde_json::from_value(plain).unwrap());
    services.replace("old", &post, &last).await.unwrap();
    assert!(services.get_opt("old").await.unwrap().is_none());
    let again = services.create(&post, &service("new", &[])).await;
    assert!(again.is_ok(), "{again:?}");
}
