//! An API on a data directory, served on a socket: what a hub is on, and each cluster of a sandbox.

use crate::access::authn::{TokenAuthenticator, TokenError};
use crate::access::pki::{Pki, PkiError};
use crate::api::{Api, Options, StartError};
use crate::http::server::{Certificates, ServeError, Server};
use crate::storage::backup::STORE_FILE;
use crate::storage::store::{OpenError, Store};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// Where an API lies and is served.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions<'a> {
    /// Its store and keys; made if it is not there, and its owner's alone.
    pub data_dir: &'a Path,
    /// Where it listens.
    pub address: SocketAddr,
    /// Names and addresses that clients know it by, besides those of the machine itself and of `address`.
    pub names: &'a [String],
}

/// Why an API is not served.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The data directory can't be made or is not ours.
    #[error("cannot use {}: {source}", path.display())]
    Directory {
        /// The data directory.
        path: PathBuf,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// The store can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The keys can't be had.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The key for tokens can't be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The API does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The socket can't be had.
    #[error(transparent)]
    Serve(#[from] ServeError),
}

/// An API that is served. It ends with this value.
#[derive(Debug)]
pub struct Hosted {
    /// The API itself, for callers in this process.
    pub api: Api,
    /// How it is reached.
    pub url: String,
    /// Its administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    store: Store,
    serving: AbortHandle,
    keys: Arc<RunningKeys>,
    following: AbortHandle,
}

/// The keys of a running server, and where they are from.
#[derive(Debug)]
struct RunningKeys {
    data_dir: PathBuf,
    names: Vec<String>,
    url: String,
    tokens: TokenAuthenticator,
    certificates: Certificates,
    now: Mutex<Pki>,
}

/// How often the files of the keys are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How often certificates are made anew though their authority is the same: the administrator's lasts a year.
const RENEW_EVERY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl RunningKeys {
    /// Takes up the keys as they are in their files. `anew`: also if they are the same. True if something changed.
    fn reload(&self, anew: bool) -> Result<bool, HostError> {
        let now = jiff::Timestamp::now().as_second();
        let Some(pki) = Pki::again(&self.data_dir, &self.names, now)? else { return Ok(false) };
        let mut known = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if !anew && pki.has_the_keys_of(&known) {
            return Ok(false);
        }
        self.tokens.replace(&pki)?;
        self.certificates.replace(&pki)?;
        pki.write_kubeconfig(&self.data_dir, &self.url)?;
        *known = pki;
        Ok(true)
    }

    async fn follow(self: Arc<Self>) {
        let (mut renewed, mut said) = (Instant::now(), String::new());
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let anew = renewed.elapsed() > RENEW_EVERY;
            let keys = Arc::clone(&self);
            let done = tokio::task::spawn_blocking(move || keys.reload(anew)).await;
            match done {
                Ok(Ok(changed)) => {
                    if changed {
                        tracing::info!(data_dir = %self.data_dir.display(), "the API's keys and certificates were read again");
                    }
                    if changed || anew {
                        renewed = Instant::now();
                    }
                    said.clear();
                }
                Ok(Err(error)) => {
                    let why = error.to_string();
                    if why != said {
                        tracing::warn!(
                            why,
                            "cannot take up the keys as they are now; those before still count"
                        );
                        said = why;
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot look at the keys"),
            }
        }
    }
}

impl Hosted {
    /// Opens the data directory, starts the API and serves it on the runtime that this is called on.
    ///
    /// # Errors
    /// Another process has the directory or the address, or something in the directory can't be used.
    pub async fn start(host: &HostOptions<'_>, options: Options) -> Result<Self, HostError> {
        let data_dir = host.data_dir;
        make_private(data_dir)
            .map_err(|source| HostError::Directory { path: data_dir.to_owned(), source })?;
        // The store's lock is also that of the keys.
        let store = Store::open_encrypted(data_dir.join(STORE_FILE), &options.keys)?;
        let now = jiff::Timestamp::now().as_second();
        let names = names(host);
        let pki = Pki::open(data_dir, &names, now)?;
        let tokens = TokenAuthenticator::new(&pki)?;
        let options = options.tokens(tokens.clone()).data_dir(data_dir);
        let server = Server::bind(host.address, &pki).await?;
        let bound =
            server.address().map_err(|source| ServeError::Listen { address: host.address, source })?;
        let api = Api::start(store.clone(), options).await?;
        let url = format!("https://{}", reachable(bound));
        let kubeconfig = pki.write_kubeconfig(data_dir, &url)?;
        let certificates = server.certificates();
        let serving = tokio::spawn(server.run(api.clone())).abort_handle();
        let (data_dir, url_of) = (data_dir.to_owned(), url.clone());
        let keys = RunningKeys { data_dir, names, url: url_of, tokens, certificates, now: Mutex::new(pki) };
        let keys = Arc::new(keys);
        let following = tokio::spawn(Arc::clone(&keys).follow()).abort_handle();
        Ok(Self { api, url, kubeconfig, store, serving, keys, following })
    }
}

impl Hosted {
    /// Takes up the keys as they are in their files now. It happens by itself, some seconds after they have changed. Connections go
    /// on.
    ///
    /// # Errors
    /// They can't be used; those before still count.
    pub fn reload_keys(&self) -> Result<bool, HostError> {
        self.keys.reload(false)
    }

    /// Ends it now, whatever still has it.
    pub fn stop(&self) {
        self.following.abort();
        self.serving.abort();
        // Tasks that are left hold the store: closed by hand, it needs no repair at the next start.
        self.store.close();
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.stop();
    }
}

fn make_private(data_dir: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    fs::set_permissions(data_dir, fs::Permissions::from_mode(0o700))
}

/// Names that clients may know the server by.
fn names(host: &HostOptions<'_>) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let bound = host.address.ip();
    if !bound.is_unspecified() {
        names.push(bound.to_string());
    }
    names.extend(host.names.iter().cloned());
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
