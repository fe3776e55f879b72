//! The hostile user at full speed, and what others feel of it.

use super::inputs::Input;
use super::report::{Answers, Measured};
use atoll_bench::{Usage, stats::Summary};
use futures_util::StreamExt;
use http::Request;
use kube::Client;
use kube::client::Body;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const HONEST: &str = "/api/v1/namespaces/default/configmaps/honest";
/// Between two requests of a prober.
const PACE: Duration = Duration::from_millis(5);
/// How long hostile requests run before anything is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// A request that takes longer counts as this long.
const LOST: Duration = Duration::from_secs(30);

/// Those who must not feel it.
pub(super) struct Probes {
    admin: Client,
    honest: Client,
}

impl Probes {
    pub(super) async fn new(admin: Client, honest: Client) -> anyhow::Result<Self> {
        let probes = Self { admin, honest };
        probes.honest.request_text(Request::get(HONEST).body(Vec::new())?).await?;
        Ok(probes)
    }
}

/// Measures for a time what probers feel beside these requests.
pub(super) async fn measure(
    probes: &Probes,
    hostile: &Client,
    input: Input,
    clients: usize,
    time: Duration,
    pid: u32,
) -> anyhow::Result<Measured> {
    let before = Usage::of(pid).map_or(0.0, |usage| usage.rss_mb);
    let ended = Arc::new(AtomicBool::new(false));
    let counts = Arc::new(Counts::default());
    let body = Arc::new(input.body());
    let load: Vec<_> = (0..clients)
        .map(|_| {
            let (client, ended, counts) = (hostile.clone(), Arc::clone(&ended), Arc::clone(&counts));
            let body = Arc::clone(&body);
            tokio::spawn(async move {
                while !ended.load(Ordering::Relaxed) {
                    let Ok(request) = input.request(body.to_vec()) else { return };
                    counts.count(send(&client, request).await);
                }
            })
        })
        .collect();
    tokio::time::sleep(WARM_UP).await;
    let memory = tokio::spawn(watch_memory(pid, Arc::clone(&ended)));
    let healthz = prober(&probes.admin, Arc::clone(&ended), || Request::get("/healthz").body(Vec::new()));
    let get = prober(&probes.honest, Arc::clone(&ended), || Request::get(HONEST).body(Vec::new()));
    let update = prober(&probes.honest, Arc::clone(&ended), || {
        Request::patch(HONEST)
            .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
            .body(br#"{"data":{"a":"c"}}"#.to_vec())
    });
    let end = async {
        tokio::time::sleep(time).await;
        ended.store(true, Ordering::Relaxed);
    };
    let ((), healthz, get, update) = tokio::join!(end, healthz, get, update);
    for task in load {
        let _ = task.await;
    }
    let peak = memory.await.unwrap_or(before);
    Ok(Measured {
        healthz: Summary::of(&healthz),
        get: Summary::of(&get),
        update: Summary::of(&update),
        growth_mib: (peak - before).max(0.0) * 1e6 / f64::from(1 << 20),
        answers: counts.answers(),
    })
}

/// Milliseconds that a request takes, again and again.
async fn prober(
    client: &Client,
    ended: Arc<AtomicBool>,
    request: impl Fn() -> Result<Request<Vec<u8>>, http::Error>,
) -> Vec<f64> {
    let mut times = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let Ok(request) = request() else { return times };
        let start = Instant::now();
        let code = tokio::time::timeout(LOST, send(client, request)).await.unwrap_or(0);
        // What an honest user is refused is as bad as what never comes.
        let took = if (200..300).contains(&code) { start.elapsed() } else { LOST };
        times.push(took.as_secs_f64() * 1e3);
        tokio::time::sleep(PACE).await;
    }
    times
}

/// Sends a request, reads all of the answer, and returns its status; 0 when there is none.
async fn send(client: &Client, request: Request<Vec<u8>>) -> u16 {
    let Ok(answer) = client.send(request.map(Body::from)).await else { return 0 };
    let code = answer.status().as_u16();
    let mut frames = http_body_util::BodyStream::new(answer.into_body());
    while let Some(Ok(_)) = frames.next().await {}
    code
}

async fn watch_memory(pid: u32, ended: Arc<AtomicBool>) -> f64 {
    let mut peak: f64 = 0.0;
    while !ended.load(Ordering::Relaxed) {
        peak = peak.max(Usage::of(pid).map_or(0.0, |usage| usage.rss_mb));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    peak
}

/// How hostile requests were answered.
#[derive(Default)]
struct Counts {
    done: AtomicUsize,
    refused: AtomicUsize,
    held_off: AtomicUsize,
    broken: AtomicUsize,
}

impl Counts {
    fn count(&self, code: u16) {
        let count = match code {
            200..=399 => &self.done,
            429 => &self.held_off,
            400..=499 => &self.refused,
            _ => &self.broken,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn answers(&self) -> Answers {
        let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Answers {
            done: read(&self.done),
            refused: read(&self.refused),
            held_off: read(&self.held_off),
            broken: read(&self.broken),
        }
    }
}
