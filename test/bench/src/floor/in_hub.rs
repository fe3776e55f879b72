//! What the floors of policies and of `MultiClusterServices` write into the hub's API, on kinds that stand in for the product's.

use kube::api::{PostParams, Request};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{IN_FLIGHT, Made};
use crate::objects::hub as objects;
use crate::options::Who;
use crate::stand_in::StandIn;

/// The hub's API, written to with one client, 16 requests in flight.
pub(super) struct Hub {
    client: kube::Client,
    permits: Semaphore,
}

impl Hub {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client, permits: Semaphore::new(IN_FLIGHT) }
    }

    /// Makes the binding of a template of `kind`; what is needed to write its status.
    pub(super) async fn bind(&self, kind: &str, name: &str, clusters: &[String]) -> Option<Value> {
        let mut binding = objects::stand_in_binding(kind, name, clusters);
        let request = of(StandIn::Binding).create(&PostParams::default(), binding.to_string().into_bytes());
        let version = self.send(request).await?;
        binding["metadata"]["resourceVersion"] = version.into();
        Some(binding)
    }

    /// Says on a binding that all is done.
    pub(super) async fn say_applied(&self, mut binding: Value, clusters: &[String]) {
        binding["status"] = objects::binding_status(clusters);
        self.put_status(StandIn::Binding, &binding).await;
    }

    /// Writes an object's metadata; its new version.
    pub(super) async fn put(&self, stand_in: StandIn, object: &Value) -> Option<String> {
        let name = object["metadata"]["name"].as_str()?;
        self.send(of(stand_in).replace(name, &PostParams::default(), object.to_string().into_bytes())).await
    }

    pub(super) async fn put_status(&self, stand_in: StandIn, object: &Value) {
        let Some(name) = object["metadata"]["name"].as_str() else { return };
        let body = object.to_string().into_bytes();
        self.send(of(stand_in).replace_subresource("status", name, &PostParams::default(), body)).await;
    }

    /// Tells something about a service.
    pub(super) async fn tell(&self, about: &str, reason: &str, message: &str) {
        let event = objects::stand_in_event(about, reason, message);
        let events = Request::new(format!("/api/v1/namespaces/{}/events", Who::Floor.namespace()));
        self.send(events.create(&PostParams::default(), event.to_string().into_bytes())).await;
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Option<String> {
        let _permit = self.permits.acquire().await.ok()?;
        let made = match request {
            Ok(request) => self.client.request::<Made>(request).await,
            Err(error) => Err(kube::Error::BuildRequest(error)),
        };
        let made =
            made.inspect_err(|error| eprintln!("bench: a write of the floor in the hub failed: {error}"));
        made.ok()?.metadata.resource_version
    }
}

fn of(stand_in: StandIn) -> Request {
    Request::new(stand_in.path(Who::Floor.namespace()))
}
