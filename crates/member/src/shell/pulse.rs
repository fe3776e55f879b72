//! Does the API answer? Asked often, since an idle watch says nothing; and what the cluster can do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use atoll_engine::facts::Capabilities;
use atoll_engine::names::ClusterId;
use atoll_engine::network::Family;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::Status;
use tokio::sync::{mpsc, watch};
use tracing::{debug, warn};

use super::Reports;
use crate::clients::WRITE_DEADLINE;
use crate::core::event::Event;
use crate::core::object::Kind;
use crate::edge::service::families;
use crate::report::Report;

const PERIOD: Duration = Duration::from_secs(3);
/// When the families are asked for again, the first time and at the latest.
const PROBE_AGAIN: Duration = Duration::from_secs(1);
const PROBE_LATEST: Duration = Duration::from_secs(60);
/// How often it is said that the API answers.
const SAID: Duration = Duration::from_secs(1);

/// Whether the API answers, as everybody who asks it tells.
#[derive(Clone)]
pub(super) struct Pulse {
    cluster: ClusterId,
    reports: Reports,
    state: Arc<Mutex<State>>,
    reconnects: Arc<watch::Sender<()>>,
}

#[derive(Default)]
struct State {
    said: Option<Instant>,
    /// Since when nobody has heard anything.
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
    pub(super) fn new(cluster: ClusterId, reports: Reports) -> Self {
        Self { cluster, reports, state: Arc::default(), reconnects: Arc::new(watch::Sender::new(())) }
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
        let _ = self.reports.send((self.cluster.clone(), Report::Alive(now)));
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
            let _ = self.reports.send((self.cluster.clone(), Report::Unreachable { since, why }));
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
        let _ = self.reports.send((self.cluster.clone(), Report::Unreachable { since, why }));
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
                            warn!(cluster = %pulse.cluster, ?families, %why, "the families of Services are guessed; they are asked for again");
                        }
                        Served::Unknown(why) => {
                            warn!(cluster = %pulse.cluster, %why, "the families of Services are not known; they are asked for again");
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
        // The first answer is awaited by everybody.
        let pause = if probing.known.is_some() { PERIOD } else { PERIOD / 10 };
        tokio::time::sleep(pause).await;
    }
}

/// Whether this is the API server's own word: it lives, however it feels. A gateway before a dead one says 502 to 504, and one
/// that does not know us (401) tells us nothing.
fn speaks(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if !matches!(status.code, 401 | 502..=504))
}

/// What is known of the families, and when to ask again.
#[derive(Default)]
struct Probing {
    known: Option<Capabilities>,
    /// Whether nothing is left to ask for this version.
    certain: bool,
    failures: u32,
    again: Option<Instant>,
}

impl Probing {
    fn is_due(&self, minor: u16, now: Instant) -> bool {
        let new = self.known.as_ref().is_some_and(|known| known.kubernetes_minor != minor);
        (new || !self.certain) && self.again.is_none_or(|again| now >= again)
    }

    /// Takes in an answer; says what the cluster can do, if that is news.
    fn take(&mut self, minor: u16, served: Served, now: Instant) -> Option<Capabilities> {
        let (families, certain) = match served {
            Served::Certain(families) => (Some(families), true),
            // What was certain before an upgrade is better than a guess.
            Served::Likely(families, _) => (Some(families).filter(|_| !self.certain), false),
            Served::Unknown(_) => (None, false),
        };
        if certain {
            (self.certain, self.failures, self.again) = (true, 0, None);
        } else {
            self.failures = self.failures.saturating_add(1);
            let pause = PROBE_AGAIN.saturating_mul(1 << (self.failures - 1).min(10));
            self.again = Some(now + pause.min(PROBE_LATEST));
        }
        let families = families?;
        let capabilities = Capabilities { families, kubernetes_minor: minor };
        let news = self.known.as_ref() != Some(&capabilities);
        self.known = Some(capabilities.clone());
        news.then_some(capabilities)
    }
}

async fn minor(client: &Client) -> kube::Result<u16> {
    let version = client.apiserver_version().await?;
    let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse().unwrap_or(0))
}

/// The families that Services can have, the primary one first.
#[derive(Debug, PartialEq, Eq)]
enum Served {
    /// The API server has said so.
    Certain(Vec<Family>),
    /// We may not try; there is at least the family of the API's own Service.
    Likely(Vec<Family>, String),
    /// Nothing follows from what it said.
    Unknown(String),
}

/// What a refused dry run says of a policy.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// The cluster has no such families.
    Unsupported,
    /// Somebody does not let us try.
    Denied,
    /// Nothing: the next try may succeed.
    Later,
}

fn refusal(status: &Status) -> Refusal {
    let about_families = |text: &str| text.contains("ipFamilyPolicy") || text.contains("ipFamilies");
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let about_families =
        about_families(&status.message) || causes.into_iter().any(|cause| about_families(&cause.field));
    match status.code {
        422 if about_families => Refusal::Unsupported,
        400 | 403 | 422 => Refusal::Denied,
        _ => Refusal::Later,
    }
}

