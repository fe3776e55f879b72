//! One member, seen from the hub: what goes down to it, and where what it says is heard. Who opened the link does not matter to
//! the rest of the hub; today it is always the hub, with clients made of a `Cluster` and its Secret.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use atoll_engine::names::{ClusterId, Uid};
use atoll_link::{Called, CopyReport, Down, Up};
use atoll_member::events::Events;
use atoll_member::{Auditor, Clients, Handle, Issued, Permit, ROLE, Token, TokenError, Uplink};
use kube::Client;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::membership::connect::{self, BadLink, ConnectError};
use crate::membership::credentials::Link;
use crate::membership::health;
use crate::options::NAMESPACE;
use crate::policies::Sealer;

/// What a member said, and when the hub heard it.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) from: ClusterId,
    pub(crate) at: Instant,
    pub(crate) up: Up,
}

/// Says things to a member. Clones lead to the same one.
#[derive(Clone)]
pub(crate) struct Tell(Arc<dyn Fn(Down) + Send + Sync>);

impl Tell {
    pub(crate) fn new(tell: impl Fn(Down) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn send(&self, down: Down) {
        (self.0)(down);
    }
}

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tell")
    }
}

/// What a member answers to a question of its own session.
#[derive(Debug)]
pub(crate) enum Answer {
    Identity(Option<Uid>, Option<Called>),
    Cleaned,
    GaveBack,
    NotCleaned(String),
    Stopped,
}

/// Opens sessions.
#[derive(Clone)]
pub(crate) struct Sessions {
    pub(crate) hub: Client,
    /// The hub's uid, and its namespace.
    pub(crate) uid: Arc<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) permit: Permit,
    /// Who hears facts, and what became of plans.
    pub(crate) reports: UnboundedSender<Heard>,
    /// Who hears what became of copies.
    pub(crate) copies: UnboundedSender<(ClusterId, CopyReport)>,
    /// Where writes into members are noted, if anywhere.
    pub(crate) audit: Option<atoll_audit::Log>,
    /// Tells the hub's own bindings from others.
    pub(crate) sealer: Sealer,
    /// Where events about members go.
    pub(crate) told: Events,
}

/// A link to a member. It ends when this is dropped.
pub(crate) struct Session {
    way: Way,
    answers: UnboundedReceiver<Answer>,
    /// Lends the right to write on.
    lease: AbortHandle,
    /// Writes down how the member is.
    health: AbortHandle,
}

/// How a member is reached.
enum Way {
    /// The hub calls its API.
    Pushed { handle: Handle, questions: Client, token: Token },
}

/// Why a session can't be opened, or go on with another token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadSession {
    #[error("{0}")]
    Link(#[from] BadLink),
    #[error("the key token of its Secret is invalid")]
    Token,
    #[error("{0}")]
    Client(String),
}

impl Sessions {
    /// A link to the cluster that `link` leads to; `leaving`: it is being cleaned, which is said with whatever is wrong.
    pub(crate) fn open(&self, id: &ClusterId, link: &Link, leaving: bool) -> Result<Session, BadSession> {
        let config = connect::of_link(link)?;
        let url = config.cluster_url.to_string();
        let token = Token::new(&link.token).map_err(|_| BadSession::Token)?;
        let audit = self.audit.clone().map(|log| Auditor::new(log, id.clone(), ROLE));
        let clients = Clients::new(config, Some(&token), audit.as_ref()).map_err(|error| {
            BadSession::Client(connect::with_cause(&ConnectError::Client { url, source: Box::new(error) }))
        })?;
        let questions = clients.questions.clone();
        let (answered, answers) = unbounded_channel();
        let (looked, healths) = watch::channel(None);
        let (from, reports, copies) = (id.clone(), self.reports.clone(), self.copies.clone());
        let up = Uplink::new(move |up| {
            // Whoever should hear it may have ended with the lead.
            match up {
                Up::Copy(report) => drop(copies.send((from.clone(), report))),
                Up::Health(health) => {
                    drop(looked.send_replace(Some(health.clone())));
                    let (from, up) = (from.clone(), Up::Health(health));
                    drop(reports.send(Heard { from, at: Instant::now(), up }));
                }
                Up::Identity { uid, called } => drop(answered.send(Answer::Identity(uid, called))),
                Up::Cleaned => drop(answered.send(Answer::Cleaned)),
                Up::GaveBack => drop(answered.send(Answer::GaveBack)),
                Up::NotCleaned { why } => drop(answered.send(Answer::NotCleaned(why))),
                Up::Stopped => drop(answered.send(Answer::Stopped)),
                Up::Change(_)
                | Up::Holds(_)
                | Up::Alive
                | Up::Unreachable { .. }
                | Up::Wrote(_)
                | Up::Dispatched(_)
                | Up::Problem(_) => drop(reports.send(Heard { from: from.clone(), at: Instant::now(), up })),
            }
        });
        let handle = atoll_member::spawn(id.clone(), clients, up);
        let lease = lend(&self.permit, &handle);
        let (hub, permit, told) = (self.hub.clone(), self.permit.clone(), self.told.clone());
        let writing = health::keep(id.clone(), hub, permit, told, healths, leaving);
        let health = tokio::spawn(writing).abort_handle();
        Ok(Session { way: Way::Pushed { handle, questions, token }, answers, lease, health })
    }
}

/// Passes the hub's right to write on to a member, now and whenever it changes.
fn lend(permit: &Permit, handle: &Handle) -> AbortHandle {
    let (permit, down) = (permit.clone(), handle.downlink().clone());
    let mut changes = permit.changes();
    let pass_on = move || {
        // What is left is counted from this moment, here and there.
        let now = Instant::now();
        down.send(now, Down::Lease(permit.lease(now)));
    };
    pass_on();
    let task = tokio::spawn(async move {
        loop {
            changes.next().await;
            pass_on();
        }
    });
    task.abort_handle()
}

impl Session {
    /// Where to say things to it.
    pub(crate) fn tell(&self) -> Tell {
        match &self.way {
            Way::Pushed { handle, .. } => {
                let down = handle.downlink().clone();
                Tell::new(move |said| down.send(Instant::now(), said))
            }
        }
    }

    /// From the next request on it shows this token. Nothing that is under way ends.
    pub(crate) fn show_token(&self, token: &str) -> Result<(), BadSession> {
        match &self.way {
            Way::Pushed { token: shown, .. } => shown.replace(token).map_err(|_| BadSession::Token),
        }
    }

    /// Who asks the member's API for another token.
    pub(crate) fn issuer(&self) -> Issuer {
        match &self.way {
            Way::Pushed { questions, .. } => Issuer(questions.clone()),
        }
    }

    pub(crate) fn send(&self, down: Down) {
        match &self.way {
            Way::Pushed { handle, .. } => handle.downlink().send(Instant::now(), down),
        }
    }

    /// What it answers next; none if it has ended.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        self.answers.recv().await
    }

    /// From now on this session shows nothing of the member.
    pub(crate) fn hide(&self) {
        self.health.abort();
    }

    /// Ends it: no new requests; those in flight may end. All that it has said is heard when this returns.
    pub(crate) async fn stop(mut self) {
        self.send(Down::Stop);
        while let Some(answer) = self.answer().await {
            if let Answer::Stopped = answer {
                return;
            }
        }
    }
}

/// Asks a member's API for tokens of the hub's account there.
pub(crate) struct Issuer(Client);

impl Issuer {
    pub(crate) async fn issue(&self, seconds: i64) -> Result<Issued, TokenError> {
        atoll_member::issue(&self.0, NAMESPACE, seconds).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.lease.abort();
        self.health.abort();
    }
}
