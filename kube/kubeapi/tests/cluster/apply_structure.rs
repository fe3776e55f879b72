//! Server-side apply of lists, keyed and not, of subresources and of custom kinds; recorded from a real server.

use serde_json::{Value, json};

use crate::fixtures::{Kind, container, deployment, grouped, object, with};
use crate::recording::Recording;
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    containers_are_owned_one_by_one,
    an_element_goes_with_its_last_owner,
    ports_are_keyed_by_number_and_protocol,
    a_default_in_a_key_is_filled_in,
    the_order_of_elements_follows_the_applier,
    two_appliers_of_one_list_keep_both,
    atomic_lists_are_owned_whole,
    atomic_maps_are_owned_whole,
    a_duplicate_in_a_keyed_list_is_refused,
    status_is_owned_by_subresource,
    scaling_is_owned_by_subresource,
    an_apply_resets_what_belongs_to_status,
    custom_objects_are_applied,
    custom_metadata_goes_with_its_last_owner,
    custom_lists_follow_their_types,
    custom_lists_of_maps_conflict_by_key,
    custom_unknown_parts_are_owned_by_field,
    a_custom_default_is_not_owned,
    an_apply_in_another_version_keeps_ownership,
    embedded_metadata_is_owned,
    an_apply_to_status_of_nothing_is_not_found,
}

/// The part of a Deployment that has to be there, around these containers.
fn containers(containers: Value) -> Value {
    deployment("d", containers)
}

/// Only containers: for an applier who adds to what another applied.
fn more_containers(containers: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"template": {"spec": {"containers": containers}}},
    })
}

async fn workload(api: &Target) -> String {
    format!("{}/d", grouped("apps/v1", &api.namespace().await, "deployments"))
}

async fn containers_are_owned_one_by_one(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &containers(json!([container("a", "i:1")])))).await;
    recording.send(Call::apply(&path, "bob", &more_containers(json!([container("b", "i:1")])))).await;
    recording.send(Call::apply(&path, "bob", &more_containers(json!([{"name": "a", "image": "i:2"}])))).await;
    recording.finish();
}

async fn an_element_goes_with_its_last_owner(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    recording
        .send(Call::apply(&path, "alice", &containers(json!([container("a", "i:1"), container("b", "i:1")]))))
        .await;
    recording
        .send(Call::apply(&path, "bob", &more_containers(json!([{"name": "b", "workingDir": "/x"}]))))
        .await;
    recording.send(Call::apply(&path, "alice", &containers(json!([container("a", "i:1")])))).await;
    recording.send(Call::apply(&path, "bob", &more_containers(json!([])))).await;
    recording.finish();
}

async fn ports_are_keyed_by_number_and_protocol(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    let ports = |ports: Value| json!([with(container("a", "i:1"), json!({"ports": ports}))]);
    let first = json!([{"containerPort": 53, "protocol": "TCP", "name": "tcp"}, {"containerPort": 53, "protocol": "UDP", "name": "udp"}]);
    recording.send(Call::apply(&path, "alice", &containers(ports(first)))).await;
    let second = json!([{"containerPort": 53, "protocol": "UDP", "name": "udp"}]);
    recording.send(Call::apply(&path, "alice", &containers(ports(second)))).await;
    recording.finish();
}

async fn a_default_in_a_key_is_filled_in(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    let ports = |port: Value| json!([with(container("a", "i:1"), json!({"ports": [port]}))]);
    recording
        .send(Call::apply(&path, "alice", &containers(ports(json!({"containerPort": 80, "name": "x"})))))
        .await;
    let said = json!({"containerPort": 80, "name": "x", "protocol": "TCP"});
    recording.send(Call::apply(&path, "alice", &containers(ports(said)))).await;
    recording.finish();
}

async fn the_order_of_elements_follows_the_applier(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    let list = |names: &[&str]| containers(names.iter().map(|name| container(name, "i:1")).collect());
    recording.send(Call::apply(&path, "alice", &list(&["a", "b", "c"]))).await;
    recording.send(Call::apply(&path, "alice", &list(&["c", "a", "b"]))).await;
    recording.send(Call::apply(&path, "alice", &list(&["b", "new", "c"]))).await;
    recording.finish();
}

async fn two_appliers_of_one_list_keep_both(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &containers(json!([container("m", "i:1")])))).await;
    recording
        .send(Call::apply(
            &path,
            "bob",
            &more_containers(json!([container("z", "i:1"), container("a", "i:1")])),
        ))
        .await;
    recording
        .send(Call::apply(&path, "alice", &containers(json!([container("n", "i:1"), container("m", "i:1")]))))
        .await;
    recording.finish();
}

