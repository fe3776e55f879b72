//! Slow links and gates: each does what it says, and what it does not name passes.

use crate::harness::{Outcome, Suite};
use crate::recorder::config_map;
use anyhow::ensure;
use atoll_lab::audit::Recorder;
use atoll_lab::fault::gate::{Gate, Requests, Treatment};
use atoll_lab::fault::link::Link;
use atoll_lab::{Cluster, Lab, client_of};
use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams, WatchParams};
use std::time::{Duration, Instant};

pub(crate) fn tests(suite: &mut Suite) {
    suite.test("a_slow_link_holds_requests_back_and_heals", a_slow_link_holds_requests_back);
    suite.test("a_gate_refuses_the_chosen_verb_only_and_heals", a_gate_refuses_the_chosen_verb_only);
    suite.test("a_gate_delays_the_chosen_verb_only", a_gate_delays_the_chosen_verb_only);
    suite.test("a_lost_answer_is_of_a_request_that_was_carried_out", a_lost_answer_was_carried_out);
    suite.test("a_watch_streams_through_a_gate", a_watch_streams_through_a_gate);
}

async fn maps_via(cluster: &Cluster, server: &str) -> atoll_lab::Result<Api<ConfigMap>> {
    Ok(Api::namespaced(client_of(&cluster.kubeconfig_via(server)).await?, "default"))
}

fn code_of<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) -> u16 {
    match outcome {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("an API error was awaited: {other:?}"),
    }
}

async fn a_slow_link_holds_requests_back(lab: &Lab) -> Outcome {
    let latency = Duration::from_millis(150);
    let link = Link::to_api_of(lab.member(1)).await?;
    let client = client_of(&lab.member(1).kubeconfig_via(&link.server())).await?;
    client.apiserver_version().await?;
    link.set_latency(latency);
    let start = Instant::now();
    client.apiserver_version().await?;
    ensure!(start.elapsed() >= 2 * latency, "there and back took only {:?}", start.elapsed());
    link.set_latency(Duration::ZERO);
    let start = Instant::now();
    client.apiserver_version().await?;
    ensure!(start.elapsed() < 2 * latency, "healed, and still {:?}", start.elapsed());
    drop(link);
    ensure!(client.apiserver_version().await.is_err(), "the link is gone");
    Ok(())
}

async fn a_gate_refuses_the_chosen_verb_only(lab: &Lab) -> Outcome {
    let gate = Gate::before(lab.member(1)).await?;
    let maps = maps_via(lab.member(1), &gate.server()).await?;
    let recorder = Recorder::of(lab.member(1))?;
    let refusal = gate.treat(
        Requests::of(&["create"], "configmaps"),
        Treatment::Refuse(http::StatusCode::SERVICE_UNAVAILABLE),
    );
    ensure!(
        code_of(maps.create(&PostParams::default(), &config_map("refused")).await) == 503,
        "503 was asked for"
    );
    ensure!(code_of(maps.get("refused").await) == 404, "reads pass, and nothing was made");
    ensure!(recorder.of_verb("create", "configmaps").await?.is_empty(), "the API server was not asked");
    let busy = gate.treat(Requests::of(&["create"], "configmaps"), Treatment::TooMany(7));
    ensure!(
        code_of(maps.create(&PostParams::default(), &config_map("refused")).await) == 429,
        "the latest rule counts"
    );
    busy.heal()?;
    refusal.heal()?;
    maps.create(&PostParams::default(), &config_map("refused")).await?;
    maps.delete("refused", &DeleteParams::default()).await?;
    Ok(())
}

async fn a_gate_delays_the_chosen_verb_only(lab: &Lab) -> Outcome {
    let delay = Duration::from_millis(400);
    let gate = Gate::before(lab.member(1)).await?;
    let maps = maps_via(lab.member(1), &gate.server()).await?;
    let _slow = gate.treat(Requests::of(&["delete"], "configmaps"), Treatment::Delay(delay));
    maps.create(&PostParams::default(), &config_map("slow")).await?;
    let start = Instant::now();
    maps.delete("slow", &DeleteParams::default()).await?;
    ensure!(start.elapsed() >= delay, "only {:?}", start.elapsed());
    Ok(())
}

async fn a_lost_answer_was_carried_out(lab: &Lab) -> Outcome {
    let gate = Gate::before(lab.member(1)).await?;
    let maps = maps_via(lab.member(1), &gate.server()).await?;
    let lost = gate.treat(Requests::of(&["create"], "configmaps"), Treatment::LoseAnswer);
    let outcome = maps.create(&PostParams::default(), &config_map("unheard")).await;
    ensure!(!matches!(outcome, Ok(_) | Err(kube::Error::Api(_))), "no answer may come: {outcome:?}");
    lost.heal()?;
    maps.get("unheard").await?;
    maps.delete("unheard", &DeleteParams::default()).await?;
    Ok(())
}

async fn a_watch_streams_through_a_gate(lab: &Lab) -> Outcome {
    let gate = Gate::before(lab.member(1)).await?;
    let maps = maps_via(lab.member(1), &gate.server()).await?;
    let version = maps.list(&Default::default()).await?.metadata.resource_version.unwrap_or_default();
    let watch =
        maps.watch(&WatchParams::default().fields("metadata.name=seen").timeout(30), &version).await?;
    futures_util::pin_mut!(watch);
    let direct: Api<ConfigMap> = Api::namespaced(lab.member(1).client().await?, "default");
    direct.create(&PostParams::default(), &config_map("seen")).await?;
    let event = tokio::time::timeout(Duration::from_secs(20), watch.try_next()).await??;
    ensure!(matches!(event, Some(kube::api::WatchEvent::Added(_))), "{event:?}");
    direct.delete("seen", &DeleteParams::default()).await?;
    Ok(())
}
