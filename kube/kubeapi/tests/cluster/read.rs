//! Reading: get, list, pages, revisions.

use serde_json::{Value, json};

use crate::fixtures::{Kind, core, labelled, map, maps, object};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    a_missing_object_is_not_found,
    a_missing_object_of_a_group_is_not_found,
    an_unknown_resource_is_not_found,
    a_list_has_a_kind_and_a_version,
    an_empty_list_has_items,
    items_of_custom_lists_have_kinds,
    a_list_is_sorted_by_key,
    a_limited_list_continues_where_it_ended,
    pages_show_one_moment,
    an_object_deleted_meanwhile_is_still_on_its_page,
    with_a_selector_nobody_counts_what_remains,
    a_limit_that_is_not_reached_does_not_continue,
    a_broken_continue_token_is_refused,
    continue_and_resource_version_exclude_each_other,
    a_list_can_be_of_an_exact_version,
    a_list_can_be_no_older_than_a_version,
    a_match_needs_a_version,
    an_unknown_match_is_refused,
    an_exact_match_of_zero_is_refused,
    a_version_of_the_future_is_too_large,
    a_version_must_be_a_number,
    a_limit_must_be_a_number,
    only_metadata_of_one_object,
    only_metadata_of_a_list,
    an_unknown_accept_is_refused,
    unknown_query_parameters_do_not_matter,
    a_get_from_the_cache_is_of_the_same_object,
    a_namespaced_list_shows_only_its_namespace,
    a_list_of_a_missing_namespace_is_empty,
    a_name_and_a_list_differ_by_one_segment,
    kube_pages_through_everything,
}

async fn a_missing_object_is_not_found(api: Target) {
    let ns = api.namespace().await;
    let answer = api.get(&format!("{}/nothing", maps(&ns))).await;
    answer.refused(404, "NotFound", "configmaps \"nothing\" not found");
    assert_eq!(
        answer.body,
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "configmaps \"nothing\" not found", "reason": "NotFound",
            "details": {"name": "nothing", "kind": "configmaps"}, "code": 404,
        })
    );
}

async fn a_missing_object_of_a_group_is_not_found(api: Target) {
    let answer = api.get("/apis/apps/v1/namespaces/default/deployments/nothing").await;
    answer.refused(404, "NotFound", "deployments.apps \"nothing\" not found");
    answer.has("/details", json!({"name": "nothing", "group": "apps", "kind": "deployments"}));
}

async fn an_unknown_resource_is_not_found(api: Target) {
    let text = "the server could not find the requested resource";
    for path in ["/api/v1/nonsense", "/apis/apps/v1/namespaces/default/nonsense"] {
        api.get(path).await.refused(404, "NotFound", text).has("/details", json!({}));
    }
    // A group that is not there is not even a Status.
    let answer = api.get("/apis/no.such.group/v1/things").await;
    assert_eq!((answer.code, answer.text().as_str()), (404, "404 page not found\n"));
}

async fn a_list_has_a_kind_and_a_version(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({"k": "v"}))).await;
    let list = api.get(&maps(&ns)).await;
    list.ok();
    list.has("/kind", "ConfigMapList").has("/apiVersion", "v1");
    assert_eq!(list.names(), ["a"]);
    // Items of built-in lists come without kind and version.
    list.has("/items/0/kind", Value::Null).has("/items/0/apiVersion", Value::Null);
    list.has("/items/0/metadata/uid", made.at("/metadata/uid")).has("/items/0/data/k", "v");
    assert!(list.version().parse::<u64>().unwrap_or(0) >= made.version().parse::<u64>().unwrap_or(0));
    list.has("/metadata/continue", Value::Null).has("/metadata/remainingItemCount", Value::Null);
}

async fn an_empty_list_has_items(api: Target) {
    let ns = api.namespace().await;
    api.get(&maps(&ns)).await.has("/items", json!([]));
}

async fn items_of_custom_lists_have_kinds(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"size": {"type": "integer"}}))).await;
    api.post(&kind.path(&ns), kind.object("a", json!({"size": 1}))).await.created();
    let list = api.get(&kind.path(&ns)).await;
    list.has("/kind", "WidgetList").has("/apiVersion", format!("{}/v1", kind.group));
    list.has("/items/0/kind", "Widget").has("/items/0/apiVersion", format!("{}/v1", kind.group));
}

async fn a_list_is_sorted_by_key(api: Target) {
    let ns = api.namespace().await;
    let label = json!({"of": ns});
    let other = format!("{}-x", &ns[..ns.len().min(60)]);
    api.post("/api/v1/namespaces", json!({"metadata": {"name": other}})).await.created();
    api.post(&maps(&other), labelled("a", label.clone())).await.created();
    for name in ["c", "a", "b"] {
        api.post(&maps(&ns), labelled(name, label.clone())).await.created();
    }
    let list = api.get(&format!("/api/v1/configmaps?labelSelector=of%3D{ns}")).await;
    // By key, in which a slash ends the namespace: `x-y/…` comes before `x/…`.
    assert_eq!(list.names(), ["a", "a", "b", "c"]);
    list.has("/items/0/metadata/namespace", other.as_str());
}

