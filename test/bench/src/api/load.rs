//! Many clients that write as fast as they are answered.

use super::Server;
use super::ready::{client, get};
use super::report::Rate;
use crate::error::{Doing, Error};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::task::JoinSet;

pub(super) const NAMESPACE: &str = "atoll-bench-api";
/// With its metadata an object is about a kilobyte.
const TEXT: usize = 600;

/// Clients of one server.
pub(super) struct Load {
    server: String,
    clients: Vec<kube::Client>,
}

/// What the clients do.
#[derive(Clone, Copy)]
enum Doings {
    Create,
    Update(usize),
}

impl Load {
    /// Opens a connection per client, and makes the namespace, or empties what a run left that broke off.
    pub(super) async fn on(server: &dyn Server, clients: usize) -> Result<Self, Error> {
        let mut load = Self { server: server.name().to_owned(), clients: Vec::new() };
        for _ in 0..clients {
            let client = client(server).await?;
            client.request_text(get("/version")).await.doing(|| format!("ask {}", server.name()))?;
            load.clients.push(client);
        }
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
        let made = load.first("POST", "/api/v1/namespaces", body.to_string().into_bytes()).await;
        match made {
            Err(kube::Error::Api(status)) if status.code == 409 => load.empty().await?,
            made => made.doing(|| format!("make a namespace in {}", server.name()))?,
        }
        Ok(load)
    }

    /// Deletes the namespace, and all that is in it.
    pub(super) async fn clear(&self) -> Result<(), Error> {
        self.empty().await?;
        let gone = self.first("DELETE", &format!("/api/v1/namespaces/{NAMESPACE}"), Vec::new()).await;
        gone.doing(|| format!("delete the namespace in {}", self.server))
    }

    async fn empty(&self) -> Result<(), Error> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?labelSelector=app%3Dbench");
        let gone = self.first("DELETE", &path, Vec::new()).await;
        gone.doing(|| format!("delete objects in {}", self.server))
    }

    /// A request of the first client.
    async fn first(&self, method: &str, path: &str, body: Vec<u8>) -> Result<(), kube::Error> {
        match self.clients.first() {
            Some(first) => first.request_text(send(method, path, body)).await.map(|_| ()),
            None => Ok(()),
        }
    }

    pub(super) async fn create(&self, objects: Range<usize>) -> Result<Rate, Error> {
        self.run(objects, Doings::Create).await
    }

    pub(super) async fn update(&self, objects: Range<usize>, round: usize) -> Result<Rate, Error> {
        self.run(objects, Doings::Update(round)).await
    }

    async fn run(&self, objects: Range<usize>, doings: Doings) -> Result<Rate, Error> {
        let next = Arc::new(AtomicUsize::new(objects.start));
        let mut running = JoinSet::new();
        let begun = Instant::now();
        for client in &self.clients {
            let (client, next, end) = (client.clone(), next.clone(), objects.end);
            running.spawn(async move {
                let mut times = Vec::new();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= end {
                        return Ok(times);
                    }
                    let request = doings.request(at);
                    let sent = Instant::now();
                    client.request_text(request).await?;
                    times.push(sent.elapsed().as_secs_f64() * 1e3);
                }
            });
        }
        let mut times = Vec::with_capacity(objects.len());
        while let Some(ended) = running.join_next().await {
            let ended: Result<Vec<f64>, kube::Error> =
                ended.map_err(|error| Error::Hook { action: "write", why: error.to_string() })?;
            times.extend(ended.doing(|| format!("write to {}", self.server))?);
        }
        Ok(Rate::of(times, begun.elapsed()))
    }
}

impl Doings {
    fn request(self, at: usize) -> http::Request<Vec<u8>> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
        match self {
            Self::Create => send("POST", &path, config_map(&name(at), "created")),
            Self::Update(round) => send(
                "PUT",
                &format!("{path}/{}", name(at)),
                config_map(&name(at), &format!("updated {round}")),
            ),
        }
    }
}

fn name(at: usize) -> String {
    format!("object-{at:06}")
}

pub(super) fn config_map(name: &str, says: &str) -> Vec<u8> {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "app": "bench" } },
        "data": { "says": says, "text": "x".repeat(TEXT) },
    })
    .to_string()
    .into_bytes()
}

pub(super) fn send(method: &str, path: &str, body: Vec<u8>) -> http::Request<Vec<u8>> {
    let mut request = get(path);
    *request.method_mut() = method.parse().unwrap_or_default();
    *request.body_mut() = body;
    request
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    request
}
