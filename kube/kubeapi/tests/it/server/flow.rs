//! Requests that would take a server's threads or memory from everybody else.

use super::api;
use atoll_kubeapi::Api;
use atoll_kubeapi::authn::User;
use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};
use std::convert::Infallible;

async fn post(api: &Api, path: &str, object: &Value) -> (StatusCode, Value) {
    let body = Full::new(Bytes::from(object.to_string()));
    let answer = api.admin().answer(Request::post(path).body(body).unwrap()).await;
    let code = answer.status();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn made(api: &Api, path: &str, object: &Value) {
    let (code, answer) = post(api, path, object).await;
    assert_eq!(code, StatusCode::CREATED, "{path}: {answer}");
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A policy on `ConfigMaps` that runs until it is cut off, several times.
async fn bomb(api: &Api) {
    let group = "/apis/admissionregistration.k8s.io/v1";
    let loops = "object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, true))))";
    let validations: Vec<Value> = (0..3).map(|_| json!({"expression": loops})).collect();
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "bomb"}, "spec": {"validations": validations, "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}}});
    made(api, &format!("{group}/validatingadmissionpolicies"), &policy).await;
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "bomb"}, "spec": {"policyName": "bomb", "validationActions": ["Deny"]}});
    made(api, &format!("{group}/validatingadmissionpolicybindings"), &binding).await;
}

fn data(fields: usize) -> Value {
    (0..fields).map(|at| (format!("field-{at}"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
}

#[tokio::test]
async fn an_expensive_policy_does_not_hold_up_healthz() {
    // One thread for all: what runs on it holds up everything.
    let (api, _) = api().await;
    bomb(&api).await;
    let slow = tokio::spawn({
        let api = api.clone();
        async move { post(&api, MAPS, &map("slow", &data(200))).await }
    });
    tokio::task::yield_now().await;
    let health = Request::get("/healthz").body(Full::new(Bytes::new())).unwrap();
    let answer = api.service(User::anonymous()).answer(health).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(!slow.is_finished(), "it ran on the thread that answers others");
    let (code, answer) = slow.await.unwrap();
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("operation cancelled: actual cost limit exceeded"), "{message}");
    made(&api, MAPS, &map("small", &data(3))).await;
}

#[tokio::test]
async fn rules_of_a_definition_that_loop_are_cut_off() {
    let (api, _) = api().await;
    let rule = json!([{"rule": "self.list.all(x, self.list.all(y, x != y || x == y))"}]);
    let spec = json!({"type": "object", "x-kubernetes-validations": rule,
        "properties": {"list": {"type": "array", "items": {"type": "string"}}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "loops.example.com"}, "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "loops", "singular": "loop", "kind": "Loop", "listKind": "LoopList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    made(&api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    let object = |name: &str, length: usize| {
        let list: Vec<String> = (0..length).map(|at| format!("element-{at}")).collect();
        json!({"apiVersion": "example.com/v1", "kind": "Loop", "metadata": {"name": name}, "spec": {"list": list}})
    };
    let path = "/apis/example.com/v1/loops";
    super::until("the kind is served", async || {
        post(&api, path, &object("small", 20)).await.0 != StatusCode::NOT_FOUND
    })
    .await;
    let (code, answer) = post(&api, path, &object("large", 10_000)).await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("cost exceeds limit"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_ends_is_given_up() {
    let (api, _) = api().await;
    let piece = Ok::<_, Infallible>(http_body::Frame::data(Bytes::from_static(b"{")));
    let body = StreamBody::new(futures_util::stream::iter([piece]).chain(futures_util::stream::pending()));
    let begun = tokio::time::Instant::now();
    let answer = api.admin().answer(Request::post(MAPS).body(body).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
    assert!(begun.elapsed().as_secs() <= 10, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_body_of_tiny_maps_is_refused_before_it_takes_memory() {
    let (api, _) = api().await;
    let bomb =
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","x":[{}{{}}]}}"#, r#"{"a":1},"#.repeat(300_000));
    let answer = api.admin().answer(Request::post(MAPS).body(Full::new(Bytes::from(bomb))).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let long = "{1,2},".repeat(150_000);
    made(&api, MAPS, &map("long-text", &json!({"table": long}))).await;
}

#[tokio::test]
async fn long_lists_and_large_objects_are_answered_as_short_ones_are() {
    let (api, _) = api().await;
    let text = "x".repeat(60_000);
    for at in 0..10 {
        made(&api, MAPS, &map(&format!("large-{at}"), &json!({"text": text}))).await;
    }
    let list = |query: &str| Request::get(format!("{MAPS}{query}")).body(Full::new(Bytes::new())).unwrap();
    for query in ["", "?limit=5", "?labelSelector=a%3Db"] {
        let answer = api.admin().answer(list(query)).await;
        assert_eq!(answer.status(), StatusCode::OK, "{query}");
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let list: Value = serde_json::from_slice(&bytes).unwrap();
        let want = match query {
            "" => 10,
            "?limit=5" => 5,
            _ => 0,
        };
        assert_eq!(list["items"].as_array().unwrap().len(), want, "{query}");
    }
}
