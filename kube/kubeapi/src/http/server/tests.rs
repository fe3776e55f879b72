//! Attacks on the socket, each with an honest client beside it.

use super::*;
use crate::api::Options;
use crate::storage::store::Store;
use http::StatusCode;
use http_body_util::BodyExt;
use rustls_pki_types::ServerName;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;

/// Few connections, so that a test need not make many.
const FEW: Limits = Limits { all: 40, unknown: 20, per_user: 4, grace: Duration::from_millis(50) };

struct Running {
    address: SocketAddr,
    pki: Pki,
    api: Api,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn running() -> Running {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let pki = Pki::ephemeral(&["127.0.0.1".to_owned()], now.try_into().unwrap()).unwrap();
    let tokens = crate::access::authn::TokenAuthenticator::new(&pki).unwrap();
    let api = Api::start(Store::memory(), Options::default().tokens(tokens)).await.unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), &pki).await.unwrap();
    let address = server.address().unwrap();
    let serving = tokio::spawn(server.run_within(api.clone(), FEW));
    Running { address, pki, api, serving }
}

impl Running {
    async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.pki.ca_der().unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    /// A token of a service account that may do anything with `ConfigMaps`.
    async fn token(&self, namespace: &str, name: &str) -> String {
        let admin = self.api.admin();
        let post = async |path: &str, object: serde_json::Value| {
            let body = http_body_util::Full::new(bytes::Bytes::from(object.to_string()));
            let answer = admin.answer(Request::post(path).body(body).unwrap()).await;
            let code = answer.status();
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            assert!(code.is_success() || code == StatusCode::CONFLICT, "{path}: {answer}");
            answer
        };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        post("/api/v1/namespaces", object).await;
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        post(&accounts, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}))
            .await;
        let group = "rbac.authorization.k8s.io";
        let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "maps"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]});
        post(&format!("/apis/{group}/v1/namespaces/default/roles"), role).await;
        let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": format!("{namespace}-{name}")},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "maps"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]});
        post(&format!("/apis/{group}/v1/namespaces/default/rolebindings"), binding).await;
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
        let made = post(&format!("{accounts}/{name}/token"), request).await;
        made["status"]["token"].as_str().unwrap().to_owned()
    }
}

/// Sends a head (and what follows it) and returns the status of the answer; 0 when there is none.
async fn ask(stream: &mut TlsStream<TcpStream>, text: &str) -> u16 {
    if stream.write_all(text.as_bytes()).await.is_err() {
        return 0;
    }
    let _ = stream.flush().await;
    let mut answer = vec![0; 16];
    match stream.read_exact(&mut answer).await {
        Ok(_) => String::from_utf8_lossy(&answer[9..12]).parse().unwrap_or(0),
        Err(_) => 0,
    }
}

fn get(path: &str, more: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{more}\r\n")
}

/// Honest clients get their answer soon; a slow machine is not soon.
async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    let done = tokio::time::timeout(Duration::from_secs(30), future).await;
    done.unwrap_or_else(|_| panic!("never: {what}"))
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn stalled_strangers_do_not_lock_honest_users_out() {
    let running = running().await;
    let token = running.token("default", "joe").await;
    let mut stalled = Vec::new();
    for _ in 0..60 {
        // Connected, and not a word.
        stalled.push(TcpStream::connect(running.address).await.unwrap());
    }
    let mut half = Vec::new();
    for _ in 0..30 {
        let Ok(Ok(mut stream)) = tokio::time::timeout(Duration::from_secs(5), running.connect()).await else {
            continue;
        };
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost:").await;
        half.push(stream);
    }
    let honest = async {
        let mut stream = running.connect().await.unwrap();
        ask(&mut stream, &get(MAPS, &format!("Authorization: Bearer {token}\r\n"))).await
    };
    assert_eq!(soon("an honest request", honest).await, 200);
    let prober = async {
        let mut stream = running.connect().await.unwrap();
        ask(&mut stream, &get("/healthz", "")).await
    };
    assert_eq!(soon("the prober", prober).await, 200);
}

#[tokio::test]
async fn a_connection_in_use_is_not_ended_for_strangers() {
    let running = running().await;
    let token = running.token("default", "joe").await;
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let mut honest = running.connect().await.unwrap();
    let watch = get(MAPS, &bearer).replace("configmaps", "configmaps?watch=true");
    assert_eq!(soon("a watch", ask(&mut honest, &watch)).await, 200);
    let mut stalled = Vec::new();
    for _ in 0..60 {
        stalled.push(TcpStream::connect(running.address).await.unwrap());
    }
    let mut other = soon("another connection", running.connect()).await.unwrap();
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
    let head =
        format!("POST {MAPS} HTTP/1.1\r\nHost: a\r\n{bearer}Content-Length: {}\r\n\r\n{map}", map.len());
    assert_eq!(soon("a create", ask(&mut other, &head)).await, 201);
    let mut event = [0; 1];
    let read = async {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("ADDED") {
            honest.read_exact(&mut event).await.unwrap();
            seen.push(event[0]);
        }
    };
    soon("the watch's event", read).await;
}