/// Five maps, `a` to `e`.
async fn five(api: &Target) -> String {
    let ns = api.namespace().await;
    for name in ["a", "b", "c", "d", "e"] {
        api.post(&maps(&ns), labelled(name, json!({"of": "five"}))).await.created();
    }
    ns
}

fn next(api_path: &str, limit: usize, page: &Value) -> String {
    let token = page["metadata"]["continue"].as_str().unwrap_or_else(|| panic!("it ends: {page:#}"));
    format!("{api_path}?limit={limit}&continue={}", crate::target::escaped(token))
}

async fn a_limited_list_continues_where_it_ended(api: Target) {
    let ns = five(&api).await;
    let one = api.get(&format!("{}?limit=2", maps(&ns))).await;
    assert_eq!(one.names(), ["a", "b"]);
    one.has("/metadata/remainingItemCount", 3);
    let two = api.get(&next(&maps(&ns), 2, &one.body)).await;
    assert_eq!(two.names(), ["c", "d"]);
    two.has("/metadata/remainingItemCount", 1);
    let three = api.get(&next(&maps(&ns), 2, &two.body)).await;
    assert_eq!(three.names(), ["e"]);
    three.has("/metadata/continue", Value::Null).has("/metadata/remainingItemCount", Value::Null);
    assert_eq!([two.version(), three.version()], [one.version(), one.version()]);
}

async fn pages_show_one_moment(api: Target) {
    let ns = five(&api).await;
    let one = api.get(&format!("{}?limit=2", maps(&ns))).await;
    api.post(&maps(&ns), map("cc", json!({}))).await.created();
    api.merge(&format!("{}/d", maps(&ns)), json!({"data": {"later": "1"}})).await.ok();
    let rest = api.get(&next(&maps(&ns), 10, &one.body)).await;
    assert_eq!(rest.names(), ["c", "d", "e"]);
    rest.has("/items/1/data", Value::Null);
}

async fn an_object_deleted_meanwhile_is_still_on_its_page(api: Target) {
    let ns = five(&api).await;
    let one = api.get(&format!("{}?limit=2", maps(&ns))).await;
    api.delete(&format!("{}/d", maps(&ns))).await.ok();
    assert_eq!(api.get(&next(&maps(&ns), 10, &one.body)).await.names(), ["c", "d", "e"]);
}

async fn with_a_selector_nobody_counts_what_remains(api: Target) {
    let ns = five(&api).await;
    api.post(&maps(&ns), map("bb", json!({}))).await.created();
    let one = api.get(&format!("{}?limit=3&labelSelector=of%3Dfive", maps(&ns))).await;
    assert_eq!(one.names(), ["a", "b", "c"]);
    one.has("/metadata/remainingItemCount", Value::Null);
    let rest = api.get(&format!("{}&labelSelector=of%3Dfive", next(&maps(&ns), 3, &one.body))).await;
    assert_eq!(rest.names(), ["d", "e"]);
}

async fn a_limit_that_is_not_reached_does_not_continue(api: Target) {
    let ns = five(&api).await;
    let list = api.get(&format!("{}?limit=5", maps(&ns))).await;
    assert_eq!(list.names().len(), 5);
    list.has("/metadata/continue", Value::Null);
}

async fn a_broken_continue_token_is_refused(api: Target) {
    let ns = five(&api).await;
    let answer = api.get(&format!("{}?limit=2&continue=nonsense", maps(&ns))).await;
    answer.refused_with(400, "BadRequest", "continue key is not valid: ");
}

async fn continue_and_resource_version_exclude_each_other(api: Target) {
    let ns = five(&api).await;
    let one = api.get(&format!("{}?limit=2", maps(&ns))).await;
    let answer =
        api.get(&format!("{}&resourceVersion={}", next(&maps(&ns), 2, &one.body), one.version())).await;
    answer.refused_with(400, "BadRequest", "specifying resource version is not allowed when using continue");
}

async fn a_list_can_be_of_an_exact_version(api: Target) {
    let ns = five(&api).await;
    let then = api.get(&maps(&ns)).await.version();
    api.delete(&format!("{}/a", maps(&ns))).await.ok();
    api.post(&maps(&ns), map("f", json!({}))).await.created();
    let exact = format!("{}?resourceVersion={then}&resourceVersionMatch=Exact", maps(&ns));
    let list = api.get(&exact).await;
    assert_eq!(list.names(), ["a", "b", "c", "d", "e"]);
    assert_eq!(list.version(), then);
    let first = api.get(&format!("{exact}&limit=3")).await;
    assert_eq!(first.names(), ["a", "b", "c"]);
    assert_eq!(api.get(&next(&maps(&ns), 3, &first.body)).await.names(), ["d", "e"]);
}

