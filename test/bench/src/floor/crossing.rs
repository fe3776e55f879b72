//! The floor of `MultiClusterServices`: what one costs at least.
//!
//! ```text
//!   hub: a "MultiClusterService" ─▶ its finalizer and id; the binding of its Service
//!                                   then the Service in the provider and, followed by the slice, in every consumer
//!                                   then the binding's status, its own status, two events
//!   A: a slice changes ───────────▶ one PUT per consumer
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use futures_util::StreamExt;
use futures_util::future::{join, join_all};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Resource;
use kube::api::{Api, DynamicObject, PostParams, Request};
use serde_json::Value;

use super::in_hub::Hub;
use super::{Floor, Made, Target, Threads, job, of_role, watch};
use crate::environment::Cluster;
use crate::error::Error;
use crate::objects::SOURCE;
use crate::objects::hub as objects;
use crate::options::Who;
use crate::stand_in::StandIn;

impl Floor {
    /// Starts the floor of `MultiClusterServices` in `hub`, with `source` as the provider.
    pub(crate) async fn of_crossings(
        hub: &Cluster,
        source: &Cluster,
        consumers: &[Cluster],
    ) -> Result<Self, Error> {
        let threads = Threads::start()?;
        let jobs = Arc::new(AtomicUsize::new(0));
        let (hub, source, consumers) = (hub.clone(), source.clone(), consumers.to_vec());
        let of_state = Arc::clone(&jobs);
        threads
            .run(async move {
                let mut targets = Vec::new();
                for consumer in &consumers {
                    targets.push(Target::new(consumer.client().await?, Who::Floor));
                }
                let sides = Sides {
                    hub: Hub::new(hub.client().await?),
                    provider: Target::new(source.client().await?, Who::Floor),
                    provider_name: source.name.clone(),
                    consumers: targets,
                    consumer_names: consumers.into_iter().map(|consumer| consumer.name).collect(),
                };
                let state = State { sides: Arc::new(sides), services: HashMap::new(), jobs: of_state };
                tokio::spawn(state.run(hub.client().await?, source.client().await?));
                Ok(())
            })
            .await?;
        Ok(Self { threads, jobs })
    }
}

/// Everybody who is written to.
struct Sides {
    hub: Hub,
    provider: Target,
    provider_name: String,
    consumers: Vec<Target>,
    consumer_names: Vec<String>,
}

/// What is known of a service.
#[derive(Default)]
struct Known {
    slice: Option<Arc<EndpointSlice>>,
    crossing: Option<Value>,
    begun: bool,
}

struct State {
    sides: Arc<Sides>,
    services: HashMap<String, Known>,
    jobs: Arc<AtomicUsize>,
}

impl State {
    async fn run(mut self, hub: kube::Client, source: kube::Client) {
        let mut slices = Box::pin(watch(Api::<EndpointSlice>::all(source)));
        let crossings = Api::<DynamicObject>::all_with(hub, &StandIn::Crossing.resource());
        let mut crossings = Box::pin(watch(crossings));
        loop {
            tokio::select! {
                Some(event) = slices.next() => {
                    if let Some((name, slice, gone)) = of_role(event, Who::Floor, SOURCE) {
                        self.slice(&name, (!gone).then_some(slice));
                    }
                }
                Some(event) = crossings.next() => {
                    if let Some((name, crossing, gone)) = of_role(event, Who::Floor, SOURCE) {
                        self.crossing(&name, (!gone).then_some(&crossing));
                    }
                }
                else => return,
            }
        }
    }

    fn slice(&mut self, name: &str, slice: Option<EndpointSlice>) {
        let known = self.services.entry(name.to_owned()).or_default();
        known.slice = slice.map(Arc::new);
        match &known.slice {
            Some(slice) if known.begun => {
                let (sides, slice) = (Arc::clone(&self.sides), Arc::clone(slice));
                job(&self.jobs, async move {
                    join_all(sides.consumers.iter().map(|consumer| consumer.hold(&slice))).await;
                });
            }
            Some(_) => self.begin(name),
            None => {}
        }
    }

    fn crossing(&mut self, name: &str, crossing: Option<&DynamicObject>) {
        let known = self.services.entry(name.to_owned()).or_default();
        known.crossing = crossing.and_then(|crossing| serde_json::to_value(crossing).ok());
        if known.crossing.is_some() {
            return self.begin(name);
        }
        known.begun = false;
        self.sides.consumers.iter().for_each(|consumer| consumer.forget(name));
    }

    /// The first sync of one service, once its slice and its `MultiClusterService` are known.
    fn begin(&mut self, name: &str) {
        let Some(known) = self.services.get_mut(name).filter(|known| !known.begun) else { return };
        let (Some(slice), Some(crossing)) = (&known.slice, &known.crossing) else { return };
        known.begun = true;
        let (sides, slice) = (Arc::clone(&self.sides), Arc::clone(slice));
        let (crossing, name) = (crossing.clone(), name.to_owned());
        job(&self.jobs, async move { sides.bring(&name, &slice, crossing).await });
    }
}

impl Sides {
    async fn bring(&self, name: &str, slice: &EndpointSlice, mut crossing: Value) {
        let clusters: Vec<_> =
            [&self.provider_name].into_iter().chain(&self.consumer_names).cloned().collect();
        // No finalizer: nobody would take it off. A label costs the same.
        crossing["metadata"]["labels"]["bench.atoll.dev/permanent-id"] =
            "00000000-0000-4000-8000-000000000000".into();
        let held = self.hub.put(StandIn::Crossing, &crossing);
        let brought = async {
            let binding = self.hub.bind("Service", name, &clusters).await?;
            let service = &objects::copied_service(name);
            let consumers = self.consumers.iter().map(|consumer| async move {
                consumer.serve(service).await;
                consumer.hold(slice).await;
            });
            join(self.provider.serve(service), join_all(consumers)).await;
            self.hub.say_applied(binding, &clusters).await;
            Some(())
        };
        let (version, _) = join(held, brought).await;
        crossing["metadata"]["resourceVersion"] = version.into();
        crossing["status"] = objects::crossing_status(&self.provider_name, &self.consumer_names);
        self.hub.put_status(StandIn::Crossing, &crossing).await;
        self.hub.tell(name, "SyncServiceSucceed", "Service is propagated to target clusters.").await;
        let dispatched = "EndpointSlice are dispatched successfully";
        self.hub.tell(name, "DispatchEndpointSliceSucceed", dispatched).await;
    }
}

impl Target {
    /// Makes a Service.
    async fn serve(&self, service: &Service) {
        let Ok(body) = serde_json::to_vec(service) else { return };
        let services = Request::new(Service::url_path(&(), Some(self.who.namespace())));
        let Ok(request) = services.create(&PostParams::default(), body) else { return };
        self.send(self.client.request::<Made>(request)).await;
    }
}
