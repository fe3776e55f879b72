//! Who leads, and until when. One Lease in the hub's API; the loop here, its rules in `rules`, its API in `slot`.
//!
//! Own code rather than a library: the permit to write ends with the lease by the local clock, so the moment at which a
//! renewal was *sent* has to be known, and a second process under the same identity has to be noticed (ADR 0005).

mod rules;
pub(crate) mod slot;

use std::time::Duration;

use atoll_member::Permit;
use tokio::time::Instant;

use rules::{Rules, Step};
use slot::{Record, Slot, SlotError};

/// Why a leader leads no more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Another replica holds the lease.
    TakenBy(String),
    /// Another process holds it under our identity.
    Twin,
    /// It could not be renewed in time.
    Expired,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TakenBy(holder) => write!(f, "{holder} holds the lease"),
            Self::Twin => f.write_str("another process holds the lease under the same identity"),
            Self::Expired => f.write_str("the lease could not be renewed in time"),
        }
    }
}

/// What a candidate sees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum View<'a> {
    /// A replica leads.
    Held(&'a str),
    /// The lease can be neither read nor taken.
    Blind,
}

/// Says what is wrong when that is news, and once in a while.
#[derive(Default)]
struct Complaint {
    said: Option<(String, Instant)>,
}

impl Complaint {
    const AGAIN: Duration = Duration::from_secs(30);

    fn about(&mut self, what: &'static str, error: &SlotError) {
        let (text, now) = (format!("{what}: {error}"), Instant::now());
        if self.said.as_ref().is_none_or(|(said, at)| *said != text || now - *at >= Self::AGAIN) {
            tracing::warn!(lease = slot::LEASE, "{text}");
            self.said = Some((text, now));
        }
    }
}

/// A candidate for the lead.
pub(crate) struct Election<S> {
    rules: Rules,
    slot: S,
    permit: Permit,
    /// What stood in the API after our last write.
    held: Option<Record>,
    deadline: Instant,
    complaint: Complaint,
}

impl<S: Slot> Election<S> {
    pub(crate) fn new(slot: S, identity: String, incarnation: String, duration: Duration) -> Self {
        let rules = Rules::new(identity, incarnation, duration);
        Self {
            rules,
            slot,
            permit: Permit::new(),
            held: None,
            deadline: Instant::now(),
            complaint: Complaint::default(),
        }
    }

    /// Ends when the lead is ours; gives the permit that goes with it. `seen` is told what was seen of the lease.
    pub(crate) async fn acquire(&mut self, mut seen: impl FnMut(View<'_>)) -> Permit {
        self.permit = Permit::new(); // no task that has the old one can write by it
        loop {
            let read = bounded(self.slot.read(), self.rules.period()).await;
            let pause = match read {
                Err(error) => {
                    self.complaint.about("cannot read the lease", &error);
                    seen(View::Blind);
                    self.rules.period()
                }
                Ok(record) => {
                    let now = Instant::now();
                    match self.rules.candidate(record.as_ref(), now.into_std()) {
                        Step::Take => match self.take(record).await {
                            Ok(()) => return self.permit.clone(),
                            Err(SlotError::Conflict) => {
                                tracing::debug!("another replica took the lease first");
                                self.rules.period() / 4
                            }
                            Err(error) => {
                                self.complaint.about("cannot acquire the lease", &error);
                                seen(View::Blind);
                                self.rules.period() / 4
                            }
                        },
                        Step::Wait { holder, until } => {
                            seen(View::Held(&holder));
                            let left = until.saturating_duration_since(now.into_std());
                            left.clamp(Duration::from_millis(50), self.rules.period())
                        }
                    }
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Renews for as long as it can; ends when the lead is lost, with the permit revoked.
    pub(crate) async fn keep(&mut self) -> Lost {
        let lost = loop {
            tokio::time::sleep(self.rules.period()).await;
            if let Some(lost) = self.renew().await {
                break lost;
            }
        };
        self.permit.revoke();
        lost
    }

    async fn renew(&mut self) -> Option<Lost> {
        loop {
            if Instant::now() >= self.deadline {
                return Some(Lost::Expired);
            }
            match self.take(self.held.clone()).await {
                Ok(()) => return None,
                Err(SlotError::Conflict) => {
                    if let Ok(found) = bounded(self.slot.read(), self.rules.period()).await {
                        if let Some(lost) = self.rules.leader(found.as_ref()) {
                            return Some(lost);
                        }
                        self.held = found; // ours still: another client touched the object
                    }
                }
                Err(error) => self.complaint.about("cannot renew the lease", &error),
            }
            tokio::time::sleep(self.rules.period() / 4).await;
        }
    }

    /// Gives the lead away, so that the next one need not wait.
    pub(crate) async fn release(&mut self) {
        self.permit.revoke();
        if let Some(held) = self.held.take() {
            let freed = self.rules.freed(&held);
            if let Err(error) = bounded(self.slot.write(&freed), self.rules.period()).await {
                tracing::warn!(%error, "cannot release the lease; the next leader waits until it expires");
            }
        }
    }

    async fn take(&mut self, over: Option<Record>) -> Result<(), SlotError> {
        let sent = Instant::now(); // the lease runs from here: the API server may have seen it no earlier
        let ours = self.rules.ours(over.as_ref());
        let written = bounded(self.slot.write(&ours), self.rules.period()).await?;
        self.held = Some(written);
        self.deadline = sent + self.rules.valid();
        self.permit.extend_to(self.deadline.into_std());
        Ok(())
    }
}

async fn bounded<T>(
    request: impl Future<Output = Result<T, SlotError>>,
    within: Duration,
) -> Result<T, SlotError> {
    tokio::time::timeout(within, request).await.unwrap_or(Err(SlotError::NoAnswer))
}

#[cfg(test)]
mod tests;
