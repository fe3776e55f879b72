//! Discovery, versions, health, OpenAPI and tables: what a client learns first.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fixtures::{CRDS, Kind, container, core, deployment, grouped, map, maps, object};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    the_core_versions_are_listed,
    the_groups_are_listed,
    a_group_says_its_versions,
    the_core_resources_are_listed,
    the_resources_of_a_group_are_listed,
    an_unknown_group_is_not_found,
    subresources_are_in_the_list,
    discovery_comes_aggregated,
    aggregated_discovery_has_an_etag,
    a_new_kind_is_in_aggregated_discovery,
    the_version_is_told,
    health_is_told,
    health_is_told_verbosely,
    the_paths_are_listed,
    openapi_lists_its_documents,
    openapi_describes_a_group,
    openapi_knows_keys_and_strategies,
    openapi_describes_custom_kinds,
    openapi_can_be_cached,
    tables_of_config_maps,
    tables_of_deployments,
    tables_of_services,
    tables_of_namespaces,
    tables_of_kinds,
    a_table_of_one_object,
    a_table_can_hold_whole_objects,
    a_table_can_hold_nothing,
    an_empty_table_has_columns,
    a_table_pages,
    kube_discovers,
}

async fn the_core_versions_are_listed(api: Target) {
    let answer = api.get("/api").await;
    answer.ok();
    answer.has("/kind", "APIVersions").has("/versions", json!(["v1"]));
    assert!(answer.at("/serverAddressByClientCIDRs/0/serverAddress").is_string());
}

async fn the_groups_are_listed(api: Target) {
    let answer = api.get("/apis").await;
    answer.ok();
    answer.has("/kind", "APIGroupList").has("/apiVersion", "v1");
    let names: Vec<_> =
        answer.at("/groups").as_array().into_iter().flatten().map(|group| group["name"].clone()).collect();
    for name in [
        "apps",
        "batch",
        "autoscaling",
        "policy",
        "events.k8s.io",
        "discovery.k8s.io",
        "coordination.k8s.io",
        "networking.k8s.io",
        "rbac.authorization.k8s.io",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "admissionregistration.k8s.io",
        "apiregistration.k8s.io",
    ] {
        assert!(names.contains(&json!(name)), "{name}: {names:?}");
    }
}

