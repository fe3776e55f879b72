//! The API that is fed: in this process and in memory.

use crate::parsers::World;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options, Service};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Collected, Full};
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// An API with a custom kind, and the runtime that it lives in.
pub struct Server {
    runtime: Runtime,
    service: Service,
    _api: Api,
    names: Cell<u64>,
    world: World,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) body: Value,
}

impl Server {
    /// Starts one.
    ///
    /// # Errors
    /// It does not start, or does not take the custom kind.
    pub fn start() -> anyhow::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let api = runtime.block_on(Api::start(Store::memory(), Options::default()))?;
        let server =
            Self { service: api.admin(), runtime, _api: api, names: Cell::new(0), world: World::new()? };
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = server.ask("POST", path, "application/json", definition().to_string().into_bytes());
        let made = made.map_err(anyhow::Error::msg)?;
        anyhow::ensure!(made.code == StatusCode::CREATED, "the custom kind is refused: {}", made.body);
        for _ in 0..1000 {
            let served = server.ask("GET", "/apis/fuzz.io/v1/namespaces/default/things", "", Vec::new());
            if served.is_ok_and(|answer| answer.code == StatusCode::OK) {
                return Ok(server);
            }
            server.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(5)).await });
        }
        anyhow::bail!("the custom kind is never served")
    }

    /// What parsers need.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// A name that nothing has.
    pub(crate) fn name(&self) -> String {
        self.names.set(self.names.get() + 1);
        format!("fuzz-{}", self.names.get())
    }

    /// Asks. An answer that is no JSON, or an error that is no Status, is an error.
    pub(crate) fn ask(&self, method: &str, path: &str, kind: &str, body: Vec<u8>) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(path);
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        // What is no request can't be sent, so it is nothing to worry about.
        let Ok(request) = request.body(Full::new(Bytes::from(body))) else {
            return Ok(Answer { code: StatusCode::BAD_REQUEST, body: Value::Null });
        };
        let (code, bytes) = self.runtime.block_on(async {
            let (head, body) = self.service.answer(request).await.into_parts();
            let bytes = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            (head.status, bytes)
        });
        if code == StatusCode::NOT_FOUND && bytes.starts_with(b"404 page not found") {
            return Ok(Answer { code, body: Value::Null });
        }
        let body: Value = serde_json::from_slice(&bytes)
            .map_err(|error| format!("{code}: {error}: {}", String::from_utf8_lossy(&bytes)))?;
        let is_status = body["kind"] == "Status" && body["code"] == code.as_u16();
        if code.is_success() || is_status {
            Ok(Answer { code, body })
        } else {
            Err(format!("{code}: no Status: {body}"))
        }
    }
}

/// A kind with something of everything that a schema can ask for.
fn definition() -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 1},
            "color": {"type": "string", "enum": ["red", "green"]},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "port": {"x-kubernetes-int-or-string": true},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["key"],
                "items": {"type": "object", "required": ["key"], "properties": {
                    "key": {"type": "string"}, "value": {"type": "string", "nullable": true}}}}},
            "x-kubernetes-validations": [{"rule": "!has(self.color) || self.size < 10", "message": "too large for a color"}]},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.fuzz.io"},
        "spec": {"group": "fuzz.io", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}}}]}})
}
