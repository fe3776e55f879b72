//! An API of four kinds, in memory: lists, watches, and ways to break them.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Line = Result<Frame<Bytes>, std::io::Error>;

/// The API. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct FakeApi(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: Vec<(&'static str, Value)>,
    watches: Vec<(&'static str, mpsc::UnboundedSender<Line>)>,
    gone: bool,
    version: u64,
}

const KINDS: [&str; 4] = ["serviceimports", "endpointslices", "clusterproperties", "services"];

impl FakeApi {
    pub(crate) fn client(&self) -> kube::Client {
        let api = self.clone();
        kube::Client::new(
            tower::service_fn(move |request: Request<Body>| {
                let response = api.answer(request.uri());
                async { Ok::<_, Infallible>(response) }
            }),
            "default",
        )
    }

    /// Puts an object, and tells who watches.
    pub(crate) fn put(&self, kind: &'static str, object: &Value) {
        let mut state = self.state();
        state.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        let same = |other: &Value| {
            ["name", "namespace"].iter().all(|key| other["metadata"][key] == object["metadata"][key])
        };
        let before = state.objects.len();
        state.objects.retain(|(known, other)| *known != kind || !same(other));
        let verb = if state.objects.len() < before { "MODIFIED" } else { "ADDED" };
        state.objects.push((kind, object.clone()));
        state.tell(kind, verb, &object);
    }

    pub(crate) fn delete(&self, kind: &'static str, name: &str) {
        let mut state = self.state();
        let place = state
            .objects
            .iter()
            .position(|(known, object)| *known == kind && object["metadata"]["name"] == name);
        let (_, object) = state.objects.remove(place.unwrap());
        state.tell(kind, "DELETED", &object);
    }

    /// Breaks every watch and refuses everything, until it is [back](FakeApi::come_back).
    pub(crate) fn go(&self) {
        let mut state = self.state();
        state.gone = true;
        for (_, watch) in state.watches.drain(..) {
            let _ = watch.send(Err(std::io::Error::other("the server is gone")));
        }
    }

    pub(crate) fn come_back(&self) {
        self.state().gone = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn answer(&self, uri: &http::Uri) -> Response<BoxBody<Bytes, std::io::Error>> {
        let mut state = self.state();
        let whole = |code: StatusCode, value: &Value| {
            let body = Full::new(Bytes::from(value.to_string())).map_err(|never| match never {}).boxed();
            let mut response = Response::new(body);
            *response.status_mut() = code;
            response
        };
        if state.gone {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503,
                "reason": "ServiceUnavailable", "message": "gone"});
            return whole(StatusCode::SERVICE_UNAVAILABLE, &status);
        }
        let kind = *KINDS.iter().find(|kind| uri.path().ends_with(*kind)).unwrap();
        let asked = uri.query().unwrap_or_default();
        if asked.contains("watch=true") {
            // It keeps no history: whoever missed something has to list again.
            if !asked.split('&').any(|part| part == format!("resourceVersion={}", state.version)) {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
                    "reason": "Expired", "message": "too old"});
                return whole(StatusCode::GONE, &status);
            }
            let (sender, lines) = mpsc::unbounded_channel();
            state.watches.push((kind, sender));
            let lines = stream::unfold(lines, async |mut lines| Some((lines.recv().await?, lines)));
            return Response::new(BodyExt::boxed(StreamBody::new(lines)));
        }
        let items: Vec<_> =
            state.objects.iter().filter(|(known, _)| *known == kind).map(|(_, object)| object).collect();
        let version = state.version.to_string();
        whole(
            StatusCode::OK,
            &json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items}),
        )
    }
}

impl State {
    fn tell(&self, kind: &str, verb: &str, object: &Value) {
        let line = format!("{}\n", json!({"type": verb, "object": object}));
        for (_, watch) in self.watches.iter().filter(|(watched, _)| *watched == kind) {
            let _ = watch.send(Ok(Frame::data(Bytes::from(line.clone()))));
        }
    }
}

/// A ServiceImport in `shop`.
pub(crate) fn import(name: &str, kind: &str, ips: &[&str]) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"type": kind, "ips": ips, "ports": [{"name": "http", "protocol": "TCP", "port": 80}]},
    })
}

/// A Service in `shop`.
pub(crate) fn service(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"clusterIP": address, "clusterIPs": [address], "ports": [{"name": "http", "port": 80}]},
    })
}

/// A slice of `service`, from paris.
pub(crate) fn slice(name: &str, service: &str, addresses: &[String]) -> Value {
    let endpoints: Vec<_> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "shop", "labels": {
            "multicluster.kubernetes.io/service-name": service,
            "multicluster.kubernetes.io/source-cluster": "paris",
        }},
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": endpoints,
    })
}
