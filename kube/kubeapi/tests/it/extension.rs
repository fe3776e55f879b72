//! An extension API server, as a kube-apiserver and as those who would like to be one reach it.

use crate::server::aggregated::{Echo, group};
use atoll_kubeapi::authn::User;
use atoll_kubeapi::extension::{Review, ReviewTarget, Reviewer, Reviewing, Server, Trust, Trusting, Verdict};
use atoll_kubeapi::pki::Pki;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const WEB: &str = "/apis/tell.example.com/v1/namespaces/shop/services/web";

/// An authority for clients.
struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pem: String,
}

type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "front-proxy-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { params, key, pem }
    }

    fn identity(&self, name: &str) -> Identity {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &Issuer::from_params(&self.params, &self.key)).unwrap();
        (signed.der().clone(), PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap())
    }

    fn trust(&self) -> Trust {
        let data = [
            ("requestheader-client-ca-file", self.pem.as_str()),
            ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
            ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
        ];
        let data: BTreeMap<_, _> =
            data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Trust::read(&data).unwrap().unwrap()
    }
}

/// Joe may read in the namespace `shop`; nobody knows what ann may.
#[derive(Default)]
struct Rules {
    asked: Mutex<Vec<(String, Review)>>,
}

impl Reviewer for Rules {
    fn review<'a>(&'a self, user: &'a User, review: Review) -> Reviewing<'a> {
        self.asked.lock().unwrap().push((user.name.clone(), review.clone()));
        let in_shop = match &review.target {
            ReviewTarget::Resource { group, namespace, .. } => {
                group == "tell.example.com" && namespace == "shop"
            }
            ReviewTarget::Path(path) => path.starts_with("/apis"),
        };
        let verdict = match user.name.as_str() {
            "joe" if in_shop => Verdict::Allowed,
            "ann" => Verdict::Unknown("the API is down".to_owned()),
            _ => Verdict::Denied(String::new()),
        };
        Box::pin(async move { verdict })
    }
}

struct Running {
    address: SocketAddr,
    server_ca: String,
    authority: Authority,
    trusting: Trusting,
    echo: Arc<Echo>,
    rules: Arc<Rules>,
    task: JoinHandle<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn untrusting() -> Running {
    let pki = Pki::ephemeral(&["tell.shop.svc".to_owned()], jiff::Timestamp::now().as_second()).unwrap();
    let (echo, rules) = (Arc::new(Echo::default()), Arc::new(Rules::default()));
    let groups = [group(Arc::clone(&echo))];
    let reviewer = Arc::clone(&rules) as Arc<dyn Reviewer>;
    let server = Server::bind(([127, 0, 0, 1], 0).into(), &pki, &groups, reviewer).await.unwrap();
    let (address, trusting) = (server.address().unwrap(), server.trusting());
    let task = tokio::spawn(server.run());
    Running { address, server_ca: pki.ca.clone(), authority: Authority::new(), trusting, echo, rules, task }
}

async fn running() -> Running {
    let running = untrusting().await;
    running.trusting.trust(Some(running.authority.trust())).unwrap();
    running
}

type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

impl Running {
    /// A connection with this certificate. A refused one may show at the first request only.
    async fn connect(&self, identity: Option<Identity>) -> anyhow::Result<Sender> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.server_ca.as_bytes())?)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match identity {
            Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key)?,
            None => builder.with_no_client_auth(),
        };
        let stream = TcpStream::connect(self.address).await?;
        // The name that an APIService's Service has.
        let name = ServerName::try_from("tell.shop.svc")?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn front(&self) -> Sender {
        self.connect(Some(self.authority.identity("front-proxy-client"))).await.unwrap()
    }
}

async fn send(
    sender: &mut Sender,
    request: http::request::Builder,
    body: &str,
) -> anyhow::Result<(u16, Value)> {
    sender.ready().await?;
    let answer = sender
        .send_request(request.header("host", "a").body(Full::new(Bytes::from(body.to_owned())))?)
        .await?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await?.to_bytes();
    Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
}

fn of(user: &str, path: &str) -> http::request::Builder {
    Request::get(path).header("x-remote-user", user).header("x-remote-group", "system:authenticated")
}

