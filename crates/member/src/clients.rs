//! Two clients for one cluster: watches wait long, writes do not.

use std::time::Duration;

/// How long a watch may be silent before its connection counts as dead. Its own timeout is shorter.
const WATCH_SILENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(3);
/// How long a write may take, from sending to the answer's end.
pub(crate) const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// Two clients for one cluster.
#[derive(Clone)]
pub struct Clients {
    /// For watches: patient.
    pub watches: kube::Client,
    /// For everything else: soon done or soon failed. Retries belong to the queue.
    pub writes: kube::Client,
}

/// The configuration can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the member's API can't be addressed")]
pub struct BadConfig(#[from] kube::Error);

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clients")
    }
}

impl Clients {
    /// Clients for a cluster. Timeouts and retries of `config` are replaced: kube's own are made for something else.
    pub fn new(mut config: kube::Config) -> Result<Self, BadConfig> {
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT);
        config.reset_reader_on_write = true;
        let mut patient = config.clone();
        patient.read_timeout = Some(WATCH_SILENCE);
        config.read_timeout = Some(WRITE_DEADLINE);
        config.write_timeout = Some(WRITE_DEADLINE);
        Ok(Self { watches: kube::Client::try_from(patient)?, writes: kube::Client::try_from(config)? })
    }
}
