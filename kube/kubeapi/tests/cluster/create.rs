//! Creating: what the server fills in, and what it refuses.

use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{CRDS, Kind, core, deployment, grouped, map, maps, object};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    a_created_object_comes_back_with_its_metadata,
    the_server_sets_what_only_it_may_set,
    a_name_can_be_had_once,
    generated_names_end_in_five_letters,
    a_generated_name_of_a_long_prefix_is_cut,
    an_object_needs_a_name,
    a_name_must_be_a_dns_subdomain,
    a_service_account_of_a_long_name_is_refused,
    the_namespace_of_body_and_path_must_be_the_same,
    a_namespace_must_exist,
    another_version_in_the_body_is_refused,
    another_kind_in_the_body_is_refused,
    a_body_without_kind_is_taken_for_a_builtin,
    a_custom_object_without_kind_is_refused,
    a_resource_version_may_not_be_given,
    a_named_path_takes_no_post,
    bad_label_keys_and_values_are_refused,
    bad_annotation_keys_are_refused,
    annotations_may_not_be_too_large,
    owners_must_be_whole,
    two_controllers_are_refused,
    finalizers_must_be_qualified_names,
    finalizers_of_built_in_kinds_need_a_domain,
    generation_starts_at_one_where_there_is_a_spec,
    status_is_dropped_on_create,
    strings_of_a_secret_become_data,
    a_secret_is_opaque_unless_said,
    a_tls_secret_needs_both_keys,
    a_docker_secret_must_be_json,
    keys_of_a_config_map_are_checked,
    a_key_is_text_or_binary_not_both,
    yaml_bodies_are_read,
    yaml_answers_are_given,
    an_empty_body_is_refused,
    a_field_of_another_type_is_refused,
    cluster_scoped_objects_forget_a_namespace,
    kube_creates_and_reads_typed_objects,
}

async fn a_created_object_comes_back_with_its_metadata(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&maps(&ns), map("a", json!({"k": "v"}))).await;
    answer.created();
    answer.has("/kind", "ConfigMap").has("/apiVersion", "v1").has("/data/k", "v");
    answer.has("/metadata/name", "a").has("/metadata/namespace", ns.as_str());
    assert_eq!(answer.header("content-type"), "application/json");
    let uid = answer.at("/metadata/uid").as_str().unwrap_or_default().to_owned();
    assert_eq!(uid.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{uid}");
    assert!(answer.version().parse::<u64>().is_ok_and(|version| version > 0));
    let created = answer.at("/metadata/creationTimestamp").as_str().unwrap_or_default().to_owned();
    assert!(created.len() == 20 && created.ends_with('Z'), "{created}");
    assert_eq!(answer.at("/metadata/generation"), Value::Null);
    assert_eq!(api.get(&format!("{}/a", maps(&ns))).await.ok(), answer.body);
}

async fn the_server_sets_what_only_it_may_set(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    body["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    body["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    body["metadata"]["deletionGracePeriodSeconds"] = json!(5);
    body["metadata"]["generation"] = json!(7);
    body["metadata"]["selfLink"] = json!("/somewhere");
    let answer = api.post(&maps(&ns), body).await;
    answer.created();
    assert_ne!(answer.at("/metadata/uid"), json!("11111111-2222-3333-4444-555555555555"));
    assert_ne!(answer.at("/metadata/creationTimestamp"), json!("2001-01-01T00:00:00Z"));
    answer.has("/metadata/deletionTimestamp", Value::Null);
    answer.has("/metadata/deletionGracePeriodSeconds", Value::Null);
    answer.has("/metadata/selfLink", Value::Null);
}

async fn a_name_can_be_had_once(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let answer = api.post(&maps(&ns), map("a", json!({"other": "1"}))).await;
    answer.refused(409, "AlreadyExists", "configmaps \"a\" already exists");
    answer.has("/details", json!({"name": "a", "kind": "configmaps"}));
    let path = grouped("apps/v1", &ns, "deployments");
    api.post(&path, deployment("d", json!([{"name": "c", "image": "i"}]))).await.created();
    let answer = api.post(&path, deployment("d", json!([{"name": "c", "image": "i"}]))).await;
    answer.refused(409, "AlreadyExists", "deployments.apps \"d\" already exists");
    answer.has("/details", json!({"name": "d", "group": "apps", "kind": "deployments"}));
}

async fn generated_names_end_in_five_letters(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"generateName": "job-"}});
    let (one, two) = (api.post(&maps(&ns), body.clone()).await, api.post(&maps(&ns), body).await);
    for answer in [&one, &two] {
        let name = answer.created()["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let ending = name.strip_prefix("job-").unwrap_or_else(|| panic!("{answer}"));
        assert!(ending.len() == 5 && ending.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b)));
        answer.has("/metadata/generateName", "job-");
    }
    assert_ne!(one.at("/metadata/name"), two.at("/metadata/name"));
}

