//! Watches `MultiClusterServices`, and asks about their authors: when one is seen, and again from time to time.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;

use atoll_api::names::annotation;
use atoll_api::types::MultiClusterService;
use atoll_engine::names::ServiceKey;
use atoll_watch::{Change, Config, Known};
use futures_util::StreamExt;
use kube::core::DeserializeGuard;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::edge;
use crate::policies::{Authors, Standing};

/// One of them, by namespace and name.
#[derive(Debug)]
pub(crate) enum Seen {
    /// It is there; whether its author may have Services there.
    There(Box<MultiClusterService>, Standing),
    /// Its author may now what they might not, or the other way round.
    Stands(ServiceKey, Standing),
    /// It is gone.
    Gone(String, String),
}

/// What is known of one that is there.
struct Asked {
    stamp: Option<String>,
    standing: Standing,
}

/// Watches until the receiver is dropped.
pub(super) async fn watch(client: Client, mut authors: Authors, seen: UnboundedSender<Seen>) {
    let api = Api::<DeserializeGuard<MultiClusterService>>::all(client);
    let mut stream = pin!(atoll_watch::watch(api, Config::default()));
    let mut known = Known::default();
    let mut asked: BTreeMap<ServiceKey, Asked> = BTreeMap::new();
    // Whoever has to be asked about again: one at a time, between events.
    let mut due: VecDeque<ServiceKey> = VecDeque::new();
    let mut again = interval_at(Instant::now() + authors.ask_again(), authors.ask_again());
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = tokio::select! {
            biased;
            event = stream.next() => event,
            _ = again.tick() => {
                authors.forget();
                due = asked.keys().cloned().collect();
                continue;
            }
            () = std::future::ready(()), if !due.is_empty() => {
                if let Some(key) = due.pop_front() {
                    ask_again(&key, &mut asked, &mut authors, &seen).await;
                }
                continue;
            }
        };
        let Some(event) = event else { return };
        for change in
            known.take(event, |object| Some((object.namespace().unwrap_or_default(), object.name_any())))
        {
            match change {
                Change::Seen(_, object) => there(object, &mut asked, &mut authors, &seen).await,
                Change::Gone((namespace, name)) => {
                    if let Ok(key) = ServiceKey::parse(&namespace, &name) {
                        asked.remove(&key);
                    }
                    let _ = seen.send(Seen::Gone(namespace, name));
                }
                Change::Listed => {}
                Change::Failed(failure) => {
                    tracing::warn!(%failure, "cannot watch MultiClusterServices in the hub's API");
                }
            }
        }
        if seen.is_closed() {
            return;
        }
    }
}

async fn there(
    object: DeserializeGuard<MultiClusterService>,
    asked: &mut BTreeMap<ServiceKey, Asked>,
    authors: &mut Authors,
    seen: &UnboundedSender<Seen>,
) {
    match object.0 {
        Ok(object) => {
            let standing = standing(authors, &object).await;
            if let Some(key) = edge::key(&object) {
                let stamp = object.annotations().get(annotation::AUTHOR).cloned();
                asked.insert(key, Asked { stamp, standing: standing.clone() });
            }
            let _ = seen.send(Seen::There(Box::new(object), standing));
        }
        Err(error) => tracing::warn!(why = %error.error, "cannot read a MultiClusterService"),
    }
}

/// Rights come and go.
async fn ask_again(
    key: &ServiceKey,
    asked: &mut BTreeMap<ServiceKey, Asked>,
    authors: &mut Authors,
    seen: &UnboundedSender<Seen>,
) {
    let Some(its) = asked.get_mut(key) else { return };
    let standing = authors.may_serve(its.stamp.as_deref(), key.namespace.as_str()).await;
    if its.standing != standing {
        its.standing.clone_from(&standing);
        let _ = seen.send(Seen::Stands(key.clone(), standing));
    }
}

/// Whether anything may be dispatched in its author's name.
pub(super) async fn standing(authors: &mut Authors, object: &MultiClusterService) -> Standing {
    let stamp = object.annotations().get(annotation::AUTHOR).map(String::as_str);
    authors.may_serve(stamp, &object.namespace().unwrap_or_default()).await
}
