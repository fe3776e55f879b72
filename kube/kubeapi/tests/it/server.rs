//! The API in this process, through `kube::Client` and no socket.

mod access;
pub(crate) mod aggregated;
mod attacks;
mod author;
mod crds;
mod flow;
mod garbage;
mod objects;
mod pods;
mod restart;
mod watches;

use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options};
use kube::Client;
use std::time::Duration;

/// An API on a store in memory, and its administrator's client.
pub(crate) async fn api() -> (Api, Client) {
    let api = Api::start(Store::memory(), Options::default()).await.unwrap();
    let client = Client::new(api.admin(), "default");
    (api, client)
}

/// Waits until something is so. With the clock paused no time passes.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut is: impl FnMut() -> F) {
    let wait = async {
        while !is().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}
