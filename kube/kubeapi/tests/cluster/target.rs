//! The server that a case talks to, and what it is asked.

use std::fmt::Write as _;
use std::time::Duration;

use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::watching::Watching;

/// How long any one answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to reach a server as its administrator.
#[derive(Clone)]
pub(crate) struct Way {
    /// `https://host:port`.
    pub(crate) server: String,
    /// The PEM text of the certificate that the server's own is signed by.
    pub(crate) ca: String,
    /// A bearer token of an administrator.
    pub(crate) token: String,
    /// A kubeconfig of an administrator, for other programs.
    pub(crate) kubeconfig: std::path::PathBuf,
}

/// A server under test, as one case sees it.
#[derive(Clone)]
pub(crate) struct Target {
    /// Whether this is a real kube-apiserver: golden answers are recorded from it.
    pub(crate) real: bool,
    /// The way in.
    pub(crate) way: Way,
    /// An administrator's client.
    pub(crate) client: kube::Client,
    /// Carries raw requests; it adds no credentials.
    bare: kube::Client,
    /// The case's name, `file::case`.
    pub(crate) case: String,
    /// Differs from run to run, so that a server can be tested twice.
    pub(crate) run: String,
}

impl Target {
    pub(crate) fn new(real: bool, way: Way, run: &str) -> anyhow::Result<Self> {
        let client = client(&way, true)?;
        let bare = client_without_credentials(&way)?;
        Ok(Self { real, way, client, bare, case: String::new(), run: run.to_owned() })
    }

    pub(crate) fn for_case(&self, case: &str) -> Self {
        Self { case: case.to_owned(), ..self.clone() }
    }

    /// A DNS label that only this case of this run uses.
    pub(crate) fn label(&self) -> String {
        let case = self.case.rsplit("::").next().unwrap_or_default().replace('_', "-");
        let short: String = case.chars().take(44).collect();
        format!("{}-{}", short.trim_end_matches('-'), self.run)
    }

