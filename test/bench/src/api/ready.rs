//! From the start of a server's processes to its first answer that it is ready.

use super::Server;
use crate::error::{Doing, Error};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(2);

/// Starts `server`; milliseconds until it is ready.
pub(super) async fn start(server: &dyn Server, empty: bool) -> Result<f64, Error> {
    // At the very first start there is no kubeconfig before the server has made one.
    let mut asking = match server.kubeconfig() {
        Ok(_) => Some(client(server).await?),
        Err(_) => None,
    };
    let begun = Instant::now();
    server.start(empty).await.map_err(|why| Error::Hook { action: "start a server", why })?;
    let mut last = String::from("no answer");
    while begun.elapsed() < LIMIT {
        if asking.is_none() && server.kubeconfig().is_ok() {
            asking = Some(client(server).await?);
        }
        if let Some(client) = &asking {
            match client.request_text(get("/readyz")).await {
                Ok(_) => return Ok(begun.elapsed().as_secs_f64() * 1e3),
                Err(error) => last = error.to_string(),
            }
        }
        if let Some(why) = server.ended() {
            return Err(Error::Hook { action: "start a server", why });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(Error::Deadline {
        what: format!("{} is ready", server.name()),
        seconds: LIMIT.as_secs(),
        missing: last,
    })
}

/// A client with a connection of its own, that retries nothing.
pub(super) async fn client(server: &dyn Server) -> Result<kube::Client, Error> {
    let unusable = |why: String| Error::Kubeconfig { cluster: server.name().to_owned(), why };
    let text = server.kubeconfig().map_err(unusable)?;
    let parsed = Kubeconfig::from_yaml(&text).map_err(|error| unusable(error.to_string()))?;
    let options =
        KubeConfigOptions { context: server.context().map(str::to_owned), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(parsed, &options).await;
    let mut config = config.map_err(|error| unusable(error.to_string()))?;
    config.connect_timeout = Some(Duration::from_secs(10));
    config.read_timeout = Some(Duration::from_secs(60));
    config.default_retry = false;
    kube::Client::try_from(config).doing(|| format!("make a client of {}", server.name()))
}

pub(super) fn get(path: &str) -> http::Request<Vec<u8>> {
    let mut request = http::Request::new(Vec::new());
    // Paths are ours: they always parse.
    *request.uri_mut() = path.parse().unwrap_or_default();
    request
}
