//! A balancer that does what the hub publishes, here or on another machine. It goes on with what it was told last while the hub is gone,
//! also after a restart of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atoll_lb::{Balancer, Wanted, config, published};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;

use super::builtin::{TEXT, ours};
use crate::membership::connect;

/// After a failed watch.
const PAUSE: Duration = Duration::from_secs(1);

/// How a balancer is run.
#[derive(Debug, Clone, Default)]
pub struct Carrying {
    /// The namespace of the hub in its API.
    pub namespace: String,
    /// The interface that addresses are put on; none if they are there already.
    pub interface: Option<Arc<str>>,
    /// Where it notes what it was told last; a file of the form that `atoll lb --config` takes.
    pub state: Option<PathBuf>,
    /// The clusters that it prefers, the nearest first.
    pub near: Vec<String>,
}

/// Makes `balancer` what the hub publishes, from now on, until it is dropped.
pub async fn carry(client: Client, balancer: &Balancer, carrying: &Carrying) {
    let notes = carrying.state.clone().map(notes);
    // What could be used last, by the name of its ConfigMap.
    let mut usable = BTreeMap::new();
    if let Some((former, text)) = carrying.former() {
        let listeners = former.listeners.len();
        balancer.adopt(&former).await;
        balancer.want(former).await;
        usable = published::apart(&text);
        tracing::info!(listeners, "using the saved configuration until the hub answers");
    }
    let maps = Api::<ConfigMap>::namespaced(client, &carrying.namespace);
    let config = watcher::Config::default().labels(&ours()).timeout(connect::WATCH);
    let mut stream = std::pin::pin!(watcher(maps, config));
    let (mut known, mut again): (BTreeMap<String, String>, _) = (BTreeMap::new(), BTreeMap::new());
    let mut told = None;
    while let Some(next) = stream.next().await {
        match next {
            Ok(watcher::Event::Init) => {
                again = BTreeMap::new();
                continue;
            }
            Ok(watcher::Event::InitApply(map)) => {
                again.insert(map.name_any(), text(&map));
                continue;
            }
            Ok(watcher::Event::InitDone) => known = std::mem::take(&mut again),
            Ok(watcher::Event::Apply(map)) => drop(known.insert(map.name_any(), text(&map))),
            Ok(watcher::Event::Delete(map)) => drop(known.remove(&map.name_any())),
            Err(error) => {
                tracing::warn!(%error, "cannot read the configuration from the hub; keeping the last one");
                balancer.stale(Some(format!("the hub does not answer ({error})")));
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        }
        balancer.stale(None);
        if told.as_ref() != Some(&known) {
            let wrong;
            (usable, wrong) = published::usable(&known, &usable);
            for (name, error) in &wrong {
                tracing::error!(name, %error, "the configuration of a service is invalid; keeping the last one");
            }
            balancer.refused(wrong.first().map(|(name, error)| format!("{name}: {error}")));
            let (wanted, whole) = published::together(&usable);
            if let Some(notes) = &notes {
                notes.send_replace(whole);
            }
            let listeners = wanted.listeners.len();
            balancer.want(carrying.here(wanted)).await;
            tracing::info!(listeners, "applied the configuration of the hub");
            told = Some(known.clone());
        }
    }
}

fn text(map: &ConfigMap) -> String {
    map.data.as_ref().and_then(|data| data.get(TEXT)).cloned().unwrap_or_default()
}

impl Carrying {
    /// What is particular to this balancer.
    fn here(&self, mut wanted: Wanted) -> Wanted {
        wanted.prefer(&self.near);
        for listener in &mut wanted.listeners {
            listener.interface.clone_from(&self.interface);
        }
        wanted
    }

    /// What it was told last, as data and as text.
    fn former(&self) -> Option<(Wanted, String)> {
        let path = self.state.as_deref()?;
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "cannot read the saved configuration");
                return None;
            }
        };
        match config::parse(&text) {
            Ok(wanted) => Some((self.here(wanted), text)),
            Err(error) => {
                tracing::error!(file = %path.display(), %error, "the saved configuration is invalid");
                None
            }
        }
    }
}

/// Notes what is sent, the newest, beside everything else: a disk can take seconds, and clients do not wait for it.
fn notes(path: PathBuf) -> watch::Sender<String> {
    let (sender, mut newest) = watch::channel(String::new());
    tokio::spawn(async move {
        while newest.changed().await.is_ok() {
            let (path, text) = (path.clone(), newest.borrow_and_update().clone());
            let written = tokio::task::spawn_blocking(move || {
                write(&path, &text).map_err(|error| {
                    tracing::error!(file = %path.display(), %error, "cannot save the configuration: a restart while the hub is down would lose it");
                })
            });
            // It has said what went wrong.
            let _ = written.await;
        }
    });
    sender
}

/// Whole or not at all.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    // Before it takes the old one's name: a power cut must not leave an empty file.
    file.sync_all()?;
    std::fs::rename(unfinished, path)
}
