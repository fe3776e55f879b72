//! Health and metrics of a balancer.

use std::net::SocketAddr;
use std::sync::Arc;

use atoll_monitoring::Pages;
use tokio::net::TcpListener;

use crate::balancer::Balancer;
use crate::error::LbError;
use crate::metrics::Monitor;

struct BalancerPages(Arc<Monitor>);

impl Pages for BalancerPages {
    fn ready(&self) -> Result<String, String> {
        self.0.ready()
    }

    fn metrics(&self) -> String {
        self.0.page()
    }
}

/// A socket for [`serve_pages`].
pub async fn listen_pages(address: SocketAddr) -> Result<TcpListener, LbError> {
    TcpListener::bind(address).await.map_err(|source| LbError::Pages { address, source })
}

/// Serves `/healthz`, `/readyz` and `/metrics` until it is dropped.
pub async fn serve_pages(listener: TcpListener, balancer: &Balancer) {
    atoll_monitoring::serve(listener, Arc::new(BalancerPages(Arc::clone(balancer.monitor())))).await;
}

impl Balancer {
    /// Shows in health and metrics that the newest configuration was refused, and why; none when it was taken.
    pub fn refused(&self, why: Option<String>) {
        self.monitor().refuse(why);
    }

    /// Shows that it goes on with what it was told last, and why; none when it is up to date.
    pub fn stale(&self, why: Option<String>) {
        self.monitor().stale(why);
    }

    /// Shows that it takes no more clients.
    pub fn stopping(&self) {
        self.monitor().stop();
    }

    /// What `/metrics` says.
    pub fn metrics(&self) -> String {
        self.monitor().page()
    }
}
