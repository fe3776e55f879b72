//! Knows every pod of the member, and sees to it that each of its own is run by one worker.

use super::runtime::PodKey;
use super::{Shared, key, spec, worker};
use crate::network::Alive;
use atoll_watch::{Config, Event};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A pod that runs, or has run, here.
struct Kept {
    key: PodKey,
    newest: watch::Sender<Arc<Pod>>,
    /// Dropped, the pod ends at once.
    _worker: JoinSet<()>,
}

struct Keeper {
    shared: Arc<Shared>,
    pods: HashMap<(String, String), Kept>,
    /// What a list has told so far: addresses are given when all that are in use are known.
    list: Option<Vec<Pod>>,
    alive: Alive,
}

pub(super) async fn run(shared: Arc<Shared>, alive: Alive) {
    let pods: Api<Pod> = Api::all(shared.client.clone());
    let mut keeper = Keeper { shared, pods: HashMap::new(), list: None, alive };
    let mut events = std::pin::pin!(atoll_watch::watch(pods, Config::default()));
    while let Some(event) = events.next().await {
        keeper.hear(event);
    }
}

impl Keeper {
    fn hear(&mut self, event: Event<Pod>) {
        match event {
            Event::ListStarted => self.list = Some(Vec::new()),
            Event::Seen(pod) => match &mut self.list {
                Some(list) => list.push(pod),
                None => self.see(pod),
            },
            Event::Gone(pod) => self.lose(&key(&pod)),
            Event::Listed => {
                let list = self.list.take().unwrap_or_default();
                self.listed(list);
            }
            Event::Following => {}
            Event::Failed(failure) => tracing::debug!(%failure, "a watch of pods failed"),
        }
    }

    fn listed(&mut self, list: Vec<Pod>) {
        let there: HashSet<PodKey> = list.iter().map(key).collect();
        let lost: Vec<PodKey> =
            self.pods.values().map(|kept| kept.key.clone()).filter(|key| !there.contains(key)).collect();
        for key in &lost {
            self.lose(key);
        }
        {
            let mut addresses = self.shared.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            for pod in list.iter().filter(|pod| spec::is_for(pod, &self.shared.name) && !spec::is_over(pod)) {
                if let Some(address) = spec::address(pod) {
                    addresses.claim(address, &key(pod).uid);
                }
            }
        }
        for pod in list {
            self.see(pod);
        }
    }

    fn see(&mut self, pod: Pod) {
        let key = key(&pod);
        let place = (key.namespace.clone(), key.name.clone());
        if let Some(kept) = self.pods.get(&place).filter(|kept| kept.key == key) {
            kept.newest.send_replace(Arc::new(pod));
            return;
        }
        // Another pod of that name is gone.
        if let Some(old) = self.pods.get(&place).map(|kept| kept.key.clone()) {
            self.lose(&old);
        }
        // One that has ended for good is left alone, unless it was deleted in its last moment.
        let over = spec::is_over(&pod) && pod.metadata.deletion_timestamp.is_none();
        if over || !spec::is_for(&pod, &self.shared.name) {
            return;
        }
        let (newest, changes) = watch::channel(Arc::new(pod));
        let mut worker = JoinSet::new();
        worker.spawn(worker::run(Arc::clone(&self.shared), changes, self.alive.clone()));
        self.pods.insert(place, Kept { key, newest, _worker: worker });
    }

    fn lose(&mut self, key: &PodKey) {
        let place = (key.namespace.clone(), key.name.clone());
        if self.pods.get(&place).is_some_and(|kept| kept.key == *key) {
            self.pods.remove(&place);
            self.shared.runtime.forget(key);
        }
    }
}
