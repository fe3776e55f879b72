//! Custom kinds: how kinds come, change, are served in versions, and go.

use serde_json::{Value, json};

use crate::fixtures::{CRDS, Kind, object, version, with};
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    a_new_kind_is_established_and_served,
    a_kind_is_in_discovery,
    names_are_filled_in,
    the_name_must_be_plural_and_group,
    a_kind_needs_a_storage_version,
    a_kind_has_one_storage_version,
    a_schema_is_required,
    names_are_in_lower_case,
    scopes_are_two,
    the_scope_stays,
    a_taken_name_is_not_accepted,
    cluster_scoped_kinds_have_no_namespace,
    objects_of_a_namespaced_kind_need_one,
    a_version_is_served_in_its_own_name,
    a_version_that_is_not_served_is_not_found,
    storage_versions_are_remembered,
    a_storage_version_may_not_be_dropped,
    unserved_versions_keep_their_objects,
    removing_a_kind_removes_its_objects,
    an_object_with_a_finalizer_holds_its_kind,
    conversion_by_webhook_needs_a_client_config,
    a_changed_schema_takes_effect,
    a_deprecated_version_warns,
    a_spec_needs_a_group_with_a_dot,
    protected_groups_need_approval,
    custom_objects_are_named_as_subdomains,
    custom_objects_are_found_under_every_version,
    kube_works_with_dynamic_objects,
}

/// A schema of one number.
fn size() -> Value {
    object(json!({"size": {"type": "integer"}}))
}