#[tokio::test]
async fn nothing_of_a_body_is_read_before_its_sender_is_known() {
    let running = running().await;
    for more in ["", "Authorization: Bearer nonsense\r\n"] {
        let mut stream = running.connect().await.unwrap();
        // The body never comes.
        let head = format!("POST {MAPS} HTTP/1.1\r\nHost: a\r\n{more}Content-Length: 3000000\r\n\r\n");
        let code = soon("an answer before the body", ask(&mut stream, &head)).await;
        assert_eq!(code, if more.is_empty() { 403 } else { 401 });
    }
}

#[tokio::test]
async fn one_user_does_not_take_all_connections() {
    let running = running().await;
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let greedy = bearer(&running.token("greedy", "one").await);
    let other = bearer(&running.token("greedy", "two").await);
    let honest = bearer(&running.token("honest", "one").await);
    let mut streams = Vec::new();
    let mut codes = Vec::new();
    for _ in 0..6 {
        let mut stream = running.connect().await.unwrap();
        codes.push(ask(&mut stream, &get(MAPS, &greedy)).await);
        streams.push(stream);
    }
    assert_eq!(codes, [200, 200, 200, 200, 429, 429]);
    let mut stream = running.connect().await.unwrap();
    assert_eq!(ask(&mut stream, &get(MAPS, &other)).await, 429, "an account more is no share more");
    let mut stream = running.connect().await.unwrap();
    assert_eq!(ask(&mut stream, &get(MAPS, &honest)).await, 200);
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let running = running().await;
    let long = format!("X-Long: {}\r\n", "a".repeat(100 << 10));
    let many = "X-Many: a\r\n".repeat(500);
    for more in [long, many] {
        let mut stream = running.connect().await.unwrap();
        assert_eq!(soon("a refusal", ask(&mut stream, &get("/healthz", &more))).await, 431);
    }
    let mut stream = running.connect().await.unwrap();
    let groups = "X-Group: some-group-of-an-honest-user\r\n".repeat(90);
    assert_eq!(soon("an answer", ask(&mut stream, &get("/healthz", &groups))).await, 200);
}

#[tokio::test]
async fn a_stranger_who_never_finishes_a_head_is_cut_off() {
    let running = running().await;
    let mut slow = running.connect().await.unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n").await.unwrap();
    let mut honest = running.connect().await.unwrap();
    assert_eq!(ask(&mut honest, &get("/healthz", "")).await, 200);
    // From here on time passes as soon as no task has anything to do.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "{rest:?}");
    // Not the time that a client has which has asked before.
    assert!(begun.elapsed() <= FIRST_WITHIN + Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_ends_and_a_watch_waits() {
    let connections = Connections::new(FEW);
    for (streams, ends) in [(false, true), (true, false)] {
        let link = connections.arrive(std::net::Ipv4Addr::LOCALHOST.into());
        link.stream(streams);
        let (near, far) = tokio::io::duplex(1000);
        let mut writer = Patience::new(near, link);
        let written = tokio::time::timeout(Duration::from_secs(300), writer.write_all(&[0; 5000])).await;
        assert_eq!(matches!(written, Ok(Err(_))), ends, "{written:?}");
        drop(far);
    }
}

#[tokio::test(start_paused = true)]
async fn large_objects_of_watches_that_nobody_reads_are_few_at_a_time() {
    let api = Api::start(Store::memory(), Options::default()).await.unwrap();
    let ask = async |who: &Service, method: &str, path: &str, body: serde_json::Value| {
        let request = Request::builder().method(method).uri(path);
        let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
        who.answer(request.body(body).unwrap()).await
    };
    let large = json!({"metadata": {"name": "large"}, "data": {"text": "x".repeat(500 << 10)}});
    assert_eq!(ask(&api.admin(), "POST", MAPS, large).await.status(), 201);
    let connections = Connections::new(LIMITS);
    let open = async |user: &str| {
        let binding = json!({"metadata": {"name": user}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
        ask(&api.admin(), "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
        let link = connections.arrive(std::net::Ipv4Addr::LOCALHOST.into());
        let who = Service::remote(api.clone(), Some(User::authenticated(user, [])), Arc::clone(&link));
        let mut watch = ask(&who, "GET", &format!("{MAPS}?watch=true"), json!({})).await.into_body();
        let piece = watch.frame().await.map(|frame| frame.unwrap().into_data().unwrap().len());
        (piece, watch, link)
    };
    let mut unread = Vec::new();
    for _ in 0..12 {
        unread.push(open("greedy").await);
    }
    let told = unread.iter().filter(|(piece, ..)| piece.is_some()).count();
    assert_eq!(told, 8, "the others ended: there was no room for what they would have been told");
    assert!(
        unread.iter().all(|(piece, _, link)| link.streams() == piece.is_none()),
        "who does not read is cut off"
    );
    let (piece, mut watch, link) = open("honest").await;
    assert!(piece.is_some_and(|length| length > 500 << 10), "{piece:?}");
    assert_eq!(ask(&api.admin(), "POST", MAPS, json!({"metadata": {"name": "small"}})).await.status(), 201);
    assert!(watch.frame().await.is_some() && link.streams(), "who has read may wait as long as it likes");
    drop(unread);
    assert!(open("greedy").await.0.is_some(), "there is room again");
}
