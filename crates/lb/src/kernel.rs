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

use crate::wanted::Protocol;
use plan::Plan;

/// What the kernel was told last.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    told: Option<Plan>,
}

impl Kernel {
    /// Makes the kernel carry this, if it does not already. An error is for people.
    pub(crate) async fn carry(&mut self, plan: Plan) -> Result<(), String> {
        if self.told.as_ref() == Some(&plan) {
            return Ok(());
        }
        tables::replace(&plan).await.map_err(|error| error.to_string())?;
        self.told = Some(plan);
        Ok(())
    }

    /// Ends the flows of clients of `listener` to a backend that is lost, so that they find another.
    pub(crate) async fn cut(protocol: Protocol, listener: SocketAddr, backend: SocketAddr) {
        if let Err(error) = flows::end(protocol, listener, backend).await {
            tracing::warn!(%error, %backend, "cannot end the flows of a backend that is lost");
        }
    }
}
