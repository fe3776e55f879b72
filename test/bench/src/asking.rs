//! Questions to the hub while changes are measured: so many explanations a second, of one service after the other.

use std::time::{Duration, Instant};

use atoll_api::names::kind::explain;
use http::Request;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::error::Error;
use crate::objects::service_name;
use crate::options::Who;
use crate::scenario::between;
use crate::stats::Summary;

/// Questions a second.
const RATE: u32 = 100;
/// Questions that wait for their answers at most: a hub that does not keep up is not asked more.
const IN_FLIGHT: usize = 32;

/// What came of the questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// Answers.
    pub answered: usize,
    /// Questions that got none, or were not asked because too many others waited.
    pub missed: usize,
    /// Answers per second.
    pub per_second: f64,
    /// How long an answer took.
    pub times: Option<Summary>,
}

/// Asks until it is stopped.
pub(crate) struct Asker {
    stop: oneshot::Sender<()>,
    running: JoinHandle<Asked>,
}

impl Asker {
    /// Asks about the first `services` services of ours; the first answer is awaited, so that it is known that there are answers.
    pub(crate) async fn start(client: kube::Client, services: usize) -> Result<Self, Error> {
        ask(client.clone(), 0).await.map_err(|why| Error::Refused {
            what: format!("the hub does not explain {}: {why}", service_name(0)),
            hint: "the hub has to serve the group explain.atoll.dev".to_owned(),
        })?;
        let (stop, stopped) = oneshot::channel();
        Ok(Self { stop, running: tokio::spawn(asking(client, services, stopped)) })
    }

    /// Stops, and says what came of it.
    pub(crate) async fn stop(self) -> Asked {
        let _ = self.stop.send(());
        self.running.await.unwrap_or(Asked { answered: 0, missed: 0, per_second: 0.0, times: None })
    }
}

async fn asking(client: kube::Client, services: usize, mut stopped: oneshot::Receiver<()>) -> Asked {
    let from = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / RATE);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut waiting = JoinSet::new();
    let (mut took, mut missed) = (Vec::new(), 0);
    let mut count =
        |answer: Result<Result<f64, String>, tokio::task::JoinError>, missed: &mut usize| match answer {
            Ok(Ok(milliseconds)) => took.push(milliseconds),
            Ok(Err(_)) | Err(_) => *missed += 1,
        };
    for turn in 0.. {
        tokio::select! {
            _ = &mut stopped => break,
            _ = ticks.tick() => {}
        }
        while let Some(answer) = waiting.try_join_next() {
            count(answer, &mut missed);
        }
        if waiting.len() < IN_FLIGHT {
            waiting.spawn(ask(client.clone(), turn % services.max(1)));
        } else {
            missed += 1;
        }
    }
    let lasted = from.elapsed().as_secs_f64();
    while let Some(answer) = waiting.join_next().await {
        count(answer, &mut missed);
    }
    #[allow(clippy::cast_precision_loss, reason = "few")]
    let per_second = took.len() as f64 / lasted.max(f64::EPSILON);
    Asked { answered: took.len(), missed, per_second, times: Summary::of(&took) }
}

/// Asks about one service; how long the answer took.
async fn ask(client: kube::Client, service: usize) -> Result<f64, String> {
    let (namespace, name) = (Who::Ours.namespace(), service_name(service));
    let path = format!(
        "/apis/{}/{}/namespaces/{namespace}/{}/{name}",
        explain::GROUP,
        explain::VERSION,
        explain::SERVICES
    );
    let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    let from = Instant::now();
    let answer: Value = client.request(request).await.map_err(|error| error.to_string())?;
    match answer["verdict"]["code"].as_str() {
        Some(_) => Ok(between(from, Instant::now())),
        None => Err("the answer has no verdict".to_owned()),
    }
}
