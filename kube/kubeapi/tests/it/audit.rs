//! Who asked for what is in the audit log, whatever they try.

use atoll_audit::{Log, Sink};
use atoll_kubeapi::authn::User;
use atoll_kubeapi::hosted::{HostOptions, Hosted};
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Sink for Lines {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(lines);
        Ok(())
    }
}

fn log() -> (Log, Lines) {
    let lines = Lines::default();
    (Log::to(lines.clone(), "missing").unwrap(), lines)
}

impl Lines {
    fn text(&self, log: &Log) -> String {
        assert!(log.flush(Duration::from_secs(10)));
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn events(&self, log: &Log) -> Vec<Value> {
        self.text(log).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

async fn api(log: &Log) -> Api {
    Api::start(Store::memory(), Options::default().audit(Some(log.clone()))).await.unwrap()
}

async fn ask(api: &Api, user: User, request: http::request::Builder, body: &Value) -> u16 {
    let request = request.header("content-type", "application/json").header("user-agent", "test/1");
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let answer = api.service(user).answer(request.body(Full::new(body)).unwrap()).await;
    answer.status().as_u16()
}

fn joe() -> User {
    User::authenticated("joe", ["dev".to_owned()])
}

fn admin() -> User {
    User::authenticated("root", ["system:masters".to_owned()])
}

#[tokio::test]
async fn a_write_is_in_the_log_with_who_what_and_by_which_right() {
    let (log, lines) = log();
    let api = api(&log).await;
    let map = json!({"metadata": {"name": "a"}, "data": {"k": "the-content"}});
    let create = || Request::post("/api/v1/namespaces/default/configmaps");
    assert_eq!(ask(&api, admin(), create(), &map).await, 201);
    assert_eq!(ask(&api, joe(), create(), &map).await, 403);
    let events = lines.events(&log);
    let [made, refused] = events.as_slice() else { panic!("{events:#?}") };
    assert_eq!((&made["stage"], &made["verb"]), (&json!("ResponseComplete"), &json!("create")));
    assert_eq!(made["user"]["username"], "root");
    assert_eq!(made["userAgent"], "test/1");
    let object = json!({"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"});
    assert_eq!(made["objectRef"], object);
    assert_eq!(made["responseStatus"]["code"], 201);
    assert_eq!(made["annotations"]["authorization.k8s.io/decision"], "allow");
    assert_eq!(refused["user"], json!({"username": "joe", "groups": ["dev", "system:authenticated"]}));
    assert_eq!(refused["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(refused["responseStatus"]["code"], 403);
    assert_eq!(refused["responseStatus"]["reason"], "Forbidden");
    assert!(!lines.text(&log).contains("the-content"), "no bodies");
}

#[tokio::test]
async fn an_impersonator_is_in_the_log_under_both_names_also_when_he_may_not() {
    let (log, lines) = log();
    let api = api(&log).await;
    for (who, code) in [(admin(), 403), (joe(), 403)] {
        let request =
            Request::delete("/api/v1/namespaces/default/secrets/s").header("impersonate-user", "jane");
        assert_eq!(ask(&api, who, request, &Value::Null).await, code);
    }
    let events = lines.events(&log);
    let names =
        |event: &Value| [event["user"]["username"].clone(), event["impersonatedUser"]["username"].clone()];
    assert_eq!(names(&events[0]), ["root", "jane"]);
    assert_eq!(names(&events[1]), ["joe", "jane"]);
}

#[tokio::test]
async fn a_secret_is_never_in_the_log_not_even_in_what_is_wrong_with_it() {
    let (log, lines) = log();
    let api = api(&log).await;
    let secrets = || Request::post("/api/v1/namespaces/default/secrets");
    let good = json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    assert_eq!(ask(&api, admin(), secrets(), &good).await, 201);
    for bad in [
        json!({"metadata": {"name": "t"}, "type": "hunter2", "data": "hunter2"}),
        json!({"metadata": {"name": "hunter2/\u{0}"}, "data": {"hunter2 ": "aHVudGVyMg=="}}),
    ] {
        assert!(ask(&api, admin(), secrets(), &bad).await >= 400);
    }
    let text = lines.text(&log).replace("hunter2/", "");
    assert_eq!(text.lines().count(), 3);
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg"), "{text}");
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_a_line_all_the_same() {
    let (log, lines) = log();
    let api = api(&log).await;
    let never =
        StreamBody::new(futures_util::stream::pending::<Result<http_body::Frame<Bytes>, Infallible>>());
    let request = Request::put("/api/v1/namespaces/default/configmaps/a").body(never.boxed()).unwrap();
    let service = api.service(admin());
    let asked = tokio::time::timeout(Duration::from_millis(50), service.answer(request)).await;
    assert!(asked.is_err(), "it waits for the body");
    let events = lines.events(&log);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["verb"], "update");
    assert_eq!(events[0]["responseStatus"]["code"], Value::Null, "nobody knows what was done");
}

#[tokio::test]
async fn reads_of_the_process_itself_and_its_leases_do_not_fill_the_log() {
    let (log, lines) = log();
    let api = api(&log).await;
    for path in ["/healthz", "/api/v1/configmaps", "/api/v1/namespaces/default"] {
        assert_eq!(ask(&api, admin(), Request::get(path), &Value::Null).await, 200);
    }
    let lease = json!({"metadata": {"name": "l"}});
    let leases = Request::post("/apis/coordination.k8s.io/v1/namespaces/default/leases");
    assert_eq!(ask(&api, admin(), leases, &lease).await, 201);
    assert_eq!(lines.text(&log), "");
}

#[tokio::test]
async fn a_guessed_token_is_in_the_log_with_its_address() {
    let (log, lines) = log();
    let dir = tempfile::tempdir().unwrap();
    let host = HostOptions { data_dir: dir.path(), address: "127.0.0.1:0".parse().unwrap(), names: &[] };
    let hosted = Hosted::start(&host, Options::default().audit(Some(log.clone()))).await.unwrap();
    let read = Kubeconfig::read_from(&hosted.kubeconfig).unwrap();
    let honest = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    let mut guessing = honest.clone();
    guessing.auth_info = serde_json::from_value(json!({"token": "a-guess"})).unwrap();
    let list = async |config: kube::Config| {
        let maps: kube::Api<ConfigMap> =
            kube::Api::default_namespaced(kube::Client::try_from(config).unwrap());
        maps.list(&ListParams::default()).await.is_ok()
    };
    assert!(!list(guessing).await);
    assert!(list(honest.clone()).await);
    let maps: kube::Api<ConfigMap> = kube::Api::default_namespaced(kube::Client::try_from(honest).unwrap());
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let events = lines.events(&log);
    let codes: Vec<&Value> = events.iter().map(|event| &event["responseStatus"]["code"]).collect();
    assert_eq!(codes, [401, 200, 201]);
    assert_eq!(events[0]["user"], json!({}));
    assert_eq!(events[2]["user"]["username"], "atoll-admin");
    assert!(events.iter().all(|event| event["sourceIPs"] == json!(["127.0.0.1"])), "{events:#?}");
    hosted.stop();
}
