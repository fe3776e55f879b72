//! Does the API answer? Asked often, since an idle watch says nothing; and what the cluster can do (see `families`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use atoll_engine::names::ClusterId;
use atoll_link::Up;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tracing::warn;

use super::families::{Probing, Served, served};
use crate::Uplink;
use crate::clients::WRITE_DEADLINE;
use crate::core::event::Event;
use crate::core::object::Kind;

const PERIOD: Duration = Duration::from_secs(3);
/// How often it is said that the API answers.
const SAID: Duration = Duration::from_secs(1);

/// Whether the API answers, as all requests to it tell.
#[derive(Clone)]
pub(super) struct Pulse {
    cluster: ClusterId,
    up: Uplink,
    state: Arc<Mutex<State>>,
    reconnects: Arc<watch::Sender<()>>,
}

#[derive(Default)]
struct State {
    said: Option<Instant>,
    /// Since when no request has had an answer.
    silent_since: Option<Instant>,
    /// The last question had no answer: connections may be dead, even if a watch on another one has spoken since.
    unanswered: bool,
    /// Kinds that we may not watch, since when, and why: what is known of them stands still.
    deaf: BTreeMap<Kind, (Instant, String)>,
}

/// Waits for the API to come back.
pub(super) struct Reconnects(watch::Receiver<()>);

impl Reconnects {
    /// Returns when the API answers again after it did not: a watch may hang on a connection that is dead.
    pub(super) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Pulse {
    pub(super) fn new(cluster: ClusterId, up: Uplink) -> Self {
        Self { cluster, up, state: Arc::default(), reconnects: Arc::new(watch::Sender::new(())) }
    }

    pub(super) fn reconnects(&self) -> Reconnects {
        Reconnects(self.reconnects.subscribe())
    }

    /// The API has answered.
    pub(super) fn alive(&self) {
        let now = Instant::now();
        {
            let Ok(mut state) = self.state.lock() else { return };
            state.silent_since = None;
            // An API that answers and does not let us see is no better than one that is silent.
            if !state.deaf.is_empty() || state.said.is_some_and(|said| now.duration_since(said) < SAID) {
                return;
            }
            state.said = Some(now);
        }
        self.up.send(Up::Alive);
    }

    /// We may not watch a kind: its facts are as old as the first refusal, whatever else the API answers.
    pub(super) fn deaf(&self, kind: Kind, why: &str) {
        let told = {
            let Ok(mut state) = self.state.lock() else { return };
            state.said = None;
            state.deaf.entry(kind).or_insert_with(|| (Instant::now(), why.to_owned()));
            state.deaf.values().min().cloned()
        };
        if let Some((since, why)) = told {
            self.up.send(Up::Unreachable { silent_for: since.elapsed(), why });
        }
    }

    /// A watch of this kind has shown something.
    pub(super) fn hears(&self, kind: Kind) {
        if let Ok(mut state) = self.state.lock() {
            state.deaf.remove(&kind);
        }
        self.alive();
    }

    /// The API was asked, and answered.
    fn answered(&self) {
        let back = self.state.lock().is_ok_and(|mut state| std::mem::take(&mut state.unanswered));
        if back {
            self.reconnects.send_replace(());
        }
        self.alive();
    }

    /// The API was asked at `asked`, and did not answer.
    fn silent(&self, asked: Instant, why: String) {
        let since = {
            let Ok(mut state) = self.state.lock() else { return };
            (state.said, state.unanswered) = (None, true);
            *state.silent_since.get_or_insert(asked)
        };
        self.up.send(Up::Unreachable { silent_for: since.elapsed(), why });
    }
}

/// Asks for the version again and again, and for the families until they are certain.
pub(super) async fn beat(client: Client, pulse: Pulse, events: mpsc::Sender<Event>) {
    let mut probing = Probing::default();
    loop {
        let asked = Instant::now();
        match tokio::time::timeout(WRITE_DEADLINE, minor(&client)).await {
            Ok(Ok(minor)) => {
                pulse.answered();
                if probing.is_due(minor, Instant::now()) {
                    let answer = tokio::time::timeout(WRITE_DEADLINE, served(&client)).await;
                    let served =
                        answer.unwrap_or_else(|_| Served::Unknown("no answer within 5 s".to_owned()));
                    match &served {
                        Served::Certain(_) => {}
                        Served::Likely(families, why) => {
                            warn!(cluster = %pulse.cluster, families = %families.iter().map(|family| family.as_str()).collect::<Vec<_>>().join(", "), %why, "the IP families of Services are guessed; trying again");
                        }
                        Served::Unknown(why) => {
                            warn!(cluster = %pulse.cluster, %why, "the IP families of Services are unknown; trying again");
                        }
                    }
                    if let Some(capabilities) = probing.take(minor, served, Instant::now())
                        && events.send(Event::Capable(capabilities)).await.is_err()
                    {
                        return;
                    }
                }
            }
            Ok(Err(error)) if speaks(&error) => pulse.answered(),
            Ok(Err(error)) => pulse.silent(asked, error.to_string()),
            Err(_) => pulse.silent(asked, "no answer within 5 s".to_owned()),
        }
        // The first answer is awaited by all.
        let pause = if probing.known.is_some() { PERIOD } else { PERIOD / 10 };
        tokio::time::sleep(pause).await;
    }
}

/// Whether this is the API server's own word: it lives, however it feels. A gateway before a dead one says 502 to 504, and one
/// that does not know us (401) tells us nothing.
fn speaks(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if !matches!(status.code, 401 | 502..=504))
}