/// Asks for the families by making a Service that is not made.
///
/// A dry run allocates nothing and answers like a real one: `RequireDualStack` is refused where there is one family
/// only. Where we may not even try, the API's own Service tells the primary family.
async fn served(client: &Client) -> Served {
    let api: Api<Service> = Api::namespaced(client.clone(), "default");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut denied = None;
    for policy in ["RequireDualStack", "SingleStack"] {
        let probe = Service {
            metadata: ObjectMeta {
                generate_name: Some("atoll-dry-run-".to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(ServiceSpec {
                ports: Some(vec![ServicePort {
                    port: 1,
                    protocol: Some("TCP".to_owned()),
                    ..ServicePort::default()
                }]),
                ip_family_policy: Some(policy.to_owned()),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        };
        match api.create(&dry, &probe).await {
            Ok(service) => {
                let found = families(service.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()));
                match denied {
                    None if !found.is_empty() => return Served::Certain(found),
                    Some(why) if !found.is_empty() => return Served::Likely(found, why),
                    None | Some(_) => denied = Some("a Service without ipFamilies came back".to_owned()),
                }
            }
            Err(kube::Error::Api(status)) => match refusal(&status) {
                Refusal::Unsupported => debug!(%policy, %status, "a Service can't be like that"),
                Refusal::Denied => denied = Some(status.message.clone()),
                Refusal::Later => return Served::Unknown(status.message.clone()),
            },
            Err(error) => return Served::Unknown(error.to_string()),
        }
    }
    let why = denied.unwrap_or_else(|| "no kind of Service is taken".to_owned());
    match api.get("kubernetes").await {
        Ok(own) => {
            let found = families(own.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()));
            Served::Likely(if found.is_empty() { vec![Family::V4] } else { found }, why)
        }
        Err(error) => Served::Unknown(format!("{why}; {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(code: u16, message: &str, field: &str) -> Status {
        let details = json!({"causes": [{"field": field}]});
        serde_json::from_value(json!({"code": code, "message": message, "details": details})).unwrap()
    }

    #[test]
    fn only_a_word_on_families_says_that_there_is_one() {
        for (code, message, field, want) in [
            (422, "is invalid", "spec.ipFamilyPolicy", Refusal::Unsupported),
            (422, "spec.ipFamilies[1]: not configured", "", Refusal::Unsupported),
            (422, "labels are missing", "metadata.labels", Refusal::Denied),
            (403, "exceeded quota", "", Refusal::Denied),
            (429, "too many requests", "", Refusal::Later),
            (500, "etcdserver: request timed out; ipFamilyPolicy", "", Refusal::Later),
            (503, "starting", "", Refusal::Later),
        ] {
            assert_eq!(refusal(&status(code, message, field)), want, "{code} {message}");
        }
    }

    #[test]
    fn families_are_asked_for_until_they_are_certain() {
        let start = Instant::now();
        let (both, one) = (vec![Family::V4, Family::V6], vec![Family::V4]);
        let mut probing = Probing::default();
        assert!(probing.is_due(36, start));
        assert_eq!(probing.take(36, Served::Unknown("500".to_owned()), start), None);
        assert!(!probing.is_due(36, start) && probing.is_due(36, start + PROBE_AGAIN));
        let likely = probing.take(36, Served::Likely(one.clone(), "403".to_owned()), start).unwrap();
        assert_eq!(likely.families, one);
        assert!(!probing.is_due(36, start + PROBE_AGAIN) && probing.is_due(36, start + PROBE_AGAIN * 2));
        let certain = probing.take(36, Served::Certain(both.clone()), start).unwrap();
        assert_eq!(certain.families, both);
        assert!(!probing.is_due(36, start + PROBE_LATEST), "nothing is left to ask");
        assert!(probing.is_due(37, start), "another version may serve others");
        assert_eq!(
            probing.take(37, Served::Likely(one, "403".to_owned()), start),
            None,
            "a guess takes nothing away"
        );
        for _ in 0..40 {
            let _ = probing.take(37, Served::Unknown(String::new()), start);
        }
        assert!(probing.is_due(37, start + PROBE_LATEST));
        assert_eq!(probing.take(37, Served::Certain(both), start).unwrap().kubernetes_minor, 37);
    }

    #[test]
    fn an_answer_is_a_sign_of_life_but_not_a_gateways() {
        for (code, want) in
            [(403, true), (429, true), (500, true), (401, false), (502, false), (503, false), (504, false)]
        {
            assert_eq!(speaks(&kube::Error::Api(Box::new(status(code, "", "")))), want, "{code}");
        }
    }

    fn pulse() -> (Pulse, mpsc::UnboundedReceiver<(ClusterId, Report)>) {
        let (reports, told) = mpsc::unbounded_channel();
        (Pulse::new(ClusterId::parse("paris").unwrap(), reports), told)
    }

    #[test]
    fn a_silence_begins_anew_after_every_sign_of_life() {
        let (pulse, mut told) = pulse();
        let first = Instant::now();
        pulse.silent(first, "no".to_owned());
        pulse.alive(); // A watch has something to say.
        let second = first + Duration::from_secs(20);
        pulse.silent(second, "no".to_owned());
        pulse.silent(second + Duration::from_secs(3), "no".to_owned());
        let mut since = Vec::new();
        while let Ok((_, report)) = told.try_recv() {
            since.push(match report {
                Report::Unreachable { since, .. } => Some(since),
                _ => None,
            });
        }
        assert_eq!(since, [Some(first), None, Some(second), Some(second)]);
    }

    #[test]
    fn an_api_that_does_not_let_us_watch_counts_as_silent() {
        let (pulse, mut told) = pulse();
        pulse.deaf(Kind::Slice, "forbidden");
        pulse.deaf(Kind::Service, "forbidden too");
        pulse.answered();
        pulse.alive();
        pulse.hears(Kind::Namespace);
        pulse.hears(Kind::Service);
        let mut reports = Vec::new();
        while let Ok((_, report)) = told.try_recv() {
            reports.push(report);
        }
        let [Report::Unreachable { since, why }, Report::Unreachable { since: again, .. }] = &reports[..]
        else {
            panic!("{reports:?}")
        };
        assert_eq!((since, why.as_str()), (again, "forbidden"), "the first refusal counts");
        pulse.hears(Kind::Slice);
        assert!(matches!(told.try_recv(), Ok((_, Report::Alive(_)))));
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