async fn a_generated_name_of_a_long_prefix_is_cut(api: Target) {
    let ns = api.namespace().await;
    let prefix = "a".repeat(70);
    let body = json!({"metadata": {"generateName": prefix}});
    let answer = api.post(&core(&ns, "configmaps"), body).await;
    let name = answer.created()["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    assert!(name.len() == 63 && name.starts_with(&"a".repeat(58)), "{name}");
}

async fn an_object_needs_a_name(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&maps(&ns), json!({"data": {}})).await;
    let text = "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    answer.refused(422, "Invalid", text);
    answer
        .has_causes(&["FieldValueRequired metadata.name: Required value: name or generateName is required"]);
    answer.has("/details/kind", "ConfigMap");
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

async fn a_name_must_be_a_dns_subdomain(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&maps(&ns), map("Bad_Name", json!({}))).await;
    let message =
        format!("ConfigMap \"Bad_Name\" is invalid: metadata.name: Invalid value: \"Bad_Name\": {SUBDOMAIN}");
    answer.refused(422, "Invalid", &message);
    answer
        .has_causes(&[&format!("FieldValueInvalid metadata.name: Invalid value: \"Bad_Name\": {SUBDOMAIN}")]);
    answer.has("/details/name", "Bad_Name").has("/details/kind", "ConfigMap");
}

async fn a_service_account_of_a_long_name_is_refused(api: Target) {
    let ns = api.namespace().await;
    let name = "a".repeat(254);
    let answer = api.post(&core(&ns, "serviceaccounts"), json!({"metadata": {"name": name}})).await;
    let part = "metadata.name: Invalid value: ";
    answer.refused_with(422, "Invalid", part);
    answer.refused_with(422, "Invalid", "must be no more than 253 characters");
}

async fn the_namespace_of_body_and_path_must_be_the_same(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["namespace"] = json!("default");
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    api.post(&maps(&ns), body).await.refused(400, "BadRequest", text);
}

async fn a_namespace_must_exist(api: Target) {
    let answer = api.post(&maps("nowhere"), map("a", json!({}))).await;
    answer.refused(404, "NotFound", "namespaces \"nowhere\" not found");
    answer.has("/details", json!({"name": "nowhere", "kind": "namespaces"}));
}

async fn another_version_in_the_body_is_refused(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["apiVersion"] = json!("v2");
    let answer = api.post(&maps(&ns), body).await;
    // It goes on with a line of the server's source.
    let text = "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme ";
    answer.refused_with(400, "BadRequest", text);
}

async fn another_kind_in_the_body_is_refused(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let answer = api.post(&maps(&ns), body).await;
    answer.refused_with(400, "BadRequest", "Secret in version \"v1\" cannot be handled as a ConfigMap");
}

async fn a_body_without_kind_is_taken_for_a_builtin(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&maps(&ns), json!({"metadata": {"name": "a"}})).await;
    answer.created();
    answer.has("/kind", "ConfigMap").has("/apiVersion", "v1");
}

async fn a_custom_object_without_kind_is_refused(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({}))).await;
    let answer = api.post(&kind.path(&ns), json!({"metadata": {"name": "a"}})).await;
    answer.refused_with(400, "BadRequest", "Object 'Kind' is missing in");
    let mut other = kind.object("a", json!({}));
    other["kind"] = json!("Gadget");
    let answer = api.post(&kind.path(&ns), other).await;
    answer.refused(
        422,
        "Invalid",
        &format!("Gadget.{} \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget", kind.group),
    );
}

async fn a_resource_version_may_not_be_given(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["resourceVersion"] = json!("5");
    let text = "resourceVersion should not be set on objects to be created";
    api.post(&maps(&ns), body).await.refused(500, "", text);
}