async fn minor(client: &Client) -> kube::Result<u16> {
    let version = client.apiserver_version().await?;
    let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn an_answer_is_a_sign_of_life_but_not_a_gateways() {
        for (code, want) in
            [(403, true), (429, true), (500, true), (401, false), (502, false), (503, false), (504, false)]
        {
            assert_eq!(
                speaks(&kube::Error::Api(Box::new(Status::failure("", "").with_code(code)))),
                want,
                "{code}"
            );
        }
    }

    fn pulse() -> (Pulse, mpsc::UnboundedReceiver<Up>) {
        let (tell, told) = mpsc::unbounded_channel();
        let up = Uplink::new(move |up| drop(tell.send(up)));
        (Pulse::new(ClusterId::parse("paris").unwrap(), up), told)
    }

    /// Since when it is silent, by its own word, to the second.
    fn since(up: &Up, start: Instant) -> Option<u64> {
        match up {
            Up::Unreachable { silent_for, .. } => {
                Some((start.elapsed().as_secs_f64() - silent_for.as_secs_f64()).round() as u64)
            }
            _ => None,
        }
    }

    #[test]
    fn a_silence_begins_anew_after_every_sign_of_life() {
        let (pulse, mut told) = pulse();
        let start = Instant::now() - Duration::from_secs(60);
        pulse.silent(start, "no".to_owned());
        pulse.alive(); // A watch has something to say.
        let second = start + Duration::from_secs(20);
        pulse.silent(second, "no".to_owned());
        pulse.silent(second + Duration::from_secs(3), "no".to_owned());
        let mut silences = Vec::new();
        while let Ok(up) = told.try_recv() {
            silences.push(since(&up, start));
        }
        assert_eq!(silences, [Some(0), None, Some(20), Some(20)]);
    }

    #[test]
    fn an_api_that_does_not_let_us_watch_counts_as_silent() {
        let (pulse, mut told) = pulse();
        let start = Instant::now();
        pulse.deaf(Kind::Slice, "forbidden");
        pulse.deaf(Kind::Service, "forbidden too");
        pulse.answered();
        pulse.alive();
        pulse.hears(Kind::Namespace);
        pulse.hears(Kind::Service);
        let mut said = Vec::new();
        while let Ok(up) = told.try_recv() {
            said.push(up);
        }
        let [Up::Unreachable { why, .. }, Up::Unreachable { .. }] = &said[..] else { panic!("{said:?}") };
        assert_eq!(why, "forbidden");
        assert_eq!(since(&said[0], start), since(&said[1], start), "the first refusal counts");
        pulse.hears(Kind::Slice);
        assert!(matches!(told.try_recv(), Ok(Up::Alive)));
    }

    #[test]
    fn watches_begin_anew_when_the_api_answers_again_whoever_noticed_first() {
        let (pulse, _told) = pulse();
        let mut reconnects = pulse.reconnects();
        pulse.answered();
        assert!(!reconnects.0.has_changed().unwrap(), "it had never been silent");
        pulse.silent(Instant::now(), "no".to_owned());
        pulse.alive();
        pulse.answered();
        assert!(reconnects.0.has_changed().unwrap());
        reconnects.0.mark_unchanged();
        pulse.answered();
        assert!(!reconnects.0.has_changed().unwrap());
    }
}
