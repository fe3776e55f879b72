//! An API in this process, behind a gate that can refuse requests and cut watches.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options, Service};
use futures_util::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use serde_json::json;
use tokio::sync::watch;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    List,
    /// A list's second page, or a later one.
    Page,
    Watch,
}

/// The API and its gate. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Gate {
    service: Service,
    state: Arc<Mutex<State>>,
    cuts: Arc<watch::Sender<()>>,
}

#[derive(Default)]
struct State {
    refused: BTreeMap<Verb, u16>,
    asked: Vec<Verb>,
}

impl Gate {
    pub(crate) async fn start() -> Self {
        let api = Api::start(Store::memory(), Options::default()).await.unwrap();
        Self { service: api.admin(), state: Arc::default(), cuts: Arc::new(watch::Sender::new(())) }
    }

    /// `ConfigMaps`, through the gate.
    pub(crate) fn maps(&self) -> kube::Api<ConfigMap> {
        kube::Api::namespaced(self.client(), "default")
    }

    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    pub(crate) async fn put(&self, name: &str) {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        self.maps().create(&PostParams::default(), &map).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.maps().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Answers such requests with this code from now on.
    pub(crate) fn refuse(&self, verb: Verb, code: u16) {
        self.state().refused.insert(verb, code);
    }

    pub(crate) fn allow(&self, verb: Verb) {
        self.state().refused.remove(&verb);
    }

    /// Breaks every watch.
    pub(crate) fn cut(&self) {
        self.cuts.send_replace(());
    }

    /// What was asked since the last time.
    pub(crate) fn asked(&self) -> Vec<Verb> {
        std::mem::take(&mut self.state().asked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

fn verb<B>(request: &Request<B>) -> Option<Verb> {
    let query = request.uri().query().unwrap_or_default();
    match request.method().as_str() {
        "GET" if !request.uri().path().ends_with("/configmaps") => None,
        "GET" if query.contains("watch=true") => Some(Verb::Watch),
        "GET" if query.contains("continue=") => Some(Verb::Page),
        "GET" => Some(Verb::List),
        _ => None,
    }
}

impl tower_service::Service<Request<Body>> for Gate {
    type Response = Response<UnsyncBoxBody<Bytes, io::Error>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let verb = verb(&request);
            this.state().asked.extend(verb);
            if let Some(code) = verb.and_then(|verb| this.state().refused.get(&verb).copied()) {
                return Ok(refusal(code));
            }
            let mut cuts = this.cuts.subscribe();
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let answer = this.service.answer(Request::from_parts(head, Full::new(body))).await;
            Ok(answer.map(|body| {
                let frames = BodyStream::new(body).map(|frame| frame.map_err(|never| match never {}));
                if verb != Some(Verb::Watch) {
                    return BodyExt::boxed_unsync(StreamBody::new(frames));
                }
                let cut = async move { drop(cuts.changed().await) };
                let broken = stream::once(async { Err(io::Error::other("the connection is cut")) });
                BodyExt::boxed_unsync(StreamBody::new(frames.take_until(Box::pin(cut)).chain(broken)))
            }))
        })
    }
}

fn refusal(code: u16) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": "", "message": "refused"});
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}