async fn a_named_path_takes_no_post(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&format!("{}/a", maps(&ns)), map("a", json!({}))).await;
    let text = "the server does not allow this method on the requested resource";
    answer.refused(405, "MethodNotAllowed", text);
}

async fn bad_label_keys_and_values_are_refused(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["labels"] = json!({"a/b/c": "x"});
    let answer = api.post(&maps(&ns), body).await;
    answer.refused(422, "Invalid", "ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')");
    let mut body = map("a", json!({}));
    body["metadata"]["labels"] = json!({"a": "x y"});
    let answer = api.post(&maps(&ns), body).await;
    answer.refused(422, "Invalid", "ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"x y\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
    let mut body = map("a", json!({}));
    body["metadata"]["labels"] = json!({"a": "x".repeat(64)});
    api.post(&maps(&ns), body).await.refused_with(422, "Invalid", "must be no more than 63 bytes");
}

async fn bad_annotation_keys_are_refused(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["annotations"] = json!({"-a": "any value will do"});
    let answer = api.post(&maps(&ns), body).await;
    answer.refused_with(422, "Invalid", "metadata.annotations: Invalid value: \"-a\":");
}

async fn annotations_may_not_be_too_large(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["annotations"] = json!({"a": "x".repeat(256 * 1024)});
    let answer = api.post(&maps(&ns), body).await;
    let text = "metadata.annotations: Too long: may not be more than 262144 bytes";
    answer.refused(422, "Invalid", &format!("ConfigMap \"a\" is invalid: {text}"));
    answer
        .has_causes(&["FieldValueTooLong metadata.annotations: Too long: may not be more than 262144 bytes"]);
}

async fn owners_must_be_whole(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": ""}]);
    let answer = api.post(&maps(&ns), body).await;
    answer.is(422);
    answer.has_causes(&[
        "FieldValueInvalid metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
        "FieldValueInvalid metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
    ]);
}

async fn two_controllers_are_refused(api: Target) {
    let ns = api.namespace().await;
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": true});
    let mut body = map("a", json!({}));
    body["metadata"]["ownerReferences"] = json!([owner("one"), owner("two")]);
    let answer = api.post(&maps(&ns), body).await;
    answer.refused_with(422, "Invalid", "Only one reference can have Controller set to true. Found \"true\" in references for ConfigMap/one and ConfigMap/two");
}

async fn finalizers_of_built_in_kinds_need_a_domain(api: Target) {
    let ns = api.namespace().await;
    let strict = [
        maps(&ns),
        format!("/apis/apps/v1/namespaces/{ns}/deployments"),
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"),
        format!("/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"),
    ];
    let why = "metadata.finalizers[0]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified";
    for path in strict {
        let body = json!({"metadata": {"name": "a", "finalizers": ["mine"]}, "addressType": "IPv4"});
        let answer = api.send(Call::post(&path, &body).query("fieldValidation", "Ignore")).await;
        answer.refused_with(422, "Invalid", why);
    }
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let added = json!({"metadata": {"finalizers": ["mine"]}});
    api.merge(&format!("{}/a", maps(&ns)), added).await.refused_with(422, "Invalid", why);
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases");
    api.post(&leases, json!({"metadata": {"name": "a", "finalizers": ["mine"]}})).await.created();
    api.merge(&format!("{leases}/a"), json!({"metadata": {"finalizers": null}})).await.is(200);
}

async fn finalizers_must_be_qualified_names(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    body["metadata"]["finalizers"] = json!(["no slash!"]);
    let answer = api.post(&maps(&ns), body).await;
    answer.refused_with(422, "Invalid", "metadata.finalizers: Invalid value: \"no slash!\"");
}

async fn generation_starts_at_one_where_there_is_a_spec(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let answer = api.post(&path, deployment("d", json!([{"name": "c", "image": "i"}]))).await;
    answer.created();
    answer.has("/metadata/generation", 1);
}

async fn status_is_dropped_on_create(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let mut body = deployment("d", json!([{"name": "c", "image": "i"}]));
    body["status"] = json!({"replicas": 5});
    let answer = api.post(&path, body).await;
    answer.created();
    answer.has("/status", json!({}));
}

async fn strings_of_a_secret_become_data(api: Target) {
    let ns = api.namespace().await;
    let body = json!({
        "metadata": {"name": "s"},
        "data": {"a": "b2xk", "b": "a2VlcA=="}, "stringData": {"a": "new", "c": "plain"},
    });
    let answer = api.post(&core(&ns, "secrets"), body).await;
    answer.created();
    answer.has("/data", json!({"a": "bmV3", "b": "a2VlcA==", "c": "cGxhaW4="}));
    answer.has("/stringData", Value::Null);
}

async fn a_secret_is_opaque_unless_said(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&core(&ns, "secrets"), json!({"metadata": {"name": "s"}})).await;
    answer.created();
    answer.has("/type", "Opaque");
}

