//! The hub's own Kubernetes API: in this process, on one file.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use kubeapi::authn::{Bearers, MASTERS, User};
use kubeapi::backup::STORE_FILE;
use kubeapi::pki::Pki;
use kubeapi::server::Server;
use kubeapi::store::Store;
use kubeapi::{Api, Options};
use tokio::runtime::{Builder, Runtime};

/// Who the hub is on its own API.
const HUB: &str = "atoll-hub";

/// A running API. It ends with this value.
pub(super) struct Embedded {
    api: Api,
    store: Store,
    /// Requests from outside do not take turns with the hub's own work.
    runtime: Option<Runtime>,
}

/// Where the API is served, and by which names.
pub(super) struct Place<'a> {
    pub(super) data_dir: &'a Path,
    pub(super) address: SocketAddr,
    pub(super) names: &'a [String],
}

impl Embedded {
    /// Starts the API of a data directory, which is made if it is not there.
    pub(super) async fn start(place: &Place<'_>) -> anyhow::Result<Self> {
        let data_dir = place.data_dir;
        make_private(data_dir).with_context(|| format!("cannot use {}", data_dir.display()))?;
        // The store's lock is also that of the keys.
        let store = Store::open(data_dir.join(STORE_FILE))?;
        let now = jiff::Timestamp::now().as_second();
        let pki = Pki::open(data_dir, &names(place), now)?;
        let options = Options::default().bearers(Bearers::new(&pki)?).data_dir(data_dir);
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("api").enable_all().build()?;
        let (address, certificates) = (place.address, pki.clone());
        let served = store.clone();
        let started = runtime.spawn(async move {
            let api = Api::start(served, options).await?;
            let server = Server::bind(address, &certificates).await?;
            let address = server.address()?;
            tokio::spawn(server.run(api.clone()));
            anyhow::Ok((api, address))
        });
        let (api, address) = started.await??;
        let url = format!("https://{}", reachable(address));
        let kubeconfig = pki.write_kubeconfig(data_dir, &url)?;
        tracing::info!(%url, kubeconfig = %kubeconfig.display(), "serving the hub's API");
        Ok(Self { api, store, runtime: Some(runtime) })
    }

    /// The hub's way in: no socket, and nothing that it may not do.
    pub(super) fn client(&self) -> kube::Client {
        kube::Client::new(self.api.service(User::authenticated(HUB, [MASTERS.to_owned()])), "default")
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Watches have no end of their own.
            runtime.shutdown_background();
        }
        // Tasks that are left hold the store: closed by hand, it needs no repair at the next start.
        self.store.close();
    }
}

/// The data directory is its owner's alone.
fn make_private(data_dir: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    fs::set_permissions(data_dir, fs::Permissions::from_mode(0o700))
}

/// Names that clients may know the server by.
fn names(place: &Place<'_>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let bound = place.address.ip();
    if !bound.is_unspecified() {
        names.push(bound.to_string());
    }
    names.extend(super::host());
    names.extend(place.names.iter().cloned());
    names.sort();
    names.dedup();
    names
}

/// An address to connect to: a server that listens everywhere is here too.
fn reachable(bound: SocketAddr) -> SocketAddr {
    if bound.ip().is_unspecified() {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), bound.port());
    }
    bound
}

/// Where a hub keeps its data when nobody says.
pub(crate) fn default_data_dir() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|home| !home.is_empty()).map(|home| PathBuf::from(home).join(".atoll"))
}
