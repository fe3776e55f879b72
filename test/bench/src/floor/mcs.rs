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
    pub(crate) async fn of_mcs(
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
    mcs: Option<Value>,
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
        let intents = Api::<DynamicObject>::all_with(hub, &StandIn::Mcs.resource());
        let mut intents = Box::pin(watch(intents));
        loop {
            tokio::select! {
                Some(event) = slices.next() => {
                    if let Some((name, slice, gone)) = of_role(event, Who::Floor, SOURCE) {
                        self.slice(&name, (!gone).then_some(slice));
                    }
                }
                Some(event) = intents.next() => {
                    if let Some((name, mcs, gone)) = of_role(event, Who::Floor, SOURCE) {
                        self.mcs(&name, (!gone).then_some(&mcs));
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

    fn mcs(&mut self, name: &str, mcs: Option<&DynamicObject>) {
        let known = self.services.entry(name.to_owned()).or_default();
        known.mcs = mcs.and_then(|mcs| serde_json::to_value(mcs).ok());
        if known.mcs.is_some() {
            return self.begin(name);
        }
        known.begun = false;
        self.sides.consumers.iter().for_each(|consumer| consumer.forget(name));
    }

    /// The first sync of one service, once its slice and its `MultiClusterService` are known.
    fn begin(&mut self, name: &str) {
        let Some(known) = self.services.get_mut(name).filter(|known| !known.begun) else { return };
        let (Some(slice), Some(mcs)) = (&known.slice, &known.mcs) else { return };
        known.begun = true;
        let (sides, slice) = (Arc::clone(&self.sides), Arc::clone(slice));
        let (mcs, name) = (mcs.clone(), name.to_owned());
        job(&self.jobs, async move { sides.bring(&name, &slice, mcs).await });
    }
}

impl Sides {
    async fn bring(&self, name: &str, slice: &EndpointSlice, mut mcs: Value) {
        let clusters: Vec<_> =
            [&self.provider_name].into_iter().chain(&self.consumer_names).cloned().collect();
        // No finalizer: nothing would remove it. A label costs the same.
        mcs["metadata"]["labels"]["bench.atoll.dev/permanent-id"] =
            "00000000-0000-4000-8000-000000000000".into();
        let held = self.hub.put(StandIn::Mcs, &mcs);
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
        mcs["metadata"]["resourceVersion"] = version.into();
        mcs["status"] = objects::mcs_status(&self.provider_name, &self.consumer_names);
        self.hub.put_status(StandIn::Mcs, &mcs).await;
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
