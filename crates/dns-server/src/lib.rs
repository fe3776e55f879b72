//! Sockets around [`atoll_dns`], and what it answers from read from the cluster that it runs in, and from nothing else.
//!
//! ```text
//!   the cluster's API ─▶ watch ─▶ edge (facts) ─▶ keep: catalog ─▶ live: the snapshot, swapped whole
//!                                                                        │ read without a lock
//!   client ─▶ gate ─▶ udp: a thread per socket ──┐                       │
//!   client ─────────▶ tcp: one thread for all ───┴─▶ atoll_dns::respond ◀──────┘
//! ```
//!
//! Start at [`run`]. When the API is gone, answers go on from the last snapshot, and its age shows in the metrics. [`setup`] leads
//! CoreDNS to us and [`manifest`] is what a member runs; neither has to do with answering.

pub mod corefile;
mod edge;
mod error;
mod gate;
mod http;
mod keep;
mod listen;
mod live;
pub mod manifest;
mod metrics;
mod names;
mod options;
pub mod setup;
mod tcp;
mod udp;
mod watch;

use std::sync::Arc;

pub use error::ServerError;
pub use listen::Listening;
pub use names::Names;
pub use options::{Options, RateLimit};

use metrics::Metrics;

/// Listens, follows the cluster that `client` leads to, and answers until it is dropped. `client` should be patient with watches and
/// retry nothing: see [`watch_config`].
pub async fn run(options: Options, client: kube::Client) -> Result<(), ServerError> {
    let listening = Listening::bind(&options)?;
    Box::pin(serve(options, listening, client)).await
}

/// As [`run`], on sockets that are there already.
pub async fn serve(options: Options, listening: Listening, client: kube::Client) -> Result<(), ServerError> {
    let names = Names::new(&options);
    Box::pin(serve_with(options, listening, client, names)).await
}

/// As [`serve`], and what is answered there can be asked of `names` in this process too.
pub async fn serve_with(
    options: Options,
    listening: Listening,
    client: kube::Client,
    names: Names,
) -> Result<(), ServerError> {
    let metrics = Arc::new(Metrics::new(listening.udp.len() + 1));
    let live = names.live;
    let pages = http::listen(options.metrics_address).await?;
    tracing::info!(
        zone = %options.settings.zone,
        addresses = ?listening.addresses(),
        sockets = listening.udp.len(),
        "answering"
    );
    let Listening { udp, tcp } = listening;
    let answering = live::Answering::new(&live);
    for (number, socket) in udp.into_iter().enumerate() {
        let gate = gate::Gate::new(options.rate_limit.as_ref());
        udp::start(socket, answering.thread(number, &metrics), gate)?;
    }
    tcp::start(tcp, answering.thread(metrics.threads() - 1, &metrics))?;
    tokio::select! {
        () = Box::pin(keep::keep(&options, client, &live)) => {}
        () = http::serve(pages, &live, &metrics) => {}
    }
    Ok(())
}

/// Timeouts that fit watches: kube's own are those of a person at a keyboard.
pub fn watch_config(mut config: kube::Config) -> kube::Config {
    config.default_retry = false;
    config.connect_timeout = Some(std::time::Duration::from_secs(3));
    config.read_timeout = Some(std::time::Duration::from_secs(u64::from(atoll_watch::LIFETIME) + 10));
    config
}
