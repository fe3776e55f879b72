//! A group that other code answers for, beside the stored ones.

use atoll_kubeapi::aggregated::{Call, Group, Handler, Kind, Reply, Replying};
use atoll_kubeapi::authn::User;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const ROOT: &str = "/apis/tell.example.com/v1";

/// Answers with what it was asked.
#[derive(Default)]
pub(crate) struct Echo {
    pub(crate) heard: Mutex<Vec<Call>>,
}

impl Handler for Echo {
    fn answer(&self, call: Call) -> Replying<'_> {
        self.heard.lock().unwrap().push(call.clone());
        let object = |name: &str| {
            json!({"apiVersion": "tell.example.com/v1", "kind": "Story", "verdict": {"code": "Fine"},
                "metadata": {"name": name, "namespace": call.namespace}})
        };
        let reply = match (call.verb, call.name.as_deref()) {
            ("get", Some("none")) => {
                let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "reason": "NotFound", "message": "there is no such story", "code": 404});
                Reply { status: 404, body }
            }
            ("get", Some(name)) => Reply { status: 200, body: object(name) },
            ("create", _) => Reply { status: 200, body: call.body.clone().unwrap_or_default() },
            _ => Reply {
                status: 200,
                body: json!({"apiVersion": "tell.example.com/v1", "kind": "StoryList", "metadata": {},
                    "items": [object("a"), object("b")]}),
            },
        };
        Box::pin(async move { reply })
    }
}

pub(crate) fn group(handler: Arc<Echo>) -> Group {
    let kind = |kind: &str, plural: &str, namespaced, verbs| Kind {
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
        verbs,
        columns: vec![("Verdict".to_owned(), ".verdict.code".to_owned())],
    };
    Group {
        name: "tell.example.com".to_owned(),
        version: "v1".to_owned(),
        kinds: vec![
            kind("Story", "services", true, &["get", "list"]),
            kind("Wish", "wishes", false, &["create"]),
        ],
        handler,
    }
}

async fn api() -> (Api, Arc<Echo>) {
    let echo = Arc::new(Echo::default());
    let options = Options::default().aggregated(group(Arc::clone(&echo)));
    (Api::start(Store::memory(), options).await.unwrap(), echo)
}

type Answered = (StatusCode, Value);

async fn send(api: &Api, user: User, request: Request<Full<Bytes>>) -> Answered {
    let answer = api.service(user).answer(request).await;
    let code = answer.status();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()))
}

fn admin() -> User {
    User::authenticated("admin", ["system:masters".to_owned()])
}

fn joe() -> User {
    User::authenticated("joe", [])
}

async fn get_as(api: &Api, user: User, path: &str, accept: &str) -> Answered {
    let request = Request::get(path).header("accept", accept).body(Full::default()).unwrap();
    send(api, user, request).await
}

async fn get(api: &Api, user: User, path: &str) -> Answered {
    get_as(api, user, path, "application/json").await
}

async fn post(api: &Api, user: User, path: &str, body: impl Into<Bytes>) -> Answered {
    send(api, user, Request::post(path).body(Full::new(body.into())).unwrap()).await
}

/// Joe may read stories in the namespace `shop`.
async fn let_joe(api: &Api, rule: Value) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop";
    let of = |kind: &str, rest: Value| {
        let mut object =
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "joe"}});
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        object.to_string()
    };
    let subject = json!([{"kind": "User", "name": "joe", "apiGroup": "rbac.authorization.k8s.io"}]);
    let role = json!({"kind": "Role", "name": "joe", "apiGroup": "rbac.authorization.k8s.io"});
    let made = [
        post(
            api,
            admin(),
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}).to_string(),
        )
        .await,
        post(api, admin(), &format!("{rbac}/roles"), of("Role", json!({"rules": [rule]}))).await,
        post(
            api,
            admin(),
            &format!("{rbac}/rolebindings"),
            of("RoleBinding", json!({"roleRef": role, "subjects": subject})),
        )
        .await,
    ];
    for (code, answer) in made {
        assert_eq!(code, StatusCode::CREATED, "{answer}");
    }
}

fn read() -> Value {
    json!({"apiGroups": ["tell.example.com"], "resources": ["services"], "verbs": ["get", "list"]})
}

#[tokio::test(start_paused = true)]
async fn a_call_has_what_its_path_query_and_body_say() {
    let (api, echo) = api().await;
    let (code, answer) =
        get(&api, admin(), &format!("{ROOT}/namespaces/shop/services/web?in=paris&all=true")).await;
    assert_eq!((code, answer["metadata"]["name"].as_str()), (StatusCode::OK, Some("web")));
    let wish = json!({"wish": 1}).to_string();
    let (code, answer) = post(&api, admin(), &format!("{ROOT}/wishes"), wish).await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(answer, json!({"apiVersion": "tell.example.com/v1", "kind": "Wish", "wish": 1}));
    let (code, _) = get(&api, admin(), &format!("{ROOT}/services")).await;
    assert_eq!(code, StatusCode::OK);
    let heard = echo.heard.lock().unwrap();
    let story = |verb, namespace: Option<&str>, name: Option<&str>, query: &[(&str, &str)]| Call {
        user: admin(),
        verb,
        resource: "services".to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        query: query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        body: None,
    };
    assert_eq!(heard[0], story("get", Some("shop"), Some("web"), &[("in", "paris"), ("all", "true")]));
    assert_eq!((heard[1].verb, heard[1].resource.as_str(), &heard[1].namespace), ("create", "wishes", &None));
    assert_eq!(heard[2], story("list", None, None, &[]));
}