async fn atomic_lists_are_owned_whole(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    let args = |args: Value| json!([with(container("a", "i:1"), json!({"args": args}))]);
    recording.send(Call::apply(&path, "alice", &containers(args(json!(["x", "y"]))))).await;
    let more = more_containers(json!([{"name": "a", "args": ["x", "z"]}]));
    recording.send(Call::apply(&path, "bob", &more)).await;
    recording.send(Call::apply(&path, "bob", &more).force()).await;
    recording.finish();
}

async fn atomic_maps_are_owned_whole(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &containers(json!([container("a", "i:1")])))).await;
    // A label selector is atomic: another one for it conflicts as a whole.
    let other = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "d", "more": "x"}}}});
    recording.send(Call::apply(&path, "bob", &other)).await;
    recording.finish();
}

async fn a_duplicate_in_a_keyed_list_is_refused(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    recording
        .send(Call::apply(&path, "alice", &containers(json!([container("a", "i:1"), container("a", "i:2")]))))
        .await;
    recording.finish();
}

async fn status_is_owned_by_subresource(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &containers(json!([container("a", "i:1")])))).await;
    let status = |replicas: u8| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": replicas, "observedGeneration": 1}});
    recording.send(Call::apply(&format!("{path}/status"), "controller", &status(1))).await;
    recording
        .send(
            Call::patch(&format!("{path}/status"), Patch::Merge, &json!({"status": {"replicas": 2}}))
                .query("fieldManager", "other"),
        )
        .await;
    recording.send(Call::apply(&format!("{path}/status"), "controller", &status(3))).await;
    recording.finish();
}

async fn scaling_is_owned_by_subresource(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &containers(json!([container("a", "i:1")])))).await;
    let scale = json!({"spec": {"replicas": 5}});
    recording
        .send(Call::patch(&format!("{path}/scale"), Patch::Merge, &scale).query("fieldManager", "scaler"))
        .await;
    recording.send(Call::get(&path)).await;
    recording.send(Call::apply(&path, "alice", &containers(json!([container("a", "i:1")])))).await;
    recording.finish();
}

async fn an_apply_resets_what_belongs_to_status(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    let body = with(containers(json!([container("a", "i:1")])), json!({"status": {"replicas": 7}}));
    recording.send(Call::apply(&path, "alice", &body)).await;
    recording.finish();
}

async fn custom_objects_are_applied(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"size": {"type": "integer"}, "colour": {"type": "string"}}))).await;
    let (path, mut recording) = (format!("{}/a", kind.path(&ns)), Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &kind.object("a", json!({"size": 1, "colour": "red"})))).await;
    recording.send(Call::apply(&path, "bob", &kind.object("a", json!({"size": 2})))).await;
    recording.send(Call::apply(&path, "bob", &kind.object("a", json!({"size": 2}))).force()).await;
    recording.send(Call::apply(&path, "alice", &kind.object("a", json!({})))).await;
    recording.finish();
}

async fn custom_metadata_goes_with_its_last_owner(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"size": {"type": "integer"}}))).await;
    let (path, mut recording) = (format!("{}/a", kind.path(&ns)), Recording::new(&api));
    let noted = |annotations: Value, labels: Value| {
        let mut object = kind.object("a", json!({"size": 1}));
        object["metadata"]["annotations"] = annotations;
        object["metadata"]["labels"] = labels;
        object
    };
    recording.send(Call::apply(&path, "alice", &noted(json!({"note": "1"}), json!({"app": "web"})))).await;
    recording.send(Call::apply(&path, "alice", &noted(json!({}), json!({"app": "web"})))).await;
    recording.send(Call::apply(&path, "alice", &kind.object("a", json!({"size": 1})))).await;
    recording.finish();
}

/// A kind with lists of every type.
fn lists() -> Value {
    let item = object(json!({"name": {"type": "string"}, "value": {"type": "string"}}));
    let keyed = with(item.clone(), json!({"required": ["name"]}));
    object(json!({
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": keyed},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "atomic": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
        "plain": {"type": "array", "items": {"type": "string"}},
        "whole": with(item, json!({"x-kubernetes-map-type": "atomic"})),
        "free": {"type": "object", "additionalProperties": {"type": "string"}},
    }))
}

