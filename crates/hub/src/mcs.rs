//! `MultiClusterServices` of the hub's API: what they ask for, and what is shown on them.
//!
//! ```text
//!   hub's API ── watch ──▶ edge ──▶ board ──▶ intents ──▶ engine (slices), policies (the Service itself)
//!   hub's API ◀── write: finalizer, status, events ◀── board ◀── view: plans, members' answers, copies ◀──┘
//! ```
//! [`board`] decides and [`show`] words it; both know no socket and no clock. Endpoints never pass through here.

pub mod balancing;
pub(crate) mod board;
mod edge;
mod show;
pub(crate) mod view;
mod watch;
mod write;

use std::sync::Arc;

use atoll_api::types::MultiClusterService;
use atoll_member::Permit;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

pub(crate) use board::{Board, Command};
pub(crate) use edge::key;
pub(crate) use watch::Seen;

/// All there are. What is not known must not be taken for gone, so nothing is planned before.
pub(crate) async fn list(client: &Client) -> Result<Vec<MultiClusterService>, kube::Error> {
    Ok(Api::<MultiClusterService>::all(client.clone()).list(&ListParams::default()).await?.items)
}

/// Watches them, and writes what is to be written, for one time of leadership.
pub(crate) fn spawn(
    client: Client,
    watches: Client,
    permit: Permit,
    hub: Arc<str>,
    tasks: &mut JoinSet<()>,
) -> (UnboundedReceiver<Seen>, UnboundedSender<Command>) {
    let (seen, sees) = unbounded_channel();
    let (writes, to_write) = unbounded_channel();
    tasks.spawn(watch::watch(watches, seen));
    tasks.spawn(write::write_all(client, permit, hub, to_write));
    (sees, writes)
}
