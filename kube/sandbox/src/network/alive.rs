//! Waiting until tasks have really ended: one that is aborted goes on to hold its sockets until it is dropped.

use std::convert::Infallible;
use tokio::sync::mpsc;

/// Held by everything that has sockets or processes.
#[derive(Clone, Debug)]
pub(crate) struct Alive(#[allow(dead_code, reason = "held for its drop")] mpsc::Sender<Infallible>);

/// Waits until the last [`Alive`] is dropped.
#[derive(Debug)]
pub(crate) struct Gone(mpsc::Receiver<Infallible>);

/// A new group.
pub(crate) fn alive() -> (Alive, Gone) {
    let (sender, receiver) = mpsc::channel(1);
    (Alive(sender), Gone(receiver))
}

impl Gone {
    /// Returns when the last one is dropped.
    pub(crate) async fn wait(mut self) {
        while self.0.recv().await.is_some() {}
    }
}
