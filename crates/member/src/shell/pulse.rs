//! Does the API answer? Asked often, since an idle watch says nothing; and what the cluster can do.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use atoll_engine::facts::Capabilities;
use atoll_engine::names::ClusterId;
use atoll_engine::network::Family;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, PostParams};
use kube::{Client, Resource};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tracing::debug;

use super::Reports;
use crate::clients::WRITE_DEADLINE;
use crate::core::event::Event;
use crate::edge::service::families;
use crate::report::Report;

const PERIOD: Duration = Duration::from_secs(3);
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
    silent_since: Option<Instant>,
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
            if state.said.is_some_and(|said| now.duration_since(said) < SAID) {
                return;
            }
            state.said = Some(now);
        }
        let _ = self.reports.send((self.cluster.clone(), Report::Alive(now)));
    }

    /// The API was asked, and answered.
    fn answered(&self) {
        let back = self.state.lock().is_ok_and(|mut state| state.silent_since.take().is_some());
        if back {
            self.reconnects.send_replace(());
        }
        self.alive();
    }

    /// The API was asked at `asked`, and did not answer.
    fn silent(&self, asked: Instant, why: String) {
        let since = {
            let Ok(mut state) = self.state.lock() else { return };
            state.said = None;
            *state.silent_since.get_or_insert(asked)
        };
        let _ = self.reports.send((self.cluster.clone(), Report::Unreachable { since, why }));
    }
}

/// Asks for the version again and again, and for the families once in a while.
pub(super) async fn beat(client: Client, pulse: Pulse, events: mpsc::Sender<Event>) {
    let mut known: Option<(u16, Vec<Family>)> = None;
    loop {
        let asked = Instant::now();
        match tokio::time::timeout(WRITE_DEADLINE, minor(&client)).await {
            Ok(Ok(minor)) => {
                pulse.answered();
                if known.as_ref().is_none_or(|(before, _)| *before != minor)
                    && let Some(families) =
                        tokio::time::timeout(WRITE_DEADLINE, served(&client)).await.ok().flatten()
                {
                    known = Some((minor, families.clone()));
                    let capabilities = Capabilities { families, kubernetes_minor: minor };
                    if events.send(Event::Capable(capabilities)).await.is_err() {
                        return;
                    }
                }
            }
            Ok(Err(error)) => pulse.silent(asked, error.to_string()),
            Err(_) => pulse.silent(asked, "no answer within 5 s".to_owned()),
        }
        // The first answer is awaited by everybody.
        let pause = if known.is_some() { PERIOD } else { PERIOD / 10 };
        tokio::time::sleep(pause).await;
    }
}

async fn minor(client: &Client) -> kube::Result<u16> {
    let version = client.apiserver_version().await?;
    let digits: String = version.minor.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse().unwrap_or(0))
}

/// The families that Services can have, the primary one first: asked by making a Service that is not made.
///
/// A dry run allocates nothing and answers like a real one: `RequireDualStack` is refused where there is one family
/// only. Where we may not even try, the API's own Service tells the primary family.
async fn served(client: &Client) -> Option<Vec<Family>> {
    let api: Api<Service> = Api::namespaced(client.clone(), "default");
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    for policy in ["RequireDualStack", "SingleStack"] {
        let probe = json!({
            "apiVersion": Service::api_version(&()),
            "kind": Service::kind(&()),
            "metadata": {"generateName": "atoll-dry-run-"},
            "spec": {"ports": [{"port": 1, "protocol": "TCP"}], "ipFamilyPolicy": policy},
        });
        let probe: Service = serde_json::from_value(probe).ok()?;
        match api.create(&dry, &probe).await {
            Ok(service) => {
                let found = families(service.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()));
                if !found.is_empty() {
                    return Some(found);
                }
            }
            Err(kube::Error::Api(status)) => debug!(%policy, %status, "a Service can't be like that"),
            Err(_) => return None,
        }
    }
    let own = api.get_opt("kubernetes").await.ok()??;
    let found = families(own.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()));
    Some(if found.is_empty() { vec![Family::V4] } else { found })
}
