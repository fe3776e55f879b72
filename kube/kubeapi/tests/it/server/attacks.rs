//! Attacks that only the embedded API can be put to, or that it withstands where a real one does not.

use super::{api, until};
use atoll_kubeapi::authn::{TokenAuthenticator, User};
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::server::Server;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options, Service};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

/// What a service answers: the code and the text.
async fn ask(as_whom: &Service, request: http::request::Builder, body: impl Into<Bytes>) -> (u16, String) {
    let answer = as_whom.answer(request.body(Full::new(body.into())).unwrap()).await;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8_lossy(&bytes).into_owned())
}

async fn post(as_whom: &Service, path: &str, body: &Value) -> (u16, String) {
    let request = Request::post(path).header("content-type", "application/json");
    ask(as_whom, request, body.to_string()).await
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn made(as_whom: &Service, path: &str, body: Value) -> Value {
    let (code, text) = post(as_whom, path, &body).await;
    assert_eq!(code, 201, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_cluster_admin_by_role_gets_no_backup_not_even_as_somebody_else() {
    let dir = tempfile::tempdir().unwrap();
    Pki::open(dir.path(), &[], 1_800_000_000).unwrap();
    let api = Api::start(Store::memory(), Options::default().data_dir(dir.path())).await.unwrap();
    let admin = api.admin();
    let binding = json!({"metadata": {"name": "joe"}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "joe"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    made(&admin, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    let joe = api.service(User::authenticated("joe", []));
    assert_eq!(
        ask(&joe, Request::get("/api/v1/secrets"), "").await.0,
        200,
        "he may all that roles can allow"
    );
    for path in ["/atoll/backup", "/atoll/backup/", "//atoll/backup", "/atoll%2fbackup", "/atoll/anything"] {
        let (code, text) = ask(&joe, Request::get(path), "").await;
        assert!(
            code == 403 && text.contains("system:masters") && !text.contains("PRIVATE"),
            "{path}: {text}"
        );
        let masked =
            Request::get(path).header("impersonate-user", "x").header("impersonate-group", "system:masters");
        assert_eq!(ask(&joe, masked, "").await.0, 403, "{path}");
    }
    let (code, text) = ask(&admin, Request::get("/atoll/backup"), "").await;
    assert!(code == 200 && text.contains("PRIVATE KEY"), "{code}");
    // A master who is served as somebody else is that somebody.
    let masked = Request::get("/atoll/backup").header("impersonate-user", "joe");
    assert_eq!(ask(&admin, masked, "").await.0, 403);
}

#[tokio::test]
async fn an_unreadable_doubled_or_empty_impersonation_is_not_served_as_the_caller() {
    let (api, _client) = api().await;
    let admin = api.admin();
    let value = |bytes: &[u8]| http::HeaderValue::from_bytes(bytes).unwrap();
    for headers in [
        vec![("impersonate-user", value(b"jan\xff"))],
        vec![("impersonate-user", value(b""))],
        vec![("impersonate-user", value(b"jane")), ("impersonate-user", value(b"joe"))],
        vec![("impersonate-user", value(b"jane")), ("impersonate-group", value(b"\xff"))],
        vec![("impersonate-group", value(b"dev"))],
        vec![("impersonate-extra-a", value(b"b"))],
        vec![("impersonate-uid", value(b"u"))],
        vec![("impersonate-usr", value(b"jane"))],
    ] {
        let mut request = Request::post(WHO);
        for (name, value) in &headers {
            request = request.header(*name, value);
        }
        let (code, text) = ask(&admin, request, "{}").await;
        assert!(code == 400 && !text.contains("userInfo"), "{headers:?}: {code} {text}");
    }
    let request = Request::post(WHO).header("impersonate-user", value("jané".as_bytes()));
    let (code, text) = ask(&admin, request, "{}").await;
    assert!(code == 201 && text.contains("\"username\":\"jané\""), "{text}");
}

#[tokio::test]
async fn twenty_thousand_owners_are_refused_and_a_few_are_not() {
    let (api, _client) = api().await;
    let admin = api.admin();
    let owner = |n: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": n.to_string(), "controller": true});
    let owned = |count: usize| json!({"metadata": {"name": "a", "ownerReferences": (0..count).map(owner).collect::<Vec<_>>()}});
    let (code, text) = post(&admin, MAPS, &owned(20_000)).await;
    assert_eq!(code, 422, "{text}");
    assert!(
        text.contains("metadata.ownerReferences: Too many: 20000: must have at most 500 items"),
        "{text:.300}"
    );
    let finalizers: Vec<String> = (0..20_000).map(|n| format!("a.io/{n}")).collect();
    let (code, text) =
        post(&admin, MAPS, &json!({"metadata": {"name": "a", "finalizers": finalizers}})).await;
    assert!(code == 422 && text.contains("metadata.finalizers: Too many"), "{text:.300}");
    assert_eq!(post(&admin, MAPS, &owned(1)).await.0, 201);
}

#[tokio::test]
async fn a_json_patch_that_nests_without_end_leaves_the_server_standing() {
    let (api, _client) = api().await;
    let admin = api.admin();
    made(&admin, MAPS, json!({"metadata": {"name": "a"}})).await;
    let chain = (0..90).fold(json!({}), |below, _| json!({"a": below}));
    let mut operations = vec![json!({"op": "add", "path": "/a", "value": {}})];
    for _ in 0..400 {
        operations.extend([
            json!({"op": "add", "path": "/b", "value": chain}),
            json!({"op": "move", "from": "/a", "path": format!("/b{}/a", "/a".repeat(90))}),
            json!({"op": "move", "from": "/b", "path": "/a"}),
        ]);
    }
    let patch = |body: Value| {
        let request =
            Request::patch(format!("{MAPS}/a")).header("content-type", "application/json-patch+json");
        ask(&admin, request, body.to_string())
    };
    assert_eq!(patch(operations.into()).await.0, 422);
    assert_eq!(patch(json!([{"op": "add", "path": "/data", "value": {"k": "v"}}])).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_namespace_does_not_hold_up_a_deletion() {
    let (api, _client) = api().await;
    let admin = api.admin();
    made(&admin, "/api/v1/namespaces", json!({"metadata": {"name": "evil"}})).await;
    let victim = made(&admin, MAPS, json!({"metadata": {"name": "victim"}})).await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "victim", "uid": victim["metadata"]["uid"], "blockOwnerDeletion": true});
    let child =
        json!({"metadata": {"name": "child", "ownerReferences": [owner], "finalizers": ["evil.io/stay"]}});
    made(&admin, "/api/v1/namespaces/evil/configmaps", child).await;
    let path = format!("{MAPS}/victim");
    let foreground = || Request::delete(&path).header("content-type", "application/json");
    let (code, _) = ask(&admin, foreground(), json!({"propagationPolicy": "Foreground"}).to_string()).await;
    assert_eq!(code, 200);
    until("the victim is gone", async || ask(&admin, Request::get(&path), "").await.0 == 404).await;
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_let_in() {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs().try_into().unwrap();
    let names = ["127.0.0.1".to_owned()];
    let (ours, theirs) = (Pki::ephemeral(&names, now).unwrap(), Pki::ephemeral(&names, now).unwrap());
    let options = Options::default().tokens(TokenAuthenticator::new(&ours).unwrap());
    let api = Api::start(Store::memory(), options).await.unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), &ours).await.unwrap();
    let url = format!("https://{}", server.address().unwrap());
    let serving = tokio::spawn(server.run(api));
    // Both are of `system:masters`, by the word of an authority each.
    for (admin, may) in [(&ours, true), (&theirs, false)] {
        let mixed = Pki { ca: ours.ca.clone(), admin: admin.admin.clone(), ..ours.clone() };
        let config: kube::config::Kubeconfig = serde_json::from_str(&mixed.kubeconfig(&url)).unwrap();
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let request = Request::builder().method(Method::GET).uri("/api/v1/secrets").body(Vec::new()).unwrap();
        assert_eq!(client.request_text(request).await.is_ok(), may);
    }
    serving.abort();
}