#[tokio::test(start_paused = true)]
async fn whoever_may_not_see_a_namespace_learns_nothing_of_it() {
    let (api, echo) = api().await;
    let own = format!("{ROOT}/namespaces/shop/services");
    let (code, answer) = get(&api, joe(), &format!("{own}/web")).await;
    assert_eq!(code, StatusCode::FORBIDDEN);
    let message = "services.tell.example.com \"web\" is forbidden: User \"joe\" cannot get resource \"services\" in API group \
        \"tell.example.com\" in the namespace \"shop\"";
    assert_eq!(answer["message"], message);
    let_joe(&api, read()).await;
    for (path, want) in [
        (format!("{own}/web"), 200),
        (own.clone(), 200),
        (format!("{ROOT}/namespaces/bank/services/web"), 403),
        (format!("{ROOT}/namespaces/bank/services/none"), 403),
        (format!("{ROOT}/namespaces/bank/services"), 403),
        (format!("{ROOT}/services"), 403),
        (format!("{ROOT}/services/web"), 403),
        (format!("{ROOT}/watch/namespaces/shop/services"), 403),
        (format!("{own}?watch=true"), 403),
        (format!("{own}/web/status"), 403),
        (format!("{own}/%2e%2e%2f%2e%2e%2fbank%2fservices%2fweb"), 403),
        (format!("{ROOT}/namespaces/shop%2fservices%2f..%2f..%2fbank/services/web"), 403),
        (format!("{ROOT}//namespaces/shop/services/web"), 403),
        (format!("{ROOT}/namespaces/shop/Services/web"), 403),
        (format!("{own}/.."), 404),
        (format!("{own}/a%25b"), 404),
    ] {
        let (code, answer) = get(&api, joe(), &path).await;
        assert_eq!(code.as_u16(), want, "{path}: {answer}");
    }
    let (code, _) = post(&api, joe(), &format!("{ROOT}/wishes"), "{}").await;
    assert_eq!(code, StatusCode::FORBIDDEN);
    let asked = echo.heard.lock().unwrap();
    assert!(asked.iter().all(|call| call.namespace.as_deref() == Some("shop")), "{asked:?}");
    assert_eq!(asked.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_right_to_one_name_lists_no_other() {
    let (api, echo) = api().await;
    let mut rule = read();
    rule["resourceNames"] = json!(["web"]);
    let_joe(&api, rule).await;
    let own = format!("{ROOT}/namespaces/shop/services");
    assert_eq!(get(&api, joe(), &format!("{own}/web")).await.0, StatusCode::OK);
    assert_eq!(get(&api, joe(), &own).await.0, StatusCode::FORBIDDEN);
    let (code, answer) = get(&api, joe(), &format!("{own}?fieldSelector=metadata.name%3Dweb")).await;
    assert_eq!(code, StatusCode::BAD_REQUEST, "{answer}");
    assert_eq!(echo.heard.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_impersonated_user_has_their_own_rights() {
    let (api, echo) = api().await;
    let_joe(&api, read()).await;
    let ask = |path: String| {
        let request = Request::get(path).header("impersonate-user", "joe").body(Full::default()).unwrap();
        send(&api, admin(), request)
    };
    assert_eq!(ask(format!("{ROOT}/namespaces/shop/services/web")).await.0, StatusCode::OK);
    assert_eq!(ask(format!("{ROOT}/namespaces/bank/services/web")).await.0, StatusCode::FORBIDDEN);
    assert_eq!(echo.heard.lock().unwrap()[0].user.name, "joe");
}

#[tokio::test(start_paused = true)]
async fn unknown_resources_verbs_and_bodies_are_refused() {
    let (api, echo) = api().await;
    let wishes = format!("{ROOT}/wishes");
    for (method, path, body, want) in [
        ("GET", format!("{ROOT}/things"), "", 404),
        ("GET", wishes.clone(), "", 405),
        ("GET", format!("{ROOT}/wishes/a"), "", 405),
        ("POST", format!("{ROOT}/namespaces/shop/services"), "{}", 405),
        ("PUT", format!("{ROOT}/namespaces/shop/services/web"), "{}", 405),
        ("DELETE", format!("{ROOT}/namespaces/shop/services/web"), "", 405),
        ("PATCH", format!("{ROOT}/namespaces/shop/services/web"), "{}", 405),
        ("GET", format!("{ROOT}/services?watch=1"), "", 405),
        ("POST", format!("{ROOT}/namespaces/shop/wishes"), "{}", 404),
        ("POST", format!("{ROOT}/wishes/name"), "{}", 405),
        ("POST", wishes.clone(), "", 400),
        ("POST", wishes.clone(), "[]", 400),
        ("POST", wishes.clone(), "{", 400),
        ("POST", wishes.clone(), r#"{"a":1,"a":2}"#, 400),
        ("POST", wishes.clone(), r#"{"kind":"Story"}"#, 400),
        ("POST", wishes.clone(), r#"{"apiVersion":"v1"}"#, 400),
        ("GET", format!("{ROOT}/namespaces/shop/services/none"), "", 404),
    ] {
        let request =
            Request::builder().method(method).uri(&path).body(Full::new(Bytes::from(body))).unwrap();
        let (code, answer) = send(&api, admin(), request).await;
        assert_eq!(code.as_u16(), want, "{method} {path} {body}: {answer}");
        assert_eq!(answer["kind"], "Status", "{method} {path}: {answer}");
    }
    let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
    assert_eq!(post(&api, admin(), &wishes, format!(r#"{{"a":{deep}}}"#)).await.0, StatusCode::BAD_REQUEST);
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(4 << 20));
    assert_eq!(post(&api, admin(), &wishes, large).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(echo.heard.lock().unwrap().len(), 1, "only the story that there is none of was asked for");
}

#[tokio::test(start_paused = true)]
async fn discovery_and_schemas_have_it_and_objects_of_the_store_have_not() {
    let (api, _) = api().await;
    let (_, groups) = get(&api, admin(), "/apis").await;
    let named = |list: &Value| list["groups"].to_string().contains("tell.example.com");
    assert!(named(&groups), "{groups}");
    let (_, version) = get(&api, joe(), ROOT).await;
    let names: Vec<&str> =
        version["resources"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["services", "wishes"], "{version}");
    let kubectl = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let (_, all) = get_as(&api, joe(), "/apis", kubectl).await;
    let ours =
        all["items"].as_array().unwrap().iter().find(|one| one["metadata"]["name"] == "tell.example.com");
    assert_eq!(ours.unwrap()["versions"][0]["resources"][0]["resource"], "services");
    let (_, index) = get(&api, joe(), "/openapi/v3").await;
    let url = index["paths"]["apis/tell.example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let (code, document) = get(&api, joe(), url).await;
    assert_eq!(code, StatusCode::OK);
    assert!(document["components"]["schemas"]["com.example.tell.v1.Story"].is_object(), "{document}");
    assert_eq!(document["openapi"], "3.0.0");
    // Deleting a namespace asks for all that is in it, and nothing of this group is.
    let (code, _) = get(&api, admin(), "/api/v1/services").await;
    assert_eq!(code, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn kubectl_get_prints_a_table_and_yaml_is_yaml() {
    let (api, _) = api().await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (code, list) = get_as(&api, admin(), &format!("{ROOT}/services"), table).await;
    assert_eq!(code, StatusCode::OK);
    assert_eq!(list["kind"], "Table");
    assert_eq!(list["columnDefinitions"][1]["name"], "Verdict");
    assert_eq!(list["rows"][1]["cells"], json!(["b", "Fine"]));
    let (_, one) = get_as(&api, admin(), &format!("{ROOT}/namespaces/shop/services/web"), table).await;
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
    let (_, text) =
        get_as(&api, admin(), &format!("{ROOT}/namespaces/shop/services/web"), "application/yaml").await;
    assert!(text.as_str().unwrap().contains("kind: Story"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn no_definition_takes_the_place_of_an_aggregated_group() {
    let (api, echo) = api().await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "services.tell.example.com"}, "spec": {"group": "tell.example.com", "scope": "Namespaced",
            "names": {"plural": "services", "singular": "service", "kind": "Fake", "listKind": "FakeList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, answer) = post(&api, admin(), path, definition.to_string()).await;
    assert_eq!(code, StatusCode::CREATED, "{answer}");
    super::until("the definition is accepted", async || {
        let (_, found) = get(&api, admin(), &format!("{path}/services.tell.example.com")).await;
        found["status"]["conditions"].to_string().contains("Established")
    })
    .await;
    let story = format!("{ROOT}/namespaces/shop/services/web");
    assert_eq!(get(&api, admin(), &story).await.1["kind"], "Story");
    let request = Request::delete(format!("{path}/services.tell.example.com")).body(Full::default()).unwrap();
    send(&api, admin(), request).await;
    super::until("the definition is gone", async || {
        get(&api, admin(), &format!("{path}/services.tell.example.com")).await.0 == StatusCode::NOT_FOUND
    })
    .await;
    assert_eq!(get(&api, admin(), &story).await.1["kind"], "Story");
    assert_eq!(echo.heard.lock().unwrap().len(), 2);
}
