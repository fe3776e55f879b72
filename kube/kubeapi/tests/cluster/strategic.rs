//! Strategic merge patch, with answers recorded from a real server.

use serde_json::{Value, json};

use crate::fixtures::{container, core, deployment, grouped, map, maps, with};
use crate::recording::Recording;
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    containers_merge_by_name,
    a_new_container_goes_in_front,
    an_element_is_deleted_by_key,
    deleting_an_element_that_is_not_there,
    a_list_is_replaced_by_a_directive,
    a_map_is_replaced_by_a_directive,
    a_map_is_deleted_by_a_directive,
    ports_merge_by_number,
    environment_merges_by_name,
    a_null_removes_a_field,
    a_null_in_a_new_map_is_dropped,
    primitive_lists_merge,
    primitive_lists_without_strategy_are_replaced,
    primitives_are_deleted_from_a_list,
    the_order_of_elements_is_set,
    an_order_may_name_what_is_not_there,
    an_order_must_hold_what_is_patched,
    keys_are_retained,
    retained_keys_must_hold_what_is_patched,
    an_element_without_its_key_is_refused,
    an_unknown_directive_is_refused,
    volumes_switch_their_source,
    config_maps_merge_keys,
    service_ports_merge_by_port,
    tolerations_are_replaced,
    host_aliases_merge_by_ip,
    owner_references_merge_by_uid,
    finalizers_merge,
    conditions_merge_by_type,
    a_patch_of_nothing_keeps_the_version,
    a_value_of_the_wrong_type_is_refused,
    a_list_for_a_map_is_refused,
}

