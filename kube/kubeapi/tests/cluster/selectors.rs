//! Selectors: by label and by field.

use serde_json::json;

use crate::fixtures::{Kind, core, labelled, maps, object};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    labels_equal_and_unequal,
    labels_in_and_not_in_sets,
    labels_that_are_there_and_not,
    labels_compared_as_numbers,
    several_requirements_all_hold,
    spaces_in_selectors_do_not_matter,
    a_selector_without_value_wants_an_empty_one,
    broken_label_selectors_are_refused,
    label_values_of_selectors_are_checked,
    fields_of_metadata_select,
    an_unknown_field_is_refused,
    a_broken_field_selector_is_refused,
    secrets_are_selected_by_type,
    namespaces_are_selected_by_phase,
    events_are_selected_by_what_they_are_about,
    label_and_field_selectors_both_hold,
    a_collection_is_deleted_by_selector,
    selectable_fields_of_custom_kinds,
    other_fields_of_custom_kinds_are_refused,
}

/// Lists by a label selector.
async fn chosen(api: &Target, ns: &str, selector: &str) -> Vec<String> {
    api.send(Call::get(&maps(ns)).query("labelSelector", selector)).await.names()
}

async fn by_field(api: &Target, path: &str, selector: &str) -> Vec<String> {
    api.send(Call::get(path).query("fieldSelector", selector)).await.names()
}

/// Maps with various labels.
async fn shelf(api: &Target) -> String {
    let ns = api.namespace().await;
    for (name, labels) in [
        ("a", json!({"tier": "web", "size": "5"})),
        ("b", json!({"tier": "db", "size": "20"})),
        ("c", json!({"tier": "", "example.com/owner": "me"})),
        ("d", json!({})),
    ] {
        api.post(&maps(&ns), labelled(name, labels)).await.created();
    }
    ns
}

async fn labels_equal_and_unequal(api: Target) {
    let ns = shelf(&api).await;
    assert_eq!(chosen(&api, &ns, "tier=web").await, ["a"]);
    assert_eq!(chosen(&api, &ns, "tier==web").await, ["a"]);
    assert_eq!(chosen(&api, &ns, "tier!=web").await, ["b", "c", "d"]);
    assert_eq!(chosen(&api, &ns, "example.com/owner=me").await, ["c"]);
    assert_eq!(chosen(&api, &ns, "tier=nothing").await, [""; 0]);
}

async fn labels_in_and_not_in_sets(api: Target) {
    let ns = shelf(&api).await;
    assert_eq!(chosen(&api, &ns, "tier in (web,db)").await, ["a", "b"]);
    assert_eq!(chosen(&api, &ns, "tier notin (web,db)").await, ["c", "d"]);
    assert_eq!(chosen(&api, &ns, "tier in (web,)").await, ["a", "c"]);
}

async fn labels_that_are_there_and_not(api: Target) {
    let ns = shelf(&api).await;
    assert_eq!(chosen(&api, &ns, "tier").await, ["a", "b", "c"]);
    assert_eq!(chosen(&api, &ns, "!tier").await, ["d"]);
}

async fn labels_compared_as_numbers(api: Target) {
    let ns = shelf(&api).await;
    assert_eq!(chosen(&api, &ns, "size>5").await, ["b"]);
    assert_eq!(chosen(&api, &ns, "size<20").await, ["a"]);
}

async fn several_requirements_all_hold(api: Target) {
    let ns = shelf(&api).await;
    assert_eq!(chosen(&api, &ns, "tier,size!=5").await, ["b", "c"]);
    assert_eq!(chosen(&api, &ns, "tier in (web,db),size").await, ["a", "b"]);
    assert_eq!(chosen(&api, &ns, "tier=web,tier=db").await, [""; 0]);
}

async fn spaces_in_selectors_do_not_matter(api: Target) {
    let ns = shelf(&api).await;
    assert_eq!(chosen(&api, &ns, " tier  in ( web , db ) , size = 20 ").await, ["b"]);
    assert_eq!(chosen(&api, &ns, "").await.len(), 4);
}

async fn a_selector_without_value_wants_an_empty_one(api: Target) {
    let ns = shelf(&api).await;
    assert_eq!(chosen(&api, &ns, "tier=").await, ["c"]);
    assert_eq!(chosen(&api, &ns, "tier!=").await, ["a", "b", "d"]);
}

