//! `MultiClusterServices` for one time of leadership: between the hub's API, the engine, the policies and the load balancers.
//!
//! [`super::core`] and [`super::balancing`] decide; this carries their answers to who is concerned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_api::types::MultiClusterService;
use atoll_engine::intent::CrossCluster;
use atoll_engine::names::ServiceKey;
use atoll_lb::controller::Event;
use atoll_member::Permit;
use atoll_member::events::Events;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use super::balancing::{self, LoadBalancers};
use super::core::{Command, MultiClusterServices, Wish};
use super::edge;
use super::watch::{self, Seen};
use super::write;
use crate::leader::lead::Context;
use crate::policies::{Authors, Copied, Implied, Policies, Standing};
use crate::services::brain::Brain;

/// What there is when a leadership begins: nothing is planned before, so that what is not known is not taken for gone.
pub(crate) struct Listed {
    /// What each asks for.
    pub(crate) intents: BTreeMap<ServiceKey, CrossCluster>,
    /// The same, with who wrote it.
    pub(crate) implied: BTreeMap<ServiceKey, Implied>,
    /// Those that are being deleted.
    pub(crate) ending: BTreeSet<ServiceKey>,
}

/// The running controller.
pub(crate) struct Controller {
    core: MultiClusterServices,
    /// Where finalizers, statuses and events are written.
    writes: UnboundedSender<Command>,
    load_balancers: LoadBalancers,
    /// Where the controller of load balancers hears of services; none if they are another controller's.
    balancers: Option<UnboundedSender<Event>>,
    /// Services whose balancers have to be looked at.
    balancing_news: BTreeSet<ServiceKey>,
}

impl Controller {
    /// Lists all there are, then watches and writes until the tasks end.
    pub(crate) async fn start(
        context: &Context,
        permit: &Permit,
        told: &Events,
        hub: &Arc<str>,
        clusterset: &str,
        mut authors: Authors,
        tasks: &mut JoinSet<()>,
    ) -> Result<(Self, Listed, UnboundedReceiver<Seen>), kube::Error> {
        let Context { client, watches, options, .. } = context;
        let objects = list(client).await?;
        let (seen, sees) = unbounded_channel();
        let (writes, to_write) = unbounded_channel();
        let mut controller = Self {
            core: MultiClusterServices::new(options.balancing.is_on()),
            writes,
            load_balancers: LoadBalancers::new(clusterset),
            balancers: balancing::spawn(
                &options.balancing,
                client,
                &options.namespace,
                (permit, told),
                tasks,
            ),
            balancing_news: BTreeSet::new(),
        };
        let mut listed =
            Listed { intents: BTreeMap::new(), implied: BTreeMap::new(), ending: BTreeSet::new() };
        for object in objects {
            let standing = watch::standing(&mut authors, &object).await;
            match controller.take(&object, standing, None) {
                Some(Wish::Cross(key, intent, author)) => {
                    listed.implied.insert(key.clone(), Implied { intent: intent.clone(), author });
                    listed.intents.insert(key, intent);
                }
                Some(Wish::End(key)) => drop(listed.ending.insert(key)),
                Some(Wish::Gone(_)) | None => {}
            }
        }
        tasks.spawn(watch::watch(watches.clone(), authors, seen));
        let (client, permit, told) = (client.clone(), permit.clone(), told.clone());
        tasks.spawn(write::write_all(client, permit, told, Arc::clone(hub), to_write));
        Ok((controller, listed, sees))
    }

    /// The services with a load balancer.
    pub(crate) fn load_balancers(&self) -> &LoadBalancers {
        &self.load_balancers
    }

    /// Where writes to the hub's API go, in order.
    pub(crate) fn writes(&self) -> UnboundedSender<Command> {
        self.writes.clone()
    }

    /// One of them has changed. `listed`: all members are known.
    pub(crate) fn seen(&mut self, seen: Seen, listed: bool, brain: &mut Brain, policies: &Policies) {
        let wish = match seen {
            Seen::There(object, standing) => {
                let key = edge::key(&object).filter(|_| listed);
                let balanced = key.and_then(|key| brain.balanced(&key));
                self.take(&object, standing, balanced.as_deref())
            }
            Seen::Stands(key, standing) => {
                // The policies ask by themselves.
                if let Some(intent) = self.core.stands(&key, standing) {
                    brain.intend(&key, Some(intent));
                }
                return;
            }
            Seen::Gone(namespace, name) => {
                let event = self.load_balancers.gone(&namespace, &name);
                self.tell_balancers(event);
                self.core.gone(&namespace, &name)
            }
        };
        match wish {
            Some(Wish::Cross(key, intent, author)) => {
                policies.imply(key.clone(), Some(Implied { intent: intent.clone(), author }));
                brain.intend(&key, Some(intent));
            }
            Some(Wish::End(key)) => {
                policies.imply(key.clone(), None);
                brain.intend(&key, None);
            }
            Some(Wish::Gone(key)) => {
                policies.imply(key.clone(), None);
                brain.intend_no_more(&key);
            }
            None => {}
        }
    }

    fn take(
        &mut self,
        object: &MultiClusterService,
        standing: Standing,
        balanced: Option<&atoll_engine::plan::Balanced>,
    ) -> Option<Wish> {
        let (wish, commands) = self.core.seen(object, standing, &uuid::Uuid::new_v4().to_string());
        let key = edge::key(object).filter(|key| self.core.has_balancer(key));
        let event = key.and_then(|key| self.load_balancers.seen(&key, object, balanced));
        self.tell_balancers(event);
        self.write(commands);
        wish
    }

    /// What became of the Service of one of them.
    pub(crate) fn copied(&mut self, key: ServiceKey, copied: Copied) {
        self.core.copied(key, copied);
    }

    /// These services were planned anew: tells the controller of load balancers what that means for it. `listed`: all members are known;
    /// until then one that is not known is not gone.
    pub(crate) fn balance(&mut self, planned: BTreeSet<ServiceKey>, listed: bool, brain: &Brain) {
        self.balancing_news.extend(planned);
        if !listed {
            return;
        }
        for key in std::mem::take(&mut self.balancing_news) {
            let event = self.load_balancers.look_at(&key, brain.balanced(&key).as_deref());
            self.tell_balancers(event);
        }
    }

    /// Brings what is shown on them up to date.
    pub(crate) fn show(&mut self, brain: &mut Brain) {
        let mut news = brain.crossing_news();
        news.append(&mut self.core.news());
        self.look_at(news, brain, false);
    }

    /// Shows what has been under way for a while.
    pub(crate) fn show_overdue(&mut self, brain: &Brain) {
        let overdue = self.core.overdue();
        self.look_at(overdue, brain, true);
    }

    fn look_at(&mut self, keys: BTreeSet<ServiceKey>, brain: &Brain, overdue: bool) {
        let now = format!("{:.0}", jiff::Timestamp::now());
        for key in keys {
            let commands = self.core.look_at(&key, &brain.view(&key), &now, overdue);
            self.write(commands);
        }
    }

    fn write(&self, commands: Vec<Command>) {
        for command in commands {
            let _ = self.writes.send(command); // the writer ends with the leadership
        }
    }

    fn tell_balancers(&self, event: Option<Event>) {
        if let (Some(events), Some(event)) = (&self.balancers, event) {
            let _ = events.send(event);
        }
    }
}

async fn list(client: &Client) -> Result<Vec<MultiClusterService>, kube::Error> {
    Ok(Api::<MultiClusterService>::all(client.clone()).list(&ListParams::default()).await?.items)
}
