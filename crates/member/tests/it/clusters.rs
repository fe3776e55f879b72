//! Clusters that are only an API, in this process; every request to them is noted.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use atoll_audit::Log;
use atoll_engine::names::ClusterId;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options, Service};
use atoll_member::{Auditor, Clients};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube::client::{Body, ClientBuilder};

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    name: &'static str,
    client: kube::Client,
    service: Noting,
    noted: Arc<Mutex<Vec<Noted>>>,
    audit: Option<Log>,
}

/// Two clusters.
pub(crate) struct Clusters(Vec<Cluster>);

/// A request that was answered with success.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    pub(crate) verb: &'static str,
    pub(crate) namespace: String,
    /// With its subresource: `serviceimports/status`.
    pub(crate) resource: String,
    pub(crate) name: String,
}

impl Clusters {
    /// Two fresh clusters.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Ok(Self(vec![Cluster::start("member1").await?, Cluster::start("member2").await?]))
    }

    /// What is written into them is noted in this log.
    pub(crate) fn audited(mut self, log: &Log) -> Self {
        self.0.iter_mut().for_each(|cluster| cluster.audit = Some(log.clone()));
        self
    }

    pub(crate) fn member(&self, number: usize) -> &Cluster {
        &self.0[number - 1]
    }

    pub(crate) fn clusters(&self) -> &[Cluster] {
        &self.0
    }
}

impl Cluster {
    async fn start(name: &'static str) -> anyhow::Result<Self> {
        let api = Api::start(Store::memory(), Options::default()).await?;
        let noted = Arc::default();
        let service = Noting { service: api.admin(), noted: Arc::clone(&noted) };
        Ok(Self { name, client: kube::Client::new(service.clone(), "default"), service, noted, audit: None })
    }

    pub(crate) fn name(&self) -> &str {
        self.name
    }

    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// What a member works with.
    pub(crate) fn clients(&self) -> Clients {
        let Some(log) = &self.audit else { return Clients::within(&self.client) };
        let auditor = Auditor::new(log.clone(), ClusterId::parse(self.name).unwrap(), "atoll-hub");
        let client = ClientBuilder::new(self.service.clone(), "default").with_layer(&auditor).build();
        Clients::within(&client).audited()
    }

    /// The requests from now on.
    pub(crate) fn recorder(&self) -> Recorder {
        let since = self.noted.lock().unwrap_or_else(PoisonError::into_inner).len();
        Recorder { noted: Arc::clone(&self.noted), since }
    }
}

/// The requests since some moment.
pub(crate) struct Recorder {
    noted: Arc<Mutex<Vec<Noted>>>,
    since: usize,
}

impl Recorder {
    pub(crate) fn requests(&self) -> Vec<Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)[self.since..].to_vec()
    }
}

/// An API that notes what it is asked.
#[derive(Clone)]
struct Noting {
    service: Service,
    noted: Arc<Mutex<Vec<Noted>>>,
}

impl tower_service::Service<Request<Body>> for Noting {
    type Response = Response<atoll_kubeapi::Body>;
    type Error = std::convert::Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let noted =
                note(head.method.as_str(), head.uri.path(), head.uri.query().unwrap_or_default(), &body);
            let answer = this.service.answer(Request::from_parts(head, Full::new(body))).await;
            if let Some(noted) = noted.filter(|_| answer.status().is_success()) {
                this.noted.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
            }
            Ok(answer)
        })
    }
}

/// What a request on a namespaced resource asks for.
fn note(method: &str, path: &str, query: &str, body: &[u8]) -> Option<Noted> {
    let (_, rest) = path.split_once("/namespaces/")?;
    let mut parts = rest.split('/');
    let (namespace, resource) = (parts.next()?, parts.next()?);
    let (name, sub) = (parts.next().unwrap_or_default(), parts.next());
    let verb = match (method, name) {
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", _) => "delete",
        ("GET", "") if query.contains("watch=true") => "watch",
        ("GET", "") => "list",
        _ => "get",
    };
    let made = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let name = if name.is_empty() { made["metadata"]["name"].as_str().unwrap_or_default() } else { name };
    let resource = sub.map_or_else(|| resource.to_owned(), |sub| format!("{resource}/{sub}"));
    Some(Noted { verb, namespace: namespace.to_owned(), resource, name: name.to_owned() })
}

/// Waits until something is so: `Err` says how it is.
pub(crate) async fn until<T>(
    what: &str,
    mut is: impl AsyncFnMut() -> Result<T, String>,
) -> anyhow::Result<T> {
    let give_up = tokio::time::Instant::now() + PATIENCE;
    loop {
        match is().await {
            Ok(value) => return Ok(value),
            Err(how) if tokio::time::Instant::now() >= give_up => {
                anyhow::bail!("{what} did not happen within {PATIENCE:?}; last seen: {how}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}