#[tokio::test]
async fn a_front_proxy_speaks_for_users_and_their_rights_are_asked() {
    let running = running().await;
    let mut front = running.front().await;
    let (code, answer) = send(&mut front, of("joe", WEB), "").await.unwrap();
    assert_eq!((code, &answer["metadata"]["name"]), (200, &"web".into()));
    assert_eq!(running.echo.heard.lock().unwrap()[0].user.groups, ["system:authenticated"]);
    let (code, answer) = send(&mut front, of("joe", &WEB.replace("shop", "bank")), "").await.unwrap();
    assert_eq!(code, 403, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("in the namespace \"bank\""), "{answer}");
    let (code, _) = send(&mut front, of("ann", WEB), "").await.unwrap();
    assert_eq!(code, 503, "what is not known is not allowed");
    let (code, _) = send(&mut front, of("eve", WEB), "").await.unwrap();
    assert_eq!(code, 403);
    // As kube-apiserver itself looks whether the group is there.
    let itself =
        of("system:kube-aggregator", "/apis/tell.example.com/v1").header("x-remote-group", "system:masters");
    let (code, version) = send(&mut front, itself, "").await.unwrap();
    assert_eq!((code, &version["groupVersion"]), (200, &"tell.example.com/v1".into()));
    for path in ["/apis", "/apis/tell.example.com", "/openapi/v3", "/openapi/v2", "/healthz"] {
        let itself = of("system:aggregator", path).header("x-remote-group", "system:masters");
        assert_eq!(send(&mut front, itself, "").await.unwrap().0, 200, "{path}");
    }
    let asked = running.rules.asked.lock().unwrap();
    assert_eq!(asked.len(), 4, "the administrators' group is not asked for: {asked:?}");
    assert_eq!(running.echo.heard.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn nobody_else_speaks_for_users() {
    let running = running().await;
    // No certificate, or one of another authority that has the same name: no handshake.
    for identity in [None, Some(Authority::new().identity("front-proxy-client"))] {
        let told = async {
            let mut sender = running.connect(identity).await?;
            send(&mut sender, of("joe", WEB), "").await
        };
        assert!(told.await.is_err());
    }
    // A right certificate whose name is not allowed.
    let mut other = running.connect(Some(running.authority.identity("admin"))).await.unwrap();
    let forged = of("joe", WEB).header("x-remote-group", "system:masters");
    assert_eq!(send(&mut other, forged, "").await.unwrap().0, 401);
    // The front proxy, for nobody.
    let mut front = running.front().await;
    assert_eq!(send(&mut front, Request::get(WEB), "").await.unwrap().0, 401);
    let mut front = running.front().await;
    assert_eq!(send(&mut front, of("", WEB), "").await.unwrap().0, 401);
    // Other ways to say who one is say nothing here.
    let mut front = running.front().await;
    let token = Request::get(WEB).header("authorization", "Bearer x").header("impersonate-user", "joe");
    assert_eq!(send(&mut front, token, "").await.unwrap().0, 401);
    assert!(running.rules.asked.lock().unwrap().is_empty());
    assert!(running.echo.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn whoever_was_believed_is_not_once_the_authority_is_another() {
    let running = untrusting().await;
    assert!(running.connect(Some(running.authority.identity("front-proxy-client"))).await.is_err());
    running.trusting.trust(Some(running.authority.trust())).unwrap();
    let mut front = running.front().await;
    assert_eq!(send(&mut front, of("joe", WEB), "").await.unwrap().0, 200);
    running.trusting.trust(Some(running.authority.trust())).unwrap();
    assert_eq!(send(&mut front, of("joe", WEB), "").await.unwrap().0, 200, "nothing changed");
    running.trusting.trust(Some(Authority::new().trust())).unwrap();
    assert_eq!(send(&mut front, of("joe", WEB), "").await.unwrap().0, 401);
    running.trusting.trust(None).unwrap();
    assert!(running.connect(Some(running.authority.identity("front-proxy-client"))).await.is_err());
}

#[tokio::test]
async fn what_is_not_served_and_what_is_too_large_is_refused() {
    let running = running().await;
    let master = |request: http::request::Builder| {
        request.header("x-remote-user", "admin").header("x-remote-group", "system:masters")
    };
    let wishes = "/apis/tell.example.com/v1/wishes";
    for (method, path, body, want) in [
        ("GET", "/api/v1/secrets", "", 404),
        ("GET", "/apis/apps/v1/deployments", "", 404),
        ("GET", "/atoll/backup", "", 404),
        ("GET", "/metrics", "", 404),
        ("POST", "/apis", "", 405),
        ("GET", "/apis/tell.example.com/v1/things", "", 404),
        ("DELETE", WEB, "", 405),
        ("GET", "/apis/tell.example.com/v1/namespaces/shop/services?watch=1", "", 405),
        ("GET", "/apis/tell.example.com/v1/namespaces/shop/services/..", "", 404),
        ("GET", "/apis/tell.example.com/v1/namespaces/shop/services/%ff", "", 400),
        ("POST", wishes, "{", 400),
        ("POST", wishes, "{}", 200),
    ] {
        let mut front = running.front().await;
        let (code, answer) =
            send(&mut front, master(Request::builder().method(method).uri(path)), body).await.unwrap();
        assert_eq!(code, want, "{method} {path}: {answer}");
    }
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(4 << 20));
    let mut front = running.front().await;
    assert_eq!(send(&mut front, master(Request::post(wishes)), &large).await.unwrap().0, 413);
    let maps = format!(r#"{{"a":[{}{{}}]}}"#, r#"{"a":1},"#.repeat(300_000));
    let mut front = running.front().await;
    assert_eq!(send(&mut front, master(Request::post(wishes)), &maps).await.unwrap().0, 413);
    let mut front = running.front().await;
    let eve = Request::post(wishes).header("x-remote-user", "eve");
    assert_eq!(send(&mut front, eve, "{").await.unwrap().0, 403, "what a body is does not count before");
    assert_eq!(running.echo.heard.lock().unwrap().len(), 1);
}