async fn a_list_can_be_no_older_than_a_version(api: Target) {
    let ns = five(&api).await;
    let made = api.post(&maps(&ns), map("f", json!({}))).await.version();
    for more in ["", "&resourceVersionMatch=NotOlderThan"] {
        let list = api.get(&format!("{}?resourceVersion={made}{more}", maps(&ns))).await;
        assert_eq!(list.names().len(), 6);
    }
}

async fn a_match_needs_a_version(api: Target) {
    let answer = api.get(&format!("{}?resourceVersionMatch=Exact", maps("default"))).await;
    answer.refused(422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided");
}

async fn an_unknown_match_is_refused(api: Target) {
    let answer =
        api.get(&format!("{}?resourceVersion=1&resourceVersionMatch=Roughly", maps("default"))).await;
    answer.refused(422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Roughly\": supported values: \"Exact\", \"NotOlderThan\", \"\"");
}

async fn an_exact_match_of_zero_is_refused(api: Target) {
    let answer = api.get(&format!("{}?resourceVersion=0&resourceVersionMatch=Exact", maps("default"))).await;
    answer.refused(422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
}

async fn a_version_of_the_future_is_too_large(api: Target) {
    let answer = api.get(&format!("{}?resourceVersion=900000000000", maps("default"))).await;
    answer.refused_with(504, "Timeout", "Too large resource version: 900000000000, current: ");
    answer.has("/details/causes/0/reason", "ResourceVersionTooLarge");
    answer.has("/details/retryAfterSeconds", 1);
}

async fn a_version_must_be_a_number(api: Target) {
    let answer = api.get(&format!("{}?resourceVersion=abc", maps("default"))).await;
    answer.is(400);
    answer.refused_with(400, "BadRequest", "nvalid");
}

async fn a_limit_must_be_a_number(api: Target) {
    let answer = api.get(&format!("{}?limit=many", maps("default"))).await;
    answer.refused(400, "BadRequest", "strconv.ParseInt: parsing \"many\": invalid syntax");
}

const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

async fn only_metadata_of_one_object(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({"k": "v"}))).await;
    let answer = api.send(Call::get(&format!("{}/a", maps(&ns))).accept(PARTIAL)).await;
    let want = json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made.at("/metadata"),
    });
    assert_eq!(answer.ok(), want);
}

const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

async fn only_metadata_of_a_list(api: Target) {
    let ns = five(&api).await;
    let list = api.send(Call::get(&maps(&ns)).accept(PARTIAL_LIST)).await;
    list.ok();
    list.has("/kind", "PartialObjectMetadataList").has("/apiVersion", "meta.k8s.io/v1");
    assert_eq!(list.names().len(), 5);
    list.has("/items/0/metadata/labels/of", "five").has("/items/0/data", Value::Null);
}

async fn an_unknown_accept_is_refused(api: Target) {
    let answer = api.send(Call::get(&maps("default")).accept("text/html")).await;
    answer.refused(406, "NotAcceptable", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
}

async fn unknown_query_parameters_do_not_matter(api: Target) {
    api.get(&format!("{}?colour=blue&limit=1", maps("default"))).await.ok();
}

async fn a_get_from_the_cache_is_of_the_same_object(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({}))).await;
    let path = format!("{}/a?resourceVersion={}", maps(&ns), made.version());
    assert_eq!(api.get(&path).await.ok(), made.body);
}

async fn a_namespaced_list_shows_only_its_namespace(api: Target) {
    let ns = api.namespace().await;
    let other = format!("{}-x", &ns[..ns.len().min(60)]);
    api.post("/api/v1/namespaces", json!({"metadata": {"name": other}})).await.created();
    api.post(&maps(&ns), map("here", json!({}))).await.created();
    api.post(&maps(&other), map("there", json!({}))).await.created();
    assert_eq!(api.get(&maps(&ns)).await.names(), ["here"]);
    assert_eq!(api.get(&maps(&other)).await.names(), ["there"]);
}

async fn a_list_of_a_missing_namespace_is_empty(api: Target) {
    assert!(api.get(&maps("there-is-none")).await.names().is_empty());
}

async fn a_name_and_a_list_differ_by_one_segment(api: Target) {
    let ns = api.namespace().await;
    api.get(&format!("{}/", maps(&ns))).await.has("/kind", "ConfigMapList");
    api.get(&format!("/api/v1/namespaces/{ns}")).await.has("/kind", "Namespace");
    let answer = api.get(&format!("{}/a/b/c", maps(&ns))).await;
    answer.refused(404, "NotFound", "the server could not find the requested resource");
    let answer = api.get(&core(&ns, "namespaces")).await;
    assert_eq!(answer.code, 404, "{answer}");
}

async fn kube_pages_through_everything(api: Target) {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, ListParams};
    let ns = five(&api).await;
    let maps: Api<ConfigMap> = Api::namespaced(api.client.clone(), &ns);
    let (mut names, mut token) = (Vec::new(), None);
    loop {
        let mut parameters = ListParams::default().limit(2);
        parameters.continue_token = token;
        let page = maps.list(&parameters).await.expect("it can be listed");
        names.extend(page.items.into_iter().filter_map(|map| map.metadata.name));
        token = page.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
}
