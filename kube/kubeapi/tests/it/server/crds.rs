//! CRDs bring kinds, and take them away.

use super::{api, until};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, Error};
use serde_json::json;

fn definition() -> CustomResourceDefinition {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
            "color": {"type": "string", "default": "red"}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}});
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}})
    };
    serde_json::from_value(json!({"metadata": {"name": "things.test.io"}, "spec": {
        "group": "test.io", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"]},
        "versions": [version("v1", true), version("v2", false)]}}))
    .unwrap()
}

pub(super) async fn establish(client: &Client) -> Api<CustomResourceDefinition> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &definition()).await.unwrap();
    await_condition(crds.clone(), "things.test.io", conditions::is_crd_established()).await.unwrap();
    crds
}

pub(super) fn things(client: &Client, version: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("test.io", version, "Thing"));
    Api::default_namespaced_with(client.clone(), &kind)
}

pub(super) fn thing(name: &str, spec: &serde_json::Value) -> DynamicObject {
    let value =
        json!({"apiVersion": "test.io/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(value).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_served_in_all_versions_and_its_schema_holds() {
    let (_api, client) = api().await;
    establish(&client).await;
    let v1 = things(&client, "v1");
    let made = v1.create(&PostParams::default(), &thing("a", &json!({"size": 2, "odd": 1}))).await.unwrap();
    assert_eq!(made.data["spec"], json!({"size": 2, "color": "red"}), "unknown fields go, defaults come");
    assert_eq!(made.metadata.generation, Some(1));
    let seen = things(&client, "v2").get("a").await.unwrap();
    assert_eq!(seen.types.unwrap().api_version, "test.io/v2");
    let Error::Api(refused) =
        v1.create(&PostParams::default(), &thing("b", &json!({"size": 0}))).await.unwrap_err()
    else {
        panic!("no Status");
    };
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    assert!(refused.message.contains("spec.size"), "{}", refused.message);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_by_itself() {
    let (_api, client) = api().await;
    establish(&client).await;
    let things = things(&client, "v1");
    things.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"size": 9}, "status": {"ready": true}}));
    let by_status = things.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(
        (&by_status.data["spec"]["size"], &by_status.data["status"]["ready"]),
        (&json!(1), &json!(true))
    );
    let by_object = things
        .patch(
            "a",
            &PatchParams::default(),
            &Patch::Merge(json!({"spec": {"size": 9}, "status": {"ready": false}})),
        )
        .await
        .unwrap();
    assert_eq!(
        (&by_object.data["spec"]["size"], &by_object.data["status"]["ready"]),
        (&json!(9), &json!(true))
    );
    assert_eq!(by_object.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_crd_takes_its_objects_with_it() {
    let (api, client) = api().await;
    let crds = establish(&client).await;
    let things = things(&client, "v1");
    things.create(&PostParams::default(), &thing("a", &json!({"size": 1}))).await.unwrap();
    crds.delete("things.test.io", &DeleteParams::default()).await.unwrap();
    until("the CRD is gone", async || crds.get_opt("things.test.io").await.unwrap().is_none()).await;
    until("its kind is no longer served", async || things.get("a").await.is_err()).await;
    let left = api.store().list("/test.io/", None, None, None).unwrap();
    assert!(left.objects.is_empty());
}
