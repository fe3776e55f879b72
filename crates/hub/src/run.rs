//! A hub from start to end: prepare its API, wait for the lead, lead, give the lead back.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::crds;
use kube::Client;
use tokio::net::TcpListener;

use crate::election::slot::{InApi, LEASE};
use crate::election::{Election, Lost};
use crate::http::{Pages, Stage};
use crate::lead::{Context, lead};
use crate::options::Options;
use crate::store::LoadError;
use crate::{clusterset, crd, http};

/// Why a hub stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The hub's API can't be reached, or refuses us.
    #[error("cannot use the hub's API")]
    Api(#[from] kube::Error),
    /// What is remembered can't be read.
    #[error("cannot read what is remembered; planning without it would take endpoints away")]
    Memory(#[from] LoadError),
    /// The pages can't be served.
    #[error("cannot serve /metrics on {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// Two hubs have the same identity.
    #[error("another hub runs as `{0}`")]
    Twin(String),
    /// A lease too short to be renewed in time.
    #[error("a lease of {0:?} is too short")]
    ShortLease(Duration),
}

impl HubError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Api(_) => Some("check --kubeconfig and --context, and that the user may do everything in the hub's namespace".to_owned()),
            Self::Memory(_) => Some("mend or delete the ConfigMap that is named; a deleted one is made anew once all members have been heard".to_owned()),
            Self::Listen { .. } => Some("choose another --metrics-address".to_owned()),
            Self::Twin(_) => Some("give each replica its own --identity (in a pod, its name)".to_owned()),
            Self::ShortLease(_) => Some("use --lease-time 2s or more".to_owned()),
        }
    }
}

/// Runs a hub on an API until `shutdown` ends.
pub async fn run(
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), HubError> {
    if options.lease_time < Duration::from_secs(2) {
        return Err(HubError::ShortLease(options.lease_time));
    }
    let pages = Arc::new(Pages::default());
    let _server = match options.metrics_address {
        Some(address) => {
            let listener = TcpListener::bind(address).await;
            let listener = listener.map_err(|source| HubError::Listen { address, source })?;
            tracing::info!(address = %listener.local_addr().unwrap_or(address), "serving /healthz, /readyz and /metrics");
            Some(Aborted(tokio::spawn(http::serve(listener, Arc::clone(&pages)))))
        }
        None => None,
    };
    clusterset::ensure_namespace(&client, &options.namespace).await?;
    crd::ensure(&client, &crds::cluster()).await?;

    let slot = InApi::new(client.clone(), &options.namespace);
    let mut election = Election::new(slot, options.identity.clone(), incarnation(), options.lease_time);
    let context = Context { client, options: Arc::new(options), pages: Arc::clone(&pages) };
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let mut leader = String::new();
        let standby = |holder: &str| {
            if leader != holder {
                tracing::info!(holder, lease = LEASE, "standing by");
                holder.clone_into(&mut leader);
                pages.enter(Stage::Standby);
            }
        };
        let permit = tokio::select! {
            permit = election.acquire(standby) => permit,
            () = &mut shutdown => break,
        };
        pages.enter(Stage::Leading);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let mut leading = std::pin::pin!(lead(context.clone(), permit, async { drop(stopped.await) }));
        let end = tokio::select! {
            led = &mut leading => End::Failed(led),
            lost = election.keep() => End::Lost(lost),
            () = &mut shutdown => End::Shutdown,
        };
        let _ = stop.send(());
        match end {
            End::Failed(led) => {
                election.release().await;
                return led;
            }
            End::Shutdown => {
                let led = leading.await;
                election.release().await;
                return led;
            }
            End::Lost(Lost::Twin) => {
                leading.await?;
                return Err(HubError::Twin(context.options.identity.clone()));
            }
            End::Lost(lost) => {
                tracing::warn!(?lost, "lost the lead");
                leading.await?;
            }
        }
        pages.enter(Stage::Standby);
    }
    Ok(())
}

enum End {
    Failed(Result<(), HubError>),
    Shutdown,
    Lost(Lost),
}

/// Ends with whoever holds it.
struct Aborted(tokio::task::JoinHandle<()>);

impl Drop for Aborted {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Tells this process from another one of the same identity.
fn incarnation() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), now.as_nanos())
}