    /// Makes this case's namespace.
    pub(crate) async fn namespace(&self) -> String {
        let name = self.label();
        self.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await.created();
        name
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Call::new(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Call::new(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Call::new(Method::PUT, path).json(&body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Call::new(Method::DELETE, path)).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: Value) -> Answer {
        self.send(Call::new(Method::DELETE, path).json(&options)).await
    }

    pub(crate) async fn patch(&self, path: &str, kind: Patch, body: Value) -> Answer {
        self.send(Call::patch(path, kind, &body)).await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> Answer {
        self.patch(path, Patch::Merge, body).await
    }

    /// Sends `call` as the administrator unless it says otherwise.
    pub(crate) async fn send(&self, call: Call) -> Answer {
        let said = call.to_string();
        let exchange = async {
            let response = self.bare.send(call.request(&self.way.token)).await;
            let response = response.unwrap_or_else(|error| panic!("{said}: no answer: {error}"));
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.unwrap_or_else(|error| panic!("{said}: broken off: {error}"));
            Answer::new(said.clone(), head.status.as_u16(), head.headers, bytes.to_bytes().to_vec())
        };
        tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(|_| panic!("{said}: no answer in time"))
    }

    /// Opens a watch; `path` has its query already, but for `watch=1`.
    pub(crate) async fn watch(&self, path: &str) -> Watching {
        self.watch_as(path, &[]).await
    }

    pub(crate) async fn watch_as(&self, path: &str, headers: &[(&str, &str)]) -> Watching {
        let sign = if path.contains('?') { '&' } else { '?' };
        let mut call = Call::new(Method::GET, &format!("{path}{sign}watch=1"));
        for (name, value) in headers {
            call = call.header(name, value);
        }
        let said = call.to_string();
        let response = tokio::time::timeout(PATIENCE, self.bare.send(call.request(&self.way.token))).await;
        let response = response.unwrap_or_else(|_| panic!("{said}: no answer in time"));
        let response = response.unwrap_or_else(|error| panic!("{said}: no answer: {error}"));
        Watching::of(said, response).await
    }

    /// Looks at `path` until `content` is; fails after half a minute, showing the last answer.
    pub(crate) async fn until(&self, path: &str, content: impl Fn(&Answer) -> bool) -> Answer {
        self.until_answered(&Call::get(path), content).await
    }

    /// Sends `call` until the answer is as awaited: servers read roles, policies, schemas and tokens through caches.
    pub(crate) async fn until_answered(&self, call: &Call, content: impl Fn(&Answer) -> bool) -> Answer {
        let give_up = tokio::time::Instant::now() + Duration::from_secs(30);
        loop {
            let answer = self.send(call.clone()).await;
            if content(&answer) {
                return answer;
            }
            assert!(tokio::time::Instant::now() < give_up, "never as awaited: {answer}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until `path` answers 404.
    pub(crate) async fn until_gone(&self, path: &str) {
        self.until(path, |answer| answer.code == 404).await;
    }
}

/// The four ways to change a part of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patch {
    Json,
    Merge,
    Strategic,
}

impl Patch {
    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

/// A request to be.
#[derive(Clone)]
pub(crate) struct Call {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Vec<u8>,
    remark: &'static str,
    authorization: Option<String>,
}

impl Call {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        let (headers, body) = (HeaderMap::new(), Vec::new());
        Self { method, path: path.to_owned(), headers, body, remark: "", authorization: None }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &str, body: &Value) -> Self {
        Self::new(Method::POST, path).json(body)
    }

    pub(crate) fn put(path: &str, body: &Value) -> Self {
        Self::new(Method::PUT, path).json(body)
    }

    pub(crate) fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub(crate) fn patch(path: &str, kind: Patch, body: &Value) -> Self {
        let mut call = Self::new(Method::PATCH, path).body(kind.content_type(), body.to_string());
        call.remark = match kind {
            Patch::Json => "JSON ",
            Patch::Merge => "merge ",
            Patch::Strategic => "strategic ",
        };
        call
    }

    /// A server-side apply, not forced.
    pub(crate) fn apply(path: &str, manager: &str, body: &Value) -> Self {
        let call = Self::new(Method::PATCH, path).query("fieldManager", manager);
        let mut call = call.body("application/apply-patch+yaml", body.to_string());
        call.remark = "apply ";
        call
    }

    pub(crate) fn force(self) -> Self {
        self.query("force", "true")
    }

    /// Adds `name=value`, percent-encoded, to the query.
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        let sign = if self.path.contains('?') { '&' } else { '?' };
        let _ = write!(self.path, "{sign}{name}={}", escaped(value));
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        let name: http::HeaderName = name.parse().expect("a header's name is well-formed");
        self.headers.append(name, value.parse().expect("a header's value is well-formed"));
        self
    }

    pub(crate) fn accept(self, value: &str) -> Self {
        self.header("accept", value)
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    pub(crate) fn body(mut self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.headers.insert("content-type", content_type.parse().expect("a content type is well-formed"));
        self
    }

    /// Sends this bearer token instead of the administrator's.
    pub(crate) fn bearer(self, token: &str) -> Self {
        self.authorization(&format!("Bearer {token}"))
    }

    /// Sends this instead of the administrator's credentials; nothing if empty.
    pub(crate) fn authorization(mut self, value: &str) -> Self {
        self.authorization = Some(value.to_owned());
        self
    }

    fn request(self, admin: &str) -> Request<Body> {
        let mut request = Request::new(Body::from(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path.parse().unwrap_or_else(|error| panic!("{}: {error}", self.path));
        *request.headers_mut() = self.headers;
        let authorization = self.authorization.unwrap_or_else(|| format!("Bearer {admin}"));
        if !authorization.is_empty() {
            let value = authorization.parse().expect("credentials are well-formed");
            request.headers_mut().insert("authorization", value);
        }
        request.headers_mut().entry("user-agent").or_insert(http::HeaderValue::from_static("contract/1"));
        request
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{} {}", self.remark, self.method, self.path)
    }
}

/// Everything but unreserved characters, percent-encoded.
pub(crate) fn escaped(value: &str) -> String {
    value.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(byte.into());
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

fn client_without_credentials(way: &Way) -> anyhow::Result<kube::Client> {
    client(way, false)
}

fn client(way: &Way, admin: bool) -> anyhow::Result<kube::Client> {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;
    let mut config = kube::Config::new(way.server.parse()?);
    let roots: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(way.ca.as_bytes()).map(|der| der.map(|der| der.to_vec())).collect();
    config.root_cert = Some(roots?);
    config.connect_timeout = Some(Duration::from_secs(10));
    config.read_timeout = Some(Duration::from_secs(60));
    config.default_retry = false;
    if admin {
        config.auth_info.token = Some(way.token.clone().into());
    }
    Ok(kube::Client::try_from(config)?)
}
