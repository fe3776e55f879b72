//! With root: connections are carried by the kernel, and this process only says where they go.
//!
//! ```text
//!   pictures ─▶ plan: forwards, as data ─▶ tables: one transaction of nftables by netlink, atomic
//!                                          flows: conntrack entries of backends that are lost
//! ```
//!
//! Each forward is a rule that hashes the client into Maglev's table, kept as a map from place to backend. Connections are pinned by conntrack: they
//! outlive a change of the rules and a restart of this process. When it ends, the rules stay.

mod flows;
pub(crate) mod plan;
mod tables;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use balance::Picture;

use crate::wanted::{Listener, Protocol};
use plan::{Forward, Plan};

/// What the kernel refused is tried again.
const RETRY: Duration = Duration::from_secs(1);

type Carried = Vec<(Arc<Listener>, Arc<Picture>)>;

/// What the kernel was told last.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    told: Option<Carried>,
    refused: Option<Instant>,
}

impl Kernel {
    /// Makes the kernel carry this; none if it does already. An error is for people.
    pub(crate) async fn carry(&mut self, wanted: Carried) -> Option<Result<(), String>> {
        let same = |told: &Carried| {
            let pairs = told.iter().zip(&wanted);
            told.len() == wanted.len()
                && pairs
                    .into_iter()
                    .all(|(told, now)| Arc::ptr_eq(&told.0, &now.0) && Arc::ptr_eq(&told.1, &now.1))
        };
        if self.told.as_ref().is_some_and(same) && self.refused.is_none_or(|at| at.elapsed() < RETRY) {
            return None;
        }
        let forwards = wanted.iter().map(|(listener, picture)| Forward::new(listener, picture)).collect();
        let outcome = tables::replace(&Plan { forwards }).await.map_err(|error| error.to_string());
        self.told = Some(wanted);
        self.refused = outcome.is_err().then(Instant::now);
        Some(outcome)
    }

    /// Ends the flows of clients of `listener` to a backend that is lost, so that they find another.
    pub(crate) async fn cut(protocol: Protocol, listener: SocketAddr, backend: SocketAddr) {
        if let Err(error) = flows::end(protocol, listener, backend).await {
            tracing::warn!(%error, %backend, "cannot end the flows of a backend that is lost");
        }
    }
}