async fn broken_label_selectors_are_refused(api: Target) {
    for (selector, message) in [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in (x", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
    ] {
        let answer = api.send(Call::get(&maps("default")).query("labelSelector", selector)).await;
        answer.refused(400, "BadRequest", message);
    }
}

async fn label_values_of_selectors_are_checked(api: Target) {
    let answer = api.send(Call::get(&maps("default")).query("labelSelector", "a=-x-")).await;
    answer.refused_with(
        400,
        "BadRequest",
        "unable to parse requirement: values[0][a]: Invalid value: \"-x-\": a valid label must be",
    );
    let answer = api.send(Call::get(&maps("default")).query("labelSelector", "a>x")).await;
    answer.refused(400, "BadRequest", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer");
}

async fn fields_of_metadata_select(api: Target) {
    let ns = shelf(&api).await;
    assert_eq!(by_field(&api, &maps(&ns), "metadata.name=b").await, ["b"]);
    assert_eq!(by_field(&api, &maps(&ns), "metadata.name!=b").await, ["a", "c", "d"]);
    assert_eq!(
        by_field(&api, "/api/v1/configmaps", &format!("metadata.namespace={ns},metadata.name==a")).await,
        ["a"]
    );
    assert_eq!(by_field(&api, &maps(&ns), "metadata.namespace=other").await, [""; 0]);
}

async fn an_unknown_field_is_refused(api: Target) {
    let answer = api.send(Call::get(&maps("default")).query("fieldSelector", "data.k=v")).await;
    answer.refused(
        400,
        "BadRequest",
        "\"data.k\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
    );
}

async fn a_broken_field_selector_is_refused(api: Target) {
    let answer = api.send(Call::get(&maps("default")).query("fieldSelector", "metadata.name")).await;
    answer.refused(400, "BadRequest", "invalid selector: 'metadata.name'; can't understand 'metadata.name'");
}

async fn secrets_are_selected_by_type(api: Target) {
    let ns = api.namespace().await;
    for (name, kind) in [("a", "Opaque"), ("b", "example.com/token")] {
        api.post(&core(&ns, "secrets"), json!({"metadata": {"name": name}, "type": kind})).await.created();
    }
    assert_eq!(by_field(&api, &core(&ns, "secrets"), "type=example.com/token").await, ["b"]);
}

async fn namespaces_are_selected_by_phase(api: Target) {
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces?labelSelector=kubernetes.io%2Fmetadata.name%3D{ns}");
    let active = api.send(Call::get(&path).query("fieldSelector", "status.phase=Active")).await;
    assert_eq!(active.names(), [ns]);
    let going = api.send(Call::get(&path).query("fieldSelector", "status.phase=Terminating")).await;
    assert_eq!(going.names(), [""; 0]);
}

async fn events_are_selected_by_what_they_are_about(api: Target) {
    let ns = api.namespace().await;
    for (name, about) in [("one", "a"), ("two", "b")] {
        let event = json!({
            "metadata": {"name": name}, "reason": "Tested", "type": "Normal", "message": "m",
            "involvedObject": {"kind": "ConfigMap", "namespace": ns, "name": about},
        });
        api.post(&core(&ns, "events"), event).await.created();
    }
    let path = core(&ns, "events");
    assert_eq!(by_field(&api, &path, "involvedObject.name=b").await, ["two"]);
    assert_eq!(
        by_field(&api, &path, "involvedObject.kind=ConfigMap,reason=Tested,type=Normal").await,
        ["one", "two"]
    );
    assert_eq!(by_field(&api, &path, "involvedObject.kind=Pod").await, [""; 0]);
}

async fn label_and_field_selectors_both_hold(api: Target) {
    let ns = shelf(&api).await;
    let call =
        Call::get(&maps(&ns)).query("labelSelector", "tier").query("fieldSelector", "metadata.name!=a");
    assert_eq!(api.send(call).await.names(), ["b", "c"]);
}

async fn a_collection_is_deleted_by_selector(api: Target) {
    let ns = shelf(&api).await;
    let answer = api.send(Call::delete(&maps(&ns)).query("labelSelector", "tier in (web,db)")).await;
    answer.ok();
    answer.has("/kind", "ConfigMapList");
    assert_eq!(answer.names(), ["a", "b"]);
    assert_eq!(api.get(&maps(&ns)).await.names(), ["c", "d"]);
}

async fn selectable_fields_of_custom_kinds(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    let mut crd = kind.crd(object(json!({"colour": {"type": "string"}, "size": {"type": "integer"}})));
    crd["spec"]["versions"][0]["selectableFields"] =
        json!([{"jsonPath": ".spec.colour"}, {"jsonPath": ".spec.size"}]);
    kind.install(crd).await;
    for (name, colour, size) in [("a", "red", 1), ("b", "blue", 2), ("c", "red", 2)] {
        let object = kind.object(name, json!({"colour": colour, "size": size}));
        api.post(&kind.path(&ns), object).await.created();
    }
    assert_eq!(by_field(&api, &kind.path(&ns), "spec.colour=red").await, ["a", "c"]);
    assert_eq!(by_field(&api, &kind.path(&ns), "spec.colour=red,spec.size=2").await, ["c"]);
    assert_eq!(by_field(&api, &kind.path(&ns), "spec.size!=2,metadata.name!=b").await, ["a"]);
}

async fn other_fields_of_custom_kinds_are_refused(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"colour": {"type": "string"}}))).await;
    api.post(&kind.path(&ns), kind.object("a", json!({}))).await.created();
    assert_eq!(by_field(&api, &kind.path(&ns), "metadata.name=a").await, ["a"]);
    let answer = api.send(Call::get(&kind.path(&ns)).query("fieldSelector", "spec.colour=red")).await;
    answer.refused(400, "BadRequest", "field label not supported: spec.colour");
}