async fn custom_lists_follow_their_types(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(lists()).await;
    let (path, mut recording) = (format!("{}/a", kind.path(&ns)), Recording::new(&api));
    let all = json!({
        "keyed": [{"name": "x", "value": "1"}], "set": ["p", "q"], "atomic": ["m"], "plain": ["o"],
        "whole": {"name": "n", "value": "v"}, "free": {"k": "v"},
    });
    recording.send(Call::apply(&path, "alice", &kind.object("a", all))).await;
    let more = json!({"keyed": [{"name": "y", "value": "2"}], "set": ["q", "r"], "free": {"l": "w"}});
    recording.send(Call::apply(&path, "bob", &kind.object("a", more))).await;
    for part in [json!({"atomic": ["m", "n"]}), json!({"plain": ["o", "p"]}), json!({"whole": {"name": "n"}})]
    {
        recording.send(Call::apply(&path, "carol", &kind.object("a", part))).await;
    }
    recording.send(Call::apply(&path, "alice", &kind.object("a", json!({"set": ["p"]})))).await;
    recording.finish();
}

async fn custom_lists_of_maps_conflict_by_key(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(lists()).await;
    let (path, mut recording) = (format!("{}/a", kind.path(&ns)), Recording::new(&api));
    let keyed = |list: Value| kind.object("a", json!({"keyed": list}));
    recording
        .send(Call::apply(
            &path,
            "alice",
            &keyed(json!([{"name": "x", "value": "1"}, {"name": "y", "value": "1"}])),
        ))
        .await;
    recording.send(Call::apply(&path, "bob", &keyed(json!([{"name": "y", "value": "2"}])))).await;
    recording
        .send(Call::apply(
            &path,
            "bob",
            &keyed(json!([{"name": "x", "value": "1"}, {"name": "x", "value": "3"}])),
        ))
        .await;
    recording.send(Call::apply(&path, "bob", &keyed(json!([{"value": "3"}])))).await;
    recording.finish();
}

async fn custom_unknown_parts_are_owned_by_field(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).await;
    let (path, mut recording) = (format!("{}/a", kind.path(&ns)), Recording::new(&api));
    recording
        .send(Call::apply(
            &path,
            "alice",
            &kind.object("a", json!({"deep": {"a": 1, "list": [1, {"b": 2}]}})),
        ))
        .await;
    recording.send(Call::apply(&path, "bob", &kind.object("a", json!({"deep": {"c": true}})))).await;
    recording.send(Call::apply(&path, "bob", &kind.object("a", json!({"deep": {"list": []}})))).await;
    recording.finish();
}

async fn a_custom_default_is_not_owned(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"size": {"type": "integer", "default": 3}, "colour": {"type": "string"}})))
        .await;
    let (path, mut recording) = (format!("{}/a", kind.path(&ns)), Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &kind.object("a", json!({"colour": "red"})))).await;
    recording.send(Call::apply(&path, "bob", &kind.object("a", json!({"size": 4})))).await;
    recording.send(Call::apply(&path, "bob", &kind.object("a", json!({})))).await;
    recording.finish();
}

async fn an_apply_in_another_version_keeps_ownership(api: Target) {
    use crate::fixtures::version;
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    let spec = object(json!({"size": {"type": "integer"}, "colour": {"type": "string"}}));
    kind.install(kind.crd_of(json!([version("v1", true, spec.clone()), version("v2", false, spec)]))).await;
    let mut recording = Recording::new(&api);
    let (one, two) = (format!("{}/a", kind.path(&ns)), format!("{}/a", kind.path_in("v2", &ns)));
    recording.send(Call::apply(&one, "alice", &kind.object("a", json!({"size": 1, "colour": "red"})))).await;
    recording.send(Call::apply(&two, "bob", &kind.object_in("v2", "a", json!({"size": 2})))).await;
    recording.send(Call::apply(&two, "alice", &kind.object_in("v2", "a", json!({"size": 3})))).await;
    recording.finish();
}

async fn embedded_metadata_is_owned(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    let mut body = containers(json!([container("a", "i:1")]));
    body["spec"]["template"]["metadata"]["annotations"] = json!({"note": "1"});
    recording.send(Call::apply(&path, "alice", &body)).await;
    let more = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"template": {"metadata": {"annotations": {"note": "2", "other": "3"}}}}});
    recording.send(Call::apply(&path, "bob", &more)).await;
    recording.finish();
}

async fn an_apply_to_status_of_nothing_is_not_found(api: Target) {
    let (path, mut recording) = (workload(&api).await, Recording::new(&api));
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "status": {"replicas": 1}});
    recording.send(Call::apply(&format!("{path}/status"), "alice", &body)).await.is(404);
    recording.finish();
}