async fn a_tls_secret_needs_both_keys(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "s"}, "type": "kubernetes.io/tls", "data": {}});
    let answer = api.post(&core(&ns, "secrets"), body).await;
    answer.is(422);
    answer.has_causes(&[
        "FieldValueRequired data[tls.crt]: Required value",
        "FieldValueRequired data[tls.key]: Required value",
    ]);
}

async fn a_docker_secret_must_be_json(api: Target) {
    let ns = api.namespace().await;
    let body = json!({
        "metadata": {"name": "s"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "{not json"},
    });
    let answer = api.post(&core(&ns, "secrets"), body).await;
    answer.refused_with(
        422,
        "Invalid",
        "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": ",
    );
}

async fn keys_of_a_config_map_are_checked(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&maps(&ns), map("a", json!({"no good": "x"}))).await;
    answer.refused(422, "Invalid", "ConfigMap \"a\" is invalid: data[no good]: Invalid value: \"no good\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')");
}

async fn a_key_is_text_or_binary_not_both(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("a", json!({"k": "x"}));
    body["binaryData"] = json!({"k": "eA=="});
    let answer = api.post(&maps(&ns), body).await;
    answer.refused(
        422,
        "Invalid",
        "ConfigMap \"a\" is invalid: data[k]: Invalid value: \"k\": duplicate of key present in binaryData",
    );
}

async fn yaml_bodies_are_read(api: Target) {
    let ns = api.namespace().await;
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: |\n    two\n    lines\n";
    let answer = api.send(Call::new(Method::POST, &maps(&ns)).body("application/yaml", body)).await;
    answer.created();
    answer.has("/data/k", "two\nlines\n");
}

async fn yaml_answers_are_given(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({"k": "v"}))).await.created();
    let answer = api.send(Call::get(&format!("{}/a", maps(&ns))).accept("application/yaml")).await;
    answer.ok();
    assert_eq!(answer.header("content-type"), "application/yaml");
    let text = answer.text();
    assert!(
        text.contains("apiVersion: v1\n") && text.contains("kind: ConfigMap\n") && text.contains("  k: v\n"),
        "{text}"
    );
}

async fn an_empty_body_is_refused(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(Call::new(Method::POST, &maps(&ns)).body("application/json", "")).await;
    answer.is(400);
}

async fn a_field_of_another_type_is_refused(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&maps(&ns), map("a", json!({"k": 5}))).await;
    answer.refused(400, "BadRequest", "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string");
}

async fn cluster_scoped_objects_forget_a_namespace(api: Target) {
    let name = api.label();
    let body = json!({"metadata": {"name": name, "namespace": "default"}});
    let answer = api.post("/api/v1/namespaces", body).await;
    answer.created();
    answer.has("/metadata/namespace", Value::Null);
    let mut crd = Kind::of(&api).crd(object(json!({})));
    crd["metadata"]["namespace"] = json!("default");
    api.post(CRDS, crd).await.has("/metadata/namespace", Value::Null);
}

async fn kube_creates_and_reads_typed_objects(api: Target) {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, PostParams};
    let ns = api.namespace().await;
    let maps: Api<ConfigMap> = Api::namespaced(api.client.clone(), &ns);
    let mut wanted = ConfigMap::default();
    wanted.metadata.name = Some("typed".to_owned());
    wanted.data = Some([("k".to_owned(), "v".to_owned())].into());
    let made = maps.create(&PostParams::default(), &wanted).await.expect("it can be created");
    assert_eq!(maps.get("typed").await.expect("it can be read"), made);
    let again = maps.create(&PostParams::default(), &wanted).await;
    let Err(kube::Error::Api(status)) = again else { panic!("{again:?}") };
    assert!(status.code == 409 && status.reason == "AlreadyExists", "{status:?}");
}