/// A Deployment of two containers, and its path.
async fn pair(api: &Target) -> String {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let a = with(
        container("a", "i:1"),
        json!({
            "args": ["x", "y"],
            "env": [{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "2"}],
            "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}, {"containerPort": 443, "name": "https", "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        }),
    );
    let mut body = deployment("d", json!([a, container("b", "i:1")]));
    body["metadata"]["labels"] = json!({"k": "v", "l": "w"});
    body["spec"]["template"]["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    api.post(&path, body).await.created();
    format!("{path}/d")
}

/// Patches the pair and records the answer.
async fn patched(api: Target, patches: &[Value]) {
    let path = pair(&api).await;
    let mut recording = Recording::new(&api);
    for patch in patches {
        recording.send(Call::patch(&path, Patch::Strategic, patch)).await;
    }
    recording.send(Call::get(&path)).await;
    recording.finish();
}

fn pod(spec: Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

async fn containers_merge_by_name(api: Target) {
    patched(api, &[pod(json!({"containers": [{"name": "b", "image": "i:2"}]}))]).await;
}

async fn a_new_container_goes_in_front(api: Target) {
    patched(api, &[pod(json!({"containers": [container("new", "i:9"), {"name": "a", "image": "i:3"}]}))])
        .await;
}

async fn an_element_is_deleted_by_key(api: Target) {
    patched(api, &[pod(json!({"containers": [{"name": "a", "$patch": "delete"}]}))]).await;
}

async fn deleting_an_element_that_is_not_there(api: Target) {
    patched(api, &[pod(json!({"containers": [{"name": "nothing", "$patch": "delete"}]}))]).await;
}

async fn a_list_is_replaced_by_a_directive(api: Target) {
    patched(api, &[pod(json!({"containers": [{"$patch": "replace"}, container("only", "i:7")]}))]).await;
}

async fn a_map_is_replaced_by_a_directive(api: Target) {
    patched(api, &[json!({"metadata": {"labels": {"$patch": "replace", "fresh": "1"}}})]).await;
}

async fn a_map_is_deleted_by_a_directive(api: Target) {
    patched(api, &[json!({"metadata": {"labels": {"$patch": "delete"}}})]).await;
}

async fn ports_merge_by_number(api: Target) {
    let ports = json!([{"containerPort": 80, "name": "web", "protocol": "TCP"}, {"containerPort": 8080, "name": "alt", "protocol": "TCP"}]);
    patched(api, &[pod(json!({"containers": [{"name": "a", "ports": ports}]}))]).await;
}

async fn environment_merges_by_name(api: Target) {
    let env = json!([{"name": "TWO", "value": "22"}, {"name": "THREE", "value": "3"}, {"name": "ONE", "$patch": "delete"}]);
    patched(api, &[pod(json!({"containers": [{"name": "a", "env": env}]}))]).await;
}

async fn a_null_removes_a_field(api: Target) {
    let resources = json!({"limits": {"cpu": null}});
    patched(api, &[pod(json!({"containers": [{"name": "a", "args": null, "resources": resources}]}))]).await;
}

async fn a_null_in_a_new_map_is_dropped(api: Target) {
    patched(api, &[json!({"metadata": {"annotations": {"a": null, "b": "1"}}})]).await;
}

async fn primitive_lists_merge(api: Target) {
    // The finalizers of a Deployment's metadata merge; `args` do not.
    patched(
        api,
        &[
            json!({"metadata": {"finalizers": ["e.x/a", "e.x/b"]}}),
            json!({"metadata": {"finalizers": ["e.x/c", "e.x/a"]}}),
        ],
    )
    .await;
}

async fn primitive_lists_without_strategy_are_replaced(api: Target) {
    patched(api, &[pod(json!({"containers": [{"name": "a", "args": ["z"]}]}))]).await;
}

async fn primitives_are_deleted_from_a_list(api: Target) {
    patched(
        api,
        &[
            json!({"metadata": {"finalizers": ["e.x/a", "e.x/b", "e.x/c"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["e.x/b", "e.x/nothing"]}}),
        ],
    )
    .await;
}

async fn the_order_of_elements_is_set(api: Target) {
    patched(
        api,
        &[pod(json!({
            "$setElementOrder/containers": [{"name": "b"}, {"name": "new"}, {"name": "a"}],
            "containers": [container("new", "i:5")],
        }))],
    )
    .await;
}

async fn an_order_may_name_what_is_not_there(api: Target) {
    patched(
        api,
        &[pod(json!({"$setElementOrder/containers": [{"name": "ghost"}, {"name": "b"}, {"name": "a"}]}))],
    )
    .await;
}

async fn an_order_must_hold_what_is_patched(api: Target) {
    patched(
        api,
        &[pod(json!({
            "$setElementOrder/containers": [{"name": "b"}],
            "containers": [{"name": "a", "image": "i:6"}],
        }))],
    )
    .await;
}

async fn keys_are_retained(api: Target) {
    patched(api, &[json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})]).await;
}

async fn retained_keys_must_hold_what_is_patched(api: Target) {
    let strategy = json!({"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": {"maxSurge": 1}});
    patched(api, &[json!({"spec": {"strategy": strategy}})]).await;
}

async fn an_element_without_its_key_is_refused(api: Target) {
    patched(api, &[pod(json!({"containers": [{"image": "i:2"}]}))]).await;
}

async fn an_unknown_directive_is_refused(api: Target) {
    patched(
        api,
        &[
            json!({"metadata": {"labels": {"$patch": "paint"}}}),
            pod(json!({"containers": [{"name": "a", "$patch": "paint"}]})),
        ],
    )
    .await;
}

async fn volumes_switch_their_source(api: Target) {
    let volume = json!({"name": "data", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c", "defaultMode": 420}});
    patched(api, &[pod(json!({"volumes": [volume]}))]).await;
}

async fn config_maps_merge_keys(api: Target) {
    let ns = api.namespace().await;
    let path = format!("{}/a", maps(&ns));
    api.post(&maps(&ns), map("a", json!({"a": "1", "b": "2"}))).await.created();
    let mut recording = Recording::new(&api);
    recording.send(Call::patch(&path, Patch::Strategic, &json!({"data": {"a": null, "c": "3"}}))).await;
    recording
        .send(Call::patch(&path, Patch::Strategic, &json!({"data": {"$patch": "replace", "d": "4"}})))
        .await;
    recording.send(Call::patch(&path, Patch::Strategic, &json!({"$patch": "delete"}))).await;
    recording.finish();
}

async fn service_ports_merge_by_port(api: Target) {
    let ns = api.namespace().await;
    let path = core(&ns, "services");
    let port =
        |name: &str, port: u16| json!({"name": name, "port": port, "protocol": "TCP", "targetPort": port});
    // Headless, so that no address is on the recording.
    let body = json!({"metadata": {"name": "s"}, "spec": {
        "clusterIP": "None", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
        "ports": [port("a", 80), port("b", 81)], "selector": {"app": "x"},
    }});
    api.post(&path, body).await.created();
    let path = format!("{path}/s");
    let mut recording = Recording::new(&api);
    recording
        .send(Call::patch(
            &path,
            Patch::Strategic,
            &json!({"spec": {"ports": [{"port": 81, "targetPort": 8081}, port("c", 82)]}}),
        ))
        .await;
    recording
        .send(Call::patch(
            &path,
            Patch::Strategic,
            &json!({"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}),
        ))
        .await;
    recording.send(Call::patch(&path, Patch::Strategic, &json!({"spec": {"selector": {"tier": "y"}}}))).await;
    recording.finish();
}

async fn tolerations_are_replaced(api: Target) {
    let toleration = |key: &str| json!({"key": key, "operator": "Exists"});
    patched(
        api,
        &[
            pod(json!({"tolerations": [toleration("a"), toleration("b")]})),
            pod(json!({"tolerations": [toleration("c")]})),
        ],
    )
    .await;
}

async fn host_aliases_merge_by_ip(api: Target) {
    patched(api, &[
        pod(json!({"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a", "b"]}]})),
        pod(json!({"hostAliases": [{"ip": "10.0.0.2", "hostnames": ["c"]}, {"ip": "10.0.0.1", "hostnames": ["d"]}]})),
    ])
    .await;
}

async fn owner_references_merge_by_uid(api: Target) {
    let owner = |uid: &str, name: &str| json!({"apiVersion": "example.com/v1", "kind": "Boss", "name": name, "uid": uid});
    patched(api, &[
        json!({"metadata": {"ownerReferences": [owner("u1", "a"), owner("u2", "b")]}}),
        json!({"metadata": {"ownerReferences": [{"uid": "u1", "name": "renamed"}, {"uid": "u2", "$patch": "delete"}]}}),
    ])
    .await;
}

async fn finalizers_merge(api: Target) {
    let ns = api.namespace().await;
    let path = format!("{}/a", maps(&ns));
    let mut body = map("a", json!({}));
    body["metadata"]["finalizers"] = json!(["e.x/a"]);
    api.post(&maps(&ns), body).await.created();
    let mut recording = Recording::new(&api);
    let order = json!(["e.x/b", "e.x/a"]);
    recording
        .send(Call::patch(
            &path,
            Patch::Strategic,
            &json!({"metadata": {"$setElementOrder/finalizers": order, "finalizers": ["e.x/b"]}}),
        ))
        .await;
    recording.send(Call::patch(&path, Patch::Strategic, &json!({"metadata": {"finalizers": null}}))).await;
    recording.finish();
}

async fn conditions_merge_by_type(api: Target) {
    let path = format!("{}/status", pair(&api).await);
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
    let mut recording = Recording::new(&api);
    for conditions in [
        json!([condition("Available", "True"), condition("Progressing", "True")]),
        json!([{"type": "Available", "status": "False"}]),
        json!([{"type": "Progressing", "$patch": "delete"}]),
    ] {
        let patch = json!({"status": {"conditions": conditions}});
        recording.send(Call::patch(&path, Patch::Strategic, &patch)).await;
    }
    recording.finish();
}

async fn a_patch_of_nothing_keeps_the_version(api: Target) {
    patched(api, &[json!({}), pod(json!({"containers": [{"name": "a", "image": "i:1"}]}))]).await;
}

async fn a_value_of_the_wrong_type_is_refused(api: Target) {
    patched(api, &[json!({"spec": {"replicas": "many"}})]).await;
}

async fn a_list_for_a_map_is_refused(api: Target) {
    patched(api, &[json!({"metadata": {"labels": ["a"]}}), pod(json!({"containers": {"name": "a"}}))]).await;
}