fn condition(crd: &Value, kind: &str) -> (String, String) {
    let conditions = crd["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|c| c["type"] == kind).unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

async fn a_new_kind_is_established_and_served(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    let made = api.post(CRDS, kind.crd(size())).await;
    made.created();
    made.has("/metadata/generation", 1).has("/spec/conversion/strategy", "None");
    kind.served().await;
    let crd = api.get(&kind.crd_path()).await.ok();
    assert_eq!(condition(&crd, "NamesAccepted"), ("True".to_owned(), "NoConflicts".to_owned()));
    assert_eq!(condition(&crd, "Established"), ("True".to_owned(), "InitialNamesAccepted".to_owned()));
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(crd["status"]["acceptedNames"]["kind"], "Widget");
    let answer = api.post(&kind.path(&ns), kind.object("a", json!({"size": 1}))).await;
    answer.created();
    answer.has("/metadata/generation", 1).has("/spec/size", 1);
}

async fn a_kind_is_in_discovery(api: Target) {
    let kind = Kind::of(&api);
    kind.with_spec(size()).await;
    let path = format!("/apis/{}/v1", kind.group);
    let list =
        api.until(&path, |answer| answer.code == 200 && answer.at("/resources/0/name") == "widgets").await;
    let resource = list.at("/resources/0");
    assert_eq!(resource["kind"], "Widget");
    assert_eq!(resource["namespaced"], true);
    assert_eq!(resource["singularName"], "widget");
    assert_eq!(
        resource["verbs"],
        json!(["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"])
    );
    let group = api.until(&format!("/apis/{}", kind.group), |answer| answer.code == 200).await;
    group.has("/kind", "APIGroup").has("/preferredVersion/version", "v1");
    let group_name = kind.group.clone();
    api.until("/apis", |answer| answer.text().contains(&group_name)).await;
}

async fn names_are_filled_in(api: Target) {
    let kind = Kind::of(&api);
    let mut crd = kind.crd(size());
    crd["spec"]["names"] = json!({"plural": "widgets", "kind": "Widget"});
    let made = api.post(CRDS, crd).await;
    made.created();
    made.has("/spec/names/singular", "widget").has("/spec/names/listKind", "WidgetList");
}

async fn refused(api: &Target, change: impl Fn(&mut Value), causes: &[&str]) {
    let mut crd = Kind::of(api).crd(size());
    change(&mut crd);
    let answer = api.post(CRDS, crd).await;
    answer.is(422);
    answer.has_causes(causes);
}

async fn the_name_must_be_plural_and_group(api: Target) {
    let group = Kind::of(&api).group;
    let want = format!(
        "FieldValueInvalid metadata.name: Invalid value: \"gadgets.{group}\": must be spec.names.plural+\".\"+spec.group"
    );
    refused(&api, |crd| crd["metadata"]["name"] = json!(format!("gadgets.{group}")), &[&want]).await;
}

async fn a_kind_needs_a_storage_version(api: Target) {
    let mut crd = Kind::of(&api).crd(size());
    crd["spec"]["versions"][0]["storage"] = json!(false);
    let answer = api.post(CRDS, crd).await;
    // A real server prints the versions as Go sees them.
    answer.refused_with(422, "Invalid", "must have exactly one version marked as storage version");
    answer.refused_with(
        422,
        "Invalid",
        "status.storedVersions: Invalid value: null: must have at least one stored version",
    );
}

async fn a_kind_has_one_storage_version(api: Target) {
    let mut crd = Kind::of(&api).crd(size());
    crd["spec"]["versions"] = json!([version("v1", true, size()), version("v2", true, size())]);
    let answer = api.post(CRDS, crd).await;
    answer.refused_with(422, "Invalid", "must have exactly one version marked as storage version");
}

async fn a_schema_is_required(api: Target) {
    let remove =
        |crd: &mut Value| drop(crd["spec"]["versions"][0].as_object_mut().expect("a map").remove("schema"));
    refused(&api, remove, &["FieldValueRequired spec.versions[0].schema.openAPIV3Schema: Required value"])
        .await;
}

async fn names_are_in_lower_case(api: Target) {
    let group = Kind::of(&api).group;
    let mut crd = Kind::of(&api).crd(size());
    crd["metadata"]["name"] = json!(format!("Widgets.{group}"));
    crd["spec"]["names"]["plural"] = json!("Widgets");
    let answer = api.post(CRDS, crd).await;
    answer.refused_with(422, "Invalid", "spec.names.plural: Invalid value: \"Widgets\": a DNS-1035 label must consist of lower case alphanumeric characters or '-'");
}

async fn scopes_are_two(api: Target) {
    refused(&api, |crd| crd["spec"]["scope"] = json!("Global"), &["FieldValueNotSupported spec.scope: Unsupported value: \"Global\": supported values: \"Cluster\", \"Namespaced\""]).await;
}

async fn the_scope_stays(api: Target) {
    let kind = Kind::of(&api);
    kind.with_spec(size()).await;
    let answer = api.merge(&kind.crd_path(), json!({"spec": {"scope": "Cluster"}})).await;
    answer.refused_with(422, "Invalid", "spec.scope: Invalid value: \"Cluster\": field is immutable");
    let answer = api.merge(&kind.crd_path(), json!({"spec": {"names": {"kind": "Gadget"}}})).await;
    answer.refused_with(422, "Invalid", "spec.names.kind: Invalid value: \"Gadget\": field is immutable");
}

async fn a_taken_name_is_not_accepted(api: Target) {
    let kind = Kind::of(&api);
    kind.with_spec(size()).await;
    let mut other = kind.crd(size());
    other["metadata"]["name"] = json!(format!("gadgets.{}", kind.group));
    other["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"});
    api.post(CRDS, other).await.created();
    let path = format!("{CRDS}/gadgets.{}", kind.group);
    let crd = api.until(&path, |crd| !condition(&crd.body, "NamesAccepted").0.is_empty()).await.body;
    assert_eq!(condition(&crd, "NamesAccepted"), ("False".to_owned(), "KindConflict".to_owned()));
    assert_eq!(condition(&crd, "Established"), ("False".to_owned(), "NotAccepted".to_owned()));
    api.delete(&kind.crd_path()).await.ok();
    api.until(&path, |crd| condition(&crd.body, "Established").0 == "True").await;
}

async fn cluster_scoped_kinds_have_no_namespace(api: Target) {
    let kind = Kind::of(&api);
    let mut crd = kind.crd(size());
    crd["spec"]["scope"] = json!("Cluster");
    kind.install(crd).await;
    let path = format!("/apis/{}/v1/widgets", kind.group);
    let made = api.post(&path, kind.object("a", json!({"size": 1}))).await;
    made.created();
    made.has("/metadata/namespace", Value::Null);
    let answer = api.get(&format!("{}/a", kind.path("default"))).await;
    assert_eq!(answer.code, 404, "{answer}");
    api.get(&format!("{path}/a")).await.ok();
}

async fn objects_of_a_namespaced_kind_need_one(api: Target) {
    let kind = Kind::of(&api);
    kind.with_spec(size()).await;
    let answer = api.post(&format!("/apis/{}/v1/widgets", kind.group), kind.object("a", json!({}))).await;
    assert!((400..500).contains(&answer.code), "{answer}");
    let answer = api.post(&kind.path("nowhere"), kind.object("a", json!({}))).await;
    answer.refused(404, "NotFound", "namespaces \"nowhere\" not found");
}

async fn two_versions(api: &Target) -> (String, Kind) {
    let (ns, kind) = (api.namespace().await, Kind::of(api));
    let versions = json!([
        version("v1", true, size()),
        version(
            "v2",
            false,
            object(json!({"size": {"type": "integer"}, "colour": {"type": "string", "default": "grey"}}))
        )
    ]);
    kind.install(kind.crd_of(versions)).await;
    (ns, kind)
}

async fn a_version_is_served_in_its_own_name(api: Target) {
    let (ns, kind) = two_versions(&api).await;
    let made = api.post(&kind.path(&ns), kind.object("a", json!({"size": 1}))).await;
    made.has("/apiVersion", format!("{}/v1", kind.group)).has("/spec", json!({"size": 1}));
    let other = api.get(&format!("{}/a", kind.path_in("v2", &ns))).await;
    other.has("/apiVersion", format!("{}/v2", kind.group)).has("/spec", json!({"size": 1}));
    // What the stored version does not know is lost, defaults too.
    let written = api.post(&kind.path_in("v2", &ns), kind.object_in("v2", "b", json!({"size": 2}))).await;
    written.has("/spec", json!({"size": 2}));
    assert_eq!(other.at("/metadata/uid"), made.at("/metadata/uid"));
    let list = api.get(&kind.path_in("v2", &ns)).await;
    list.has("/items/0/apiVersion", format!("{}/v2", kind.group));
    let group = api.until(&format!("/apis/{}", kind.group), |answer| answer.code == 200).await;
    group.has("/preferredVersion/version", "v2");
}

async fn a_version_that_is_not_served_is_not_found(api: Target) {
    let (ns, kind) = two_versions(&api).await;
    let patch = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
    api.patch(&kind.crd_path(), Patch::Json, patch).await.ok();
    let path = kind.path_in("v2", &ns);
    let answer = api.until(&path, |answer| answer.code == 404).await;
    assert_eq!(answer.text(), "404 page not found\n");
    api.get(&kind.path(&ns)).await.ok();
}

async fn storage_versions_are_remembered(api: Target) {
    let (_, kind) = two_versions(&api).await;
    let patch = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    let answer = api.patch(&kind.crd_path(), Patch::Json, patch).await;
    answer.ok();
    answer.has("/status/storedVersions", json!(["v1", "v2"]));
}

async fn a_storage_version_may_not_be_dropped(api: Target) {
    let (_, kind) = two_versions(&api).await;
    let patch = json!({"spec": {"versions": [version("v2", true, size())]}});
    let answer = api.merge(&kind.crd_path(), patch).await;
    answer.refused_with(422, "Invalid", "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions");
}

async fn unserved_versions_keep_their_objects(api: Target) {
    let (ns, kind) = two_versions(&api).await;
    api.post(&kind.path_in("v2", &ns), kind.object_in("v2", "a", json!({"size": 4, "colour": "red"})))
        .await
        .created();
    // The stored version knows no colour: reading in it prunes.
    api.get(&format!("{}/a", kind.path(&ns))).await.has("/spec/size", 4);
}

async fn removing_a_kind_removes_its_objects(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(size()).await;
    api.post(&kind.path(&ns), kind.object("a", json!({}))).await.created();
    api.delete(&kind.crd_path()).await.ok();
    api.until_gone(&kind.crd_path()).await;
    api.until(&kind.path(&ns), |answer| answer.code == 404).await;
    kind.with_spec(size()).await;
    assert!(api.get(&kind.path(&ns)).await.names().is_empty());
}

async fn an_object_with_a_finalizer_holds_its_kind(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(size()).await;
    let mut body = kind.object("a", json!({}));
    body["metadata"]["finalizers"] = json!(["example.com/wait"]);
    api.post(&kind.path(&ns), body).await.created();
    api.delete(&kind.crd_path()).await.ok();
    let crd = api.until(&kind.crd_path(), |crd| condition(&crd.body, "Terminating").0 == "True").await;
    crd.has("/metadata/finalizers", json!(["customresourcecleanup.apiextensions.k8s.io"]));
    let path = format!("{}/a", kind.path(&ns));
    api.until(&path, |object| object.at("/metadata/deletionTimestamp").is_string()).await;
    let answer = api.post(&kind.path(&ns), kind.object("late", json!({}))).await;
    answer.refused(403, "Forbidden", &format!("widgets.{} \"late\" is forbidden: create not allowed while custom resource definition is terminating", kind.group));
    api.merge(&path, json!({"metadata": {"finalizers": null}})).await.ok();
    api.until_gone(&kind.crd_path()).await;
}

async fn conversion_by_webhook_needs_a_client_config(api: Target) {
    let mut crd = Kind::of(&api).crd(size());
    crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let answer = api.post(CRDS, crd).await;
    answer.refused_with(422, "Invalid", "spec.conversion.webhookClientConfig: Required value");
}

async fn a_changed_schema_takes_effect(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(size()).await;
    let patch = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour", "value": {"type": "string"}}]);
    let answer = api.patch(&kind.crd_path(), Patch::Json, patch).await;
    answer.ok();
    answer.has("/metadata/generation", 2);
    let body = kind.object("a", json!({"colour": "red"}));
    let create = Call::post(&kind.path(&ns), &body).query("dryRun", "All");
    api.until_answered(&create, |answer| answer.at("/spec/colour") == "red").await;
}

async fn a_deprecated_version_warns(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    let old = with(version("v1alpha1", false, size()), json!({"deprecated": true}));
    let said = with(
        version("v1beta1", false, size()),
        json!({"deprecated": true, "deprecationWarning": "go to v1"}),
    );
    kind.install(kind.crd_of(json!([version("v1", true, size()), old, said]))).await;
    let answer = api.get(&kind.path_in("v1alpha1", &ns)).await;
    assert_eq!(
        answer.warnings(),
        [format!("299 - \"{0}/v1alpha1 Widget is deprecated; use {0}/v1 Widget\"", kind.group)]
    );
    assert_eq!(api.get(&kind.path_in("v1beta1", &ns)).await.warnings(), ["299 - \"go to v1\""]);
    assert!(api.get(&kind.path(&ns)).await.warnings().is_empty());
}

async fn a_spec_needs_a_group_with_a_dot(api: Target) {
    let mut crd = Kind::of(&api).crd(size());
    crd["spec"]["group"] = json!("nodot");
    crd["metadata"]["name"] = json!("widgets.nodot");
    let answer = api.post(CRDS, crd).await;
    answer.refused_with(
        422,
        "Invalid",
        "spec.group: Invalid value: \"nodot\": should be a domain with at least one dot",
    );
}

async fn protected_groups_need_approval(api: Target) {
    let group = format!("{}.k8s.io", api.label());
    let mut crd = Kind::of(&api).crd(size());
    crd["spec"]["group"] = json!(group);
    crd["metadata"]["name"] = json!(format!("widgets.{group}"));
    let answer = api.post(CRDS, crd).await;
    answer.refused_with(422, "Invalid", "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111");
}

async fn custom_objects_are_named_as_subdomains(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(size()).await;
    let answer = api.post(&kind.path(&ns), kind.object("Bad Name", json!({}))).await;
    answer.refused_with(422, "Invalid", &format!("Widget.{} \"Bad Name\" is invalid: metadata.name: Invalid value: \"Bad Name\": a lowercase RFC 1123 subdomain must consist of", kind.group));
    let answer = api.post(&kind.path(&ns), kind.object("a", json!({"size": "x"}))).await;
    answer.refused(422, "Invalid", &format!("Widget.{} \"a\" is invalid: spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"", kind.group));
    answer
        .has("/details/kind", "Widget")
        .has("/details/group", kind.group.as_str())
        .has("/details/name", "a");
}

async fn custom_objects_are_found_under_every_version(api: Target) {
    let (ns, kind) = two_versions(&api).await;
    let from = api.get(&kind.path_in("v2", &ns)).await.version();
    let mut watch = api.watch(&format!("{}?resourceVersion={from}", kind.path_in("v2", &ns))).await;
    api.post(&kind.path(&ns), kind.object("a", json!({"size": 1}))).await.created();
    let seen = watch.expect("ADDED", "a").await;
    assert_eq!(seen["apiVersion"], format!("{}/v2", kind.group));
    api.delete(&format!("{}/a", kind.path_in("v2", &ns))).await.ok();
    api.get(&format!("{}/a", kind.path(&ns))).await.is(404);
}

async fn kube_works_with_dynamic_objects(api: Target) {
    use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(size()).await;
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&kind.group, "v1", "Widget"));
    resource.plural = "widgets".to_owned();
    let widgets: Api<DynamicObject> = Api::namespaced_with(api.client.clone(), &ns, &resource);
    let wanted = DynamicObject::new("a", &resource).data(json!({"spec": {"size": 7}}));
    widgets.create(&PostParams::default(), &wanted).await.expect("it can be created");
    let list = widgets.list(&ListParams::default()).await.expect("it can be listed");
    assert_eq!(list.items[0].data["spec"]["size"], 7);
}
