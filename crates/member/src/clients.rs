//! Three clients for one cluster: watches wait long, writes do not, and questions have deadlines of their own.

use std::time::Duration;

use kube::client::ClientBuilder;
use tower::util::MapRequestLayer;

use crate::Token;
use crate::audit::{Auditor, Cause};

/// How long a question may take at most.
const ANSWER: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(3);
/// How long a write may take, from sending to the answer's end.
pub(crate) const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// Three clients for one cluster.
#[derive(Clone)]
pub struct Clients {
    /// For watches: patient.
    pub watches: kube::Client,
    /// For everything else: soon done or soon failed. Retries belong to the queue.
    pub writes: kube::Client,
    /// For questions about the cluster itself. Who asks sets the deadline, which is shorter than this client's.
    pub questions: kube::Client,
    /// Whether it is noted why something is written.
    audited: bool,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clients")
    }
}

impl Clients {
    /// Clients for a cluster. Timeouts and retries of `config` are replaced: kube's own are made for something else. With a `token`,
    /// every request carries what it is at that moment. `audit` notes what is written.
    pub fn new(
        mut config: kube::Config,
        token: Option<&Token>,
        audit: Option<&Auditor>,
    ) -> Result<Self, kube::Error> {
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT);
        config.reset_reader_on_write = true;
        let mut patient = config.clone();
        patient.read_timeout = Some(atoll_watch::READ_TIMEOUT);
        let mut questions = config.clone();
        questions.read_timeout = Some(ANSWER);
        questions.write_timeout = Some(ANSWER);
        config.read_timeout = Some(WRITE_DEADLINE);
        config.write_timeout = Some(WRITE_DEADLINE);
        Ok(Self {
            watches: client(patient, token, None)?,
            writes: client(config, token, audit)?,
            questions: client(questions, token, audit)?,
            audited: audit.is_some(),
        })
    }

    /// One client for everything: an API in this process needs no timeouts.
    pub fn within(client: &kube::Client) -> Self {
        Self { watches: client.clone(), writes: client.clone(), questions: client.clone(), audited: false }
    }

    /// The same, with an [`Auditor`] in the way already.
    #[must_use]
    pub fn audited(self) -> Self {
        Self { audited: true, ..self }
    }

    /// Why something is written, if that is noted.
    pub(crate) fn cause(&self, cause: impl FnOnce() -> Cause) -> Option<Cause> {
        self.audited.then(cause)
    }
}

fn client(
    config: kube::Config,
    token: Option<&Token>,
    audit: Option<&Auditor>,
) -> Result<kube::Client, kube::Error> {
    let builder = ClientBuilder::try_from(config)?;
    Ok(match (token, audit) {
        (None, None) => builder.build(),
        (Some(token), None) => builder.with_layer(&carry(token)).build(),
        (None, Some(audit)) => builder.with_layer(audit).build(),
        (Some(token), Some(audit)) => builder.with_layer(&carry(token)).with_layer(audit).build(),
    })
}

/// Puts the token of the moment on each request.
fn carry(
    token: &Token,
) -> MapRequestLayer<
    impl Fn(http::Request<kube::client::Body>) -> http::Request<kube::client::Body> + Clone + use<>,
> {
    let token = token.clone();
    MapRequestLayer::new(move |mut request: http::Request<kube::client::Body>| {
        request.headers_mut().insert(http::header::AUTHORIZATION, token.header());
        request
    })
}
