//! What the server says of itself: `/healthz`, `/readyz`, `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;

use atoll_monitoring::Pages;
use tokio::net::TcpListener;

use crate::error::ServerError;
use crate::live::Live;
use crate::metrics::Metrics;

/// Listens; nowhere if there is no address.
pub(crate) async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, ServerError> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await;
    bound.map(Some).map_err(|source| ServerError::Listen { address, protocol: "TCP", source })
}

/// Serves the pages until it is dropped.
pub(crate) async fn serve(listener: Option<TcpListener>, live: &Arc<Live>, metrics: &Arc<Metrics>) {
    let Some(listener) = listener else { return std::future::pending().await };
    atoll_monitoring::serve(
        listener,
        Arc::new(Server { live: Arc::clone(live), metrics: Arc::clone(metrics) }),
    )
    .await;
}

struct Server {
    live: Arc<Live>,
    metrics: Arc<Metrics>,
}

impl Pages for Server {
    fn ready(&self) -> Result<String, String> {
        if !self.live.complete() {
            return Err("waiting for the first list of all objects".to_owned());
        }
        // Ready stays ready: without its API the cluster needs its names all the more.
        let age = self.live.age();
        Ok(if age.is_zero() {
            "ok".to_owned()
        } else {
            format!(
                "ok: no contact with the API for {} s; answering from the last known state",
                age.as_secs()
            )
        })
    }

    fn metrics(&self) -> String {
        self.metrics.page(&self.live)
    }
}
