//! APIs that run already: nothing of them is started or stopped, they are only asked.

use super::load::Load;
use super::{Amounts, Options, Report, Server, measure};
use crate::environment::Cluster;
use crate::error::Error;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

/// An API that runs already.
#[derive(Debug, Clone)]
pub struct Running {
    /// How to reach it, and how the report calls it.
    pub cluster: Cluster,
    /// Its processes, if they are on this host: for its memory.
    pub processes: Vec<u32>,
}

/// Measures APIs that run already, side by side: writes and watches, and memory where processes are known. It works in a
/// namespace of its own, which it deletes.
///
/// # Errors
/// An API can't be reached, or refuses a request.
pub async fn measure_running(
    apis: Vec<Running>,
    amounts: Amounts,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Report, Error> {
    let servers: Vec<Box<dyn Server>> =
        apis.into_iter().map(|api| Box::new(api) as Box<dyn Server>).collect();
    // Garbage of what was done before is not what is measured: it has a moment to go.
    let options = Options { starts: 0, settle_seconds: 2, amounts };
    let measured = Box::pin(measure(&servers, &options, progress)).await;
    for server in &servers {
        progress(&format!("taking away what was made, {}", server.name()));
        Load::on(server.as_ref(), 1).await?.clear().await?;
    }
    measured
}

impl Server for Running {
    fn name(&self) -> &str {
        &self.cluster.name
    }

    fn start(&self, _empty: bool) -> BoxFuture<'_, Result<(), String>> {
        async { Ok(()) }.boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), String>> {
        async { Ok(()) }.boxed()
    }

    fn kubeconfig(&self) -> Result<String, String> {
        Ok(self.cluster.kubeconfig.clone())
    }

    fn context(&self) -> Option<&str> {
        self.cluster.context.as_deref()
    }

    fn ended(&self) -> Option<String> {
        None
    }

    fn processes(&self) -> Vec<u32> {
        self.processes.clone()
    }
}