async fn a_group_says_its_versions(api: Target) {
    let answer = api.get("/apis/apps").await;
    assert_eq!(
        answer.ok(),
        json!({
            "kind": "APIGroup", "apiVersion": "v1", "name": "apps",
            "versions": [{"groupVersion": "apps/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
        })
    );
}

fn resource(list: &Value, name: &str) -> Value {
    let resources = list["resources"].as_array().cloned().unwrap_or_default();
    resources.into_iter().find(|resource| resource["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Without what may differ from server to server.
fn stripped(mut resource: Value) -> Value {
    if let Some(map) = resource.as_object_mut() {
        map.remove("storageVersionHash");
    }
    resource
}

async fn the_core_resources_are_listed(api: Target) {
    let list = api.get("/api/v1").await.ok();
    assert_eq!((&list["kind"], &list["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    assert_eq!(
        stripped(resource(&list, "configmaps")),
        json!({
            "name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"], "shortNames": ["cm"],
        })
    );
    assert_eq!(
        stripped(resource(&list, "namespaces")),
        json!({
            "name": "namespaces", "singularName": "namespace", "namespaced": false, "kind": "Namespace",
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"], "shortNames": ["ns"],
        })
    );
    for name in ["secrets", "services", "serviceaccounts", "events", "endpoints", "pods", "nodes"] {
        resource(&list, name);
    }
}

async fn the_resources_of_a_group_are_listed(api: Target) {
    let list = api.get("/apis/apps/v1").await.ok();
    assert_eq!(
        stripped(resource(&list, "deployments")),
        json!({
            "name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"], "shortNames": ["deploy"], "categories": ["all"],
        })
    );
    let list = api.get("/apis/coordination.k8s.io/v1").await.ok();
    assert_eq!(resource(&list, "leases")["kind"], "Lease");
}

async fn an_unknown_group_is_not_found(api: Target) {
    for path in ["/apis/no.such.group", "/apis/apps/v9", "/api/v9"] {
        let answer = api.get(path).await;
        assert_eq!(answer.code, 404, "{answer}");
    }
}

async fn subresources_are_in_the_list(api: Target) {
    let list = api.get("/apis/apps/v1").await.ok();
    assert_eq!(
        resource(&list, "deployments/scale"),
        json!({
            "name": "deployments/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
        })
    );
    assert_eq!(resource(&list, "deployments/status")["verbs"], json!(["get", "patch", "update"]));
    let list = api.get("/api/v1").await.ok();
    assert_eq!(
        resource(&list, "serviceaccounts/token"),
        json!({
            "name": "serviceaccounts/token", "singularName": "", "namespaced": true, "group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest", "verbs": ["create"],
        })
    );
    assert_eq!(resource(&list, "namespaces/finalize")["verbs"], json!(["update"]));
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn discovery_comes_aggregated(api: Target) {
    for (path, group) in [("/api", ""), ("/apis", "apps")] {
        let answer = api.send(Call::get(path).accept(AGGREGATED)).await;
        answer.ok();
        answer.has("/kind", "APIGroupDiscoveryList").has("/apiVersion", "apidiscovery.k8s.io/v2");
        assert_eq!(answer.header("content-type"), AGGREGATED);
        let items = answer.at("/items").as_array().cloned().unwrap_or_default();
        let found = items.iter().find(|item| item["metadata"]["name"].as_str().unwrap_or_default() == group);
        let version = &found.unwrap_or_else(|| panic!("no {group:?}"))["versions"][0];
        assert_eq!((&version["version"], &version["freshness"]), (&json!("v1"), &json!("Current")));
    }
    let answer = api.send(Call::get("/apis").accept(AGGREGATED)).await;
    let items = answer.at("/items").as_array().cloned().unwrap_or_default();
    let apps = items.iter().find(|item| item["metadata"]["name"] == "apps").expect("apps are there");
    let resources = apps["versions"][0]["resources"].as_array().cloned().unwrap_or_default();
    let deployments =
        resources.iter().find(|resource| resource["resource"] == "deployments").expect("deployments too");
    // Empty means: as the group and version that this is listed under.
    assert_eq!(deployments["responseKind"], json!({"group": "", "version": "", "kind": "Deployment"}));
    assert_eq!(
        (&deployments["scope"], &deployments["singularResource"], &deployments["shortNames"]),
        (&json!("Namespaced"), &json!("deployment"), &json!(["deploy"]))
    );
    let names: Vec<_> = deployments["subresources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|sub| sub["subresource"].clone())
        .collect();
    assert_eq!(names, ["scale", "status"]);
}

async fn aggregated_discovery_has_an_etag(api: Target) {
    // Kinds come and go while other cases run: a few tries must meet a quiet moment.
    for _ in 0..50 {
        let answer = api.send(Call::get("/apis").accept(AGGREGATED)).await;
        let etag = answer.header("etag").to_owned();
        assert!(!etag.is_empty(), "no ETag");
        let again = api.send(Call::get("/apis").accept(AGGREGATED).header("if-none-match", &etag)).await;
        if again.code == 304 && again.bytes.is_empty() {
            return;
        }
    }
    panic!("never 304");
}

async fn a_new_kind_is_in_aggregated_discovery(api: Target) {
    let kind = Kind::of(&api);
    kind.with_spec(object(json!({}))).await;
    let found = |answer: &Answer| -> Option<Value> {
        let items = answer.at("/items");
        items.as_array()?.iter().find(|item| item["metadata"]["name"] == kind.group.as_str()).cloned()
    };
    let answer =
        api.until_answered(&Call::get("/apis").accept(AGGREGATED), |answer| found(answer).is_some()).await;
    let resource = &found(&answer).expect("it was just there")["versions"][0]["resources"][0];
    assert_eq!(
        (&resource["resource"], &resource["responseKind"]["kind"]),
        (&json!("widgets"), &json!("Widget"))
    );
}

async fn the_version_is_told(api: Target) {
    let answer = api.get("/version").await;
    answer.ok();
    answer.has("/major", "1").has("/minor", "36");
    assert!(answer.at("/gitVersion").as_str().unwrap_or_default().starts_with("v1.36."), "{answer}");
    for key in ["gitCommit", "platform", "goVersion", "buildDate", "compiler", "gitTreeState"] {
        assert!(answer.body[key].is_string(), "{key}: {answer}");
    }
}

async fn health_is_told(api: Target) {
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = api.get(path).await;
        assert_eq!((answer.code, answer.text().as_str()), (200, "ok"), "{path}");
        // Health is for everybody.
        let answer = api.send(Call::get(path).authorization("")).await;
        assert_eq!((answer.code, answer.text().as_str()), (200, "ok"), "{path}");
    }
}

async fn health_is_told_verbosely(api: Target) {
    let answer = api.get("/readyz?verbose").await;
    answer.ok();
    let text = answer.text();
    assert!(text.contains("[+]ping ok\n") && text.ends_with("readyz check passed\n"), "{text}");
}

async fn the_paths_are_listed(api: Target) {
    let answer = api.get("/").await;
    answer.ok();
    let paths = answer.at("/paths").as_array().cloned().unwrap_or_default();
    for path in
        ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/openapi/v3", "/version"]
    {
        assert!(paths.contains(&json!(path)), "{path}: {paths:?}");
    }
}

async fn openapi_lists_its_documents(api: Target) {
    let answer = api.get("/openapi/v3").await;
    answer.ok();
    for path in ["api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1"] {
        let url = answer.body["paths"][path]["serverRelativeURL"].as_str().unwrap_or_default().to_owned();
        assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")), "{path}: {url}");
    }
}

async fn openapi_describes_a_group(api: Target) {
    let answer = api.get("/openapi/v3/apis/apps/v1").await;
    answer.ok();
    assert!(answer.at("/openapi").as_str().unwrap_or_default().starts_with("3.0"), "OpenAPI 3");
    let schema = &answer.body["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "kind": "Deployment", "version": "v1"}])
    );
    assert_eq!(
        schema["properties"]["spec"]["allOf"],
        json!([{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}])
    );
    let path = &answer.body["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    assert_eq!(
        path["patch"]["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "kind": "Deployment", "version": "v1"})
    );
    assert_eq!(path["patch"]["x-kubernetes-action"], "patch");
}

async fn openapi_knows_keys_and_strategies(api: Target) {
    let answer = api.get("/openapi/v3/api/v1").await;
    answer.ok();
    let schemas = &answer.body["components"]["schemas"];
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(
        (&containers["x-kubernetes-list-type"], &containers["x-kubernetes-list-map-keys"]),
        (&json!("map"), &json!(["name"]))
    );
    assert_eq!(
        schemas["io.k8s.api.core.v1.ConfigMap"]["properties"]["data"]["additionalProperties"]["type"],
        "string"
    );
}

async fn openapi_describes_custom_kinds(api: Target) {
    let kind = Kind::of(&api);
    kind.with_spec(object(json!({"size": {"type": "integer", "description": "How large it is."}}))).await;
    let path = format!("/openapi/v3/apis/{}/v1", kind.group);
    let answer =
        api.until(&path, |answer| answer.code == 200 && answer.text().contains("How large it is.")).await;
    let schemas = answer.at("/components/schemas");
    let found = schemas
        .as_object()
        .into_iter()
        .flatten()
        .find(|(_, schema)| schema["x-kubernetes-group-version-kind"][0]["kind"] == "Widget");
    let (_, schema) = found.unwrap_or_else(|| panic!("no Widget: {answer}"));
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["type"], "integer");
    assert!(schema["properties"]["metadata"].is_object(), "{schema:#}");
}

async fn openapi_can_be_cached(api: Target) {
    let index = api.get("/openapi/v3").await.ok();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap_or_default().to_owned();
    let answer = api.get(&url).await;
    answer.ok();
    assert!(answer.header("cache-control").contains("immutable"), "{:?}", answer.headers);
    let etag = answer.header("etag").to_owned();
    let again = api.send(Call::get("/openapi/v3/apis/apps/v1").header("if-none-match", &etag)).await;
    assert_eq!(again.code, 304, "{again}");
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// The names of a table's columns, and its first row's cells.
async fn table(api: &Target, path: &str) -> (Vec<String>, Vec<Value>) {
    let answer = api.send(Call::get(path).accept(TABLE)).await;
    answer.ok();
    answer.has("/kind", "Table").has("/apiVersion", "meta.k8s.io/v1");
    let columns = answer.at("/columnDefinitions").as_array().cloned().unwrap_or_default();
    let names = columns.iter().map(|column| column["name"].as_str().unwrap_or_default().to_owned()).collect();
    (names, answer.at("/rows/0/cells").as_array().cloned().unwrap_or_default())
}

async fn tables_of_config_maps(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({"k": "v", "l": "w"}))).await.created();
    let (columns, cells) = table(&api, &maps(&ns)).await;
    assert_eq!(columns, ["Name", "Data", "Age"]);
    assert_eq!(cells[..2], [json!("a"), json!(2)]);
    assert!(cells[2].as_str().unwrap_or_default().ends_with('s'), "{cells:?}");
}

async fn tables_of_deployments(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    api.post(&path, deployment("d", json!([container("c", "i:1"), container("e", "j:2")]))).await.created();
    let (columns, cells) = table(&api, &path).await;
    assert_eq!(
        columns,
        ["Name", "Ready", "Up-to-date", "Available", "Age", "Containers", "Images", "Selector"]
    );
    assert_eq!(cells[..4], [json!("d"), json!("0/1"), json!(0), json!(0)]);
    assert_eq!(cells[5..], [json!("c,e"), json!("i:1,j:2"), json!("app=d")]);
}

async fn tables_of_services(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "selector": {"app": "x"}, "ports": [{"port": 80}]}});
    api.post(&core(&ns, "services"), body).await.created();
    let (columns, cells) = table(&api, &core(&ns, "services")).await;
    assert_eq!(columns, ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"]);
    assert_eq!(cells[..5], ["s", "ClusterIP", "None", "<none>", "80/TCP"].map(|text| json!(text)));
    assert_eq!(cells[6], "app=x");
}

async fn tables_of_namespaces(api: Target) {
    let ns = api.namespace().await;
    let (columns, cells) = table(&api, &format!("/api/v1/namespaces/{ns}")).await;
    assert_eq!(columns, ["Name", "Status", "Age"]);
    assert_eq!(cells[..2], [json!(ns), json!("Active")]);
}

async fn tables_of_kinds(api: Target) {
    let kind = Kind::of(&api);
    kind.with_spec(object(json!({}))).await;
    let (columns, cells) = table(&api, &format!("{CRDS}/{}", kind.crd_name())).await;
    assert_eq!(columns, ["Name", "Created At"]);
    assert_eq!(cells[0], kind.crd_name());
}

async fn a_table_of_one_object(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({}))).await;
    let answer = api.send(Call::get(&format!("{}/a", maps(&ns))).accept(TABLE)).await;
    answer.has("/kind", "Table").has("/metadata/resourceVersion", made.version());
    answer.has("/rows/0/object/kind", "PartialObjectMetadata").has("/rows/0/object/metadata/name", "a");
    let column = answer.at("/columnDefinitions/0");
    assert_eq!(
        (&column["name"], &column["type"], &column["format"], &column["priority"]),
        (&json!("Name"), &json!("string"), &json!("name"), &json!(0))
    );
}

async fn a_table_can_hold_whole_objects(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({"k": "v"}))).await.created();
    let answer = api.send(Call::get(&format!("{}?includeObject=Object", maps(&ns))).accept(TABLE)).await;
    answer.has("/rows/0/object/data/k", "v").has("/rows/0/object/kind", "ConfigMap");
}

