//! Watches `MultiClusterServices`.

use std::pin::pin;

use atoll_api::names::annotation;
use atoll_api::types::MultiClusterService;
use atoll_watch::{Change, Config, Known};
use futures_util::StreamExt;
use kube::core::DeserializeGuard;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

use crate::policies::Authors;

/// One of them, by namespace and name.
#[derive(Debug)]
pub(crate) enum Seen {
    /// It is there; true if its author may have Services there.
    There(Box<MultiClusterService>, bool),
    /// It is gone.
    Gone(String, String),
}

/// Watches until the receiver is dropped.
pub(super) async fn watch(client: Client, mut authors: Authors, seen: UnboundedSender<Seen>) {
    let api = Api::<DeserializeGuard<MultiClusterService>>::all(client);
    let mut stream = pin!(atoll_watch::watch(api, Config::default()));
    let mut known = Known::default();
    while let Some(event) = stream.next().await {
        for change in
            known.take(event, |object| Some((object.namespace().unwrap_or_default(), object.name_any())))
        {
            match change {
                Change::Seen(_, object) => there(object, &mut authors, &seen).await,
                Change::Gone((namespace, name)) => drop(seen.send(Seen::Gone(namespace, name))),
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
    authors: &mut Authors,
    seen: &UnboundedSender<Seen>,
) {
    match object.0 {
        Ok(object) => {
            let may = may_serve(authors, &object).await;
            let _ = seen.send(Seen::There(Box::new(object), may));
        }
        Err(error) => tracing::warn!(why = %error.error, "cannot read a MultiClusterService"),
    }
}

/// Whether anything may be dispatched in its name.
pub(super) async fn may_serve(authors: &mut Authors, object: &MultiClusterService) -> bool {
    let stamp = object.annotations().get(annotation::AUTHOR).map(String::as_str);
    authors.may_serve(stamp, &object.namespace().unwrap_or_default()).await
}
