//! A balancer that does what the hub publishes, here or on another machine. It goes on with what it was told last while the hub does not
//! answer, also after a restart of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use atoll_lb::{Balancer, Desired};
use atoll_watch::{Config, Event, watch};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};

use crate::merge::{self, Services};
use crate::{configmap, state};

/// How a balancer follows the hub.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    /// The namespace of the hub in its API.
    pub namespace: String,
    /// The interface that addresses are put on; none if they are there already.
    pub interface: Option<Arc<str>>,
    /// The file that keeps what it was told last; of the form that `atoll lb --config` takes.
    pub state: Option<PathBuf>,
    /// The clusters that it prefers, the nearest first.
    pub near: Vec<String>,
}

/// Makes `balancer` what the hub publishes, from now on, until it is dropped.
pub async fn follow(client: Client, balancer: &Balancer, options: &Follow) {
    let state = options.state.clone().map(state::writer);
    // What could be used last.
    let mut services = Services::new();
    if let Some((config, former)) = options.state.as_deref().and_then(state::read) {
        let former = options.here(former);
        let listeners = former.listeners.len();
        balancer.adopt(&former).await;
        balancer.apply(former).await;
        services = merge::apart(config);
        tracing::info!(listeners, "continuing from the state file until the hub answers");
    }
    let maps = Api::<ConfigMap>::namespaced(client, &options.namespace);
    let mut stream = std::pin::pin!(watch(maps, Config::default().labels(&configmap::selector())));
    let (mut known, mut again): (BTreeMap<String, String>, Option<BTreeMap<String, String>>) =
        Default::default();
    let mut told = None;
    while let Some(event) = stream.next().await {
        match event {
            Event::ListStarted => {
                again = Some(BTreeMap::new());
                continue;
            }
            Event::Seen(map) => {
                let (name, text) = (map.name_any(), configmap::text(&map).to_owned());
                if let Some(again) = &mut again {
                    again.insert(name, text);
                    continue; // nothing is known before the list is complete
                }
                known.insert(name, text);
            }
            Event::Gone(map) => drop(known.remove(&map.name_any())),
            Event::Listed => known = again.take().unwrap_or_default(),
            Event::Following => {
                balancer.stale(None);
                continue;
            }
            Event::Failed(failure) => {
                tracing::warn!(%failure, "the hub does not answer; the configuration stays as it was");
                balancer.stale(Some(format!("the hub does not answer ({failure})")));
                continue;
            }
        }
        if told.as_ref() != Some(&known) {
            let wrong;
            (services, wrong) = merge::usable(&known, &services);
            for (name, error) in &wrong {
                tracing::error!(configmap = name, %error, "cannot use the configuration of a service; it stays as it was");
            }
            balancer.refused(wrong.first().map(|(name, error)| format!("{name}: {error}")));
            let (desired, whole) = merge::together(&services);
            if let Some(state) = &state {
                state.send_replace(whole);
            }
            let listeners = desired.listeners.len();
            balancer.apply(options.here(desired)).await;
            tracing::info!(listeners, "applied the configuration of the hub");
            told = Some(known.clone());
        }
    }
}

impl Follow {
    /// With what is particular to this balancer.
    fn here(&self, mut desired: Desired) -> Desired {
        desired.prefer(&self.near);
        for listener in &mut desired.listeners {
            listener.interface.clone_from(&self.interface);
        }
        desired
    }
}
