//! A hub from start to end: prepare its API, wait for the lead, lead, give the lead back.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::crds;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::net::TcpListener;

use crate::api::crd;
use crate::explain::listen::listen;
use crate::explain::registration::Place;
use crate::leader::election::slot::{InApi, LEASE};
use crate::leader::election::{Election, Lost, View};
use crate::leader::http::{Pages, Stage};
use crate::leader::lead::{Context, lead};
use crate::membership::clusterset;
use crate::membership::connect::Api;
use crate::options::{Explain, LONGEST_LEASE, Options, SHORTEST_LEASE};
use crate::policies::seal_key::SealError;
use crate::services::memory_store::LoadError;

/// After this long without an answer it is said that one is awaited.
const SLOW: Duration = Duration::from_secs(2);
/// Each is hundreds of kilobytes while it is on its way.
const CRDS_AT_ONCE: usize = 3;

/// Why a hub stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The hub's API can't be reached, or refuses us.
    #[error("cannot use the hub's API")]
    Api(#[from] kube::Error),
    /// What is remembered can't be read.
    #[error("cannot read the hub's state; planning without it would remove endpoints")]
    Memory(#[from] LoadError),
    /// Bindings can't be told from forged ones.
    #[error("cannot use the key that bindings are sealed with")]
    Seal(#[from] SealError),
    /// The pages can't be served.
    #[error("cannot serve /metrics on {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// Explanations can't be served.
    #[error("cannot serve explanations on {address}")]
    Explain {
        /// The address.
        address: std::net::SocketAddr,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// Two hubs have the same identity.
    #[error("another hub is running with the identity `{0}`")]
    Twin(String),
    /// A lease too short to be renewed in time, or so long that no replica would ever take over.
    #[error("a lease of {} s is not between {} s and {} s", .0.as_secs_f64(), SHORTEST_LEASE.as_secs(), LONGEST_LEASE.as_secs())]
    BadLease(Duration),
    /// No identity: two of that kind would both lead.
    #[error("the identity is empty")]
    NoIdentity,
}

impl HubError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Api(_) => Some("check --kubeconfig and --context, and that the user has all rights in the hub's namespace".to_owned()),
            Self::Memory(LoadError::List(_)) => Some("check that the user may list ConfigMaps in the hub's namespace".to_owned()),
            Self::Memory(LoadError::Unreadable { .. }) => Some("repair or delete this ConfigMap; if deleted, the hub creates it again when all members have reported".to_owned()),
            Self::Seal(SealError::Unusable) => Some("delete this Secret in the hub's namespace; copies in members stay, and bindings are written anew".to_owned()),
            Self::Seal(_) => Some("check that the user may read and create Secrets in the hub's namespace".to_owned()),
            Self::Listen { .. } => Some("use another --metrics-address".to_owned()),
            Self::Explain { .. } => Some("set --explain-address to an address of this host, and a free port".to_owned()),
            Self::Twin(_) => Some("set a different --identity for each replica (in a pod, the pod's name)".to_owned()),
            Self::BadLease(_) => Some("set --lease-time to another duration, such as 10s".to_owned()),
            Self::NoIdentity => Some("set --identity or ATOLL_IDENTITY to a value such as the pod's name, or remove both".to_owned()),
        }
    }
}

/// Whether a hub can run like this; asked before anything is written.
fn check(options: &Options) -> Result<(), HubError> {
    if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&options.lease_time) {
        return Err(HubError::BadLease(options.lease_time));
    }
    if options.identity.trim().is_empty() {
        return Err(HubError::NoIdentity);
    }
    Ok(())
}

/// Runs a hub on an API until `shutdown` ends.
pub async fn run(api: Api, options: Options, shutdown: impl Future<Output = ()>) -> Result<(), HubError> {
    check(&options)?;
    // As API servers write times.
    let started = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap_or_default();
    let Api { requests: client, watches, place } = api;
    let pages = Arc::new(Pages::auditing(options.audit.as_ref()));
    let _server = match options.metrics_address {
        Some(address) => {
            let listener = TcpListener::bind(address).await;
            let listener = listener.map_err(|source| HubError::Listen { address, source })?;
            tracing::info!(address = %listener.local_addr().unwrap_or(address), "serving /healthz, /readyz and /metrics");
            Some(Aborted(tokio::spawn(atoll_monitoring::serve(listener, Arc::clone(&pages)))))
        }
        None => None,
    };
    {
        let prepared = async {
            clusterset::ensure_namespace(&client, &options.namespace).await?;
            let installed = crds::of_hub().map(|kind| {
                let client = &client;
                async move { crd::ensure(client, &kind).await }
            });
            stream::iter(installed).buffer_unordered(CRDS_AT_ONCE).try_for_each(async |_| Ok(())).await
        };
        let mut prepared = std::pin::pin!(prepared);
        tokio::select! {
            done = &mut prepared => drop(done?),
            () = tokio::time::sleep(SLOW) => {
                tracing::warn!(api = %place, "the hub's API is slow to answer; waiting");
                prepared.await?;
            }
        }
    }

    let listening = match options.explain {
        Explain::At(address) => {
            let listening = listen(&client, &options, address).await;
            Some(listening.map_err(|source| HubError::Explain { address, source })?)
        }
        Explain::Nowhere => {
            tracing::info!(
                "the hub's API server does not pass questions on to this hub; to enable it, set --explain-address to an address and port of this host that the API server can connect to"
            );
            None
        }
        Explain::ByApi => None,
    };
    let place = listening.as_ref().map(|one| Place { address: one.address, ca: one.ca.clone() });
    let slot = InApi::new(client.clone(), &options.namespace);
    let mut election = Election::new(slot, options.identity.clone(), incarnation(), options.lease_time);
    let context =
        Context { client, watches, options: Arc::new(options), pages: Arc::clone(&pages), started, place };
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let mut leader = String::new();
        let seen = |view: View<'_>| match view {
            View::Held(holder) => {
                if leader != holder {
                    tracing::info!(holder, lease = LEASE, "standing by");
                    holder.clone_into(&mut leader);
                    pages.enter(Stage::Standby);
                }
            }
            View::Blind => {
                leader.clear();
                pages.enter(Stage::Blind);
            }
        };
        let permit = tokio::select! {
            permit = election.acquire(seen) => permit,
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
                tracing::warn!(why = %lost, "lost the leadership");
                leading.await?;
            }
        }
        pages.enter(Stage::Blind); // until the lease has been read
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_has_bounds_and_a_hub_has_a_name() {
        let with = |lease_time, identity: &str| Options { lease_time, ..Options::new(identity) };
        let ten = Duration::from_secs(10);
        assert!(check(&with(ten, "hub-0")).is_ok());
        for lease in [Duration::from_secs(1), Duration::from_secs(3601), Duration::from_secs(u64::MAX)] {
            assert!(matches!(check(&with(lease, "hub-0")), Err(HubError::BadLease(_))), "{lease:?}");
        }
        for blank in ["", " "] {
            assert!(matches!(check(&with(ten, blank)), Err(HubError::NoIdentity)), "{blank:?}");
        }
    }

    #[test]
    fn memory_that_could_not_be_listed_is_not_to_be_deleted() {
        let refused = kube::Error::Api(kube::core::Status::failure("no", "Forbidden").with_code(403).boxed());
        let hint = HubError::Memory(LoadError::List(refused)).hint().unwrap();
        assert!(!hint.contains("delete"), "{hint}");
    }
}