async fn a_table_can_hold_nothing(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({"k": "v"}))).await.created();
    let answer = api.send(Call::get(&format!("{}?includeObject=None", maps(&ns))).accept(TABLE)).await;
    answer.has("/rows/0/object", Value::Null).has("/rows/0/cells/0", "a");
}

async fn an_empty_table_has_columns(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(Call::get(&maps(&ns)).accept(TABLE)).await;
    answer.has("/rows", json!([])).has("/columnDefinitions/0/name", "Name");
}

async fn a_table_pages(api: Target) {
    let ns = api.namespace().await;
    for name in ["a", "b", "c"] {
        api.post(&maps(&ns), map(name, json!({}))).await.created();
    }
    let answer = api.send(Call::get(&format!("{}?limit=2", maps(&ns))).accept(TABLE)).await;
    assert_eq!(answer.at("/rows").as_array().map_or(0, Vec::len), 2);
    answer.has("/metadata/remainingItemCount", 1);
    assert!(answer.at("/metadata/continue").is_string());
}

async fn kube_discovers(api: Target) {
    use kube::discovery::{Scope, verbs};
    let group = kube::discovery::group(&api.client, "apps").await.expect("apps are discovered");
    let (resource, capabilities) = group.recommended_kind("Deployment").expect("Deployments are served");
    assert_eq!((resource.plural.as_str(), capabilities.scope.clone()), ("deployments", Scope::Namespaced));
    assert!(capabilities.supports_operation(verbs::WATCH));
    let version = api.client.apiserver_version().await.expect("it tells its version");
    assert_eq!(version.minor, "36");
}
