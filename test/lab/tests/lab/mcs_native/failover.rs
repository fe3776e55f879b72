//! Failover as a user sees it: a client asks fifty times in a second while a provider goes in one way or another.

use super::requests::Requests;
use super::{Native, Shared, annotated, answers, mcs, serve, serve_until, service, serving, slices, web};
use crate::harness::Outcome;
use crate::policies::kubectl;
use anyhow::ensure;
use atoll_lab::fault::cut::{Cut, Traffic};
use atoll_lab::{Component, Deadline, until};
use serde_json::Value;
use std::time::Duration;

pub(super) fn tests(shared: &mut Shared<'_>) {
    shared.test("mcs_the_pods_of_a_provider_all_go_and_no_request_fails", pods_go);
    shared.test("mcs_the_api_of_a_provider_goes_and_no_request_fails", api_goes);
    shared.test("mcs_a_provider_that_is_cut_off_stays_or_goes_as_its_policy_says", cut_off);
}

async fn pods_go(native: &Native) -> Outcome {
    let ns = "podsgo";
    let (one, two, three) = (native.member(1), native.member(2), native.member(3));
    native.namespace(ns).await?;
    // They answer on while everybody hears that they go.
    serve_until(one, ns, 2, "10").await?;
    serve(three, ns, 1).await?;
    native.apply(&[web(ns), mcs(ns, "web", &["member1", "member3"], &["member2"])]).await?;
    native.is_fine(ns, "web").await?;
    let requests = Requests::begin(two, &format!("web.{ns}.svc")).await?;
    until(Deadline::after(Duration::from_secs(60), "both providers answer"), async || {
        Ok(match requests.so_far().await {
            Ok(said) if said.from("member1") > 0 && said.from("member3") > 0 => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await?;
    native.restart_hub().await?;
    kubectl(one, &["-n", ns, "scale", "deployment", "web", "--replicas=0"]).await?;
    one.pods_ready(ns, "app=web", 0).await?;
    let after = requests.more(100).await?;
    ensure!(after.from("member1") == 0 && after.from("member3") >= 100, "{after:?}");
    kubectl(one, &["-n", ns, "scale", "deployment", "web", "--replicas=1"]).await?;
    until(Deadline::after(Duration::from_secs(60), "member1 answers again"), async || {
        Ok(match requests.more(20).await {
            Ok(said) if said.from("member1") > 0 => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await?;
    let all = requests.end().await?;
    ensure!(
        all.failed.is_empty(),
        "{} requests failed, {:?} answered: {:?}",
        all.failed.len(),
        all.by,
        all.failed
    );
    native.delete(ns, "web").await
}

/// What `kubectl` shows of a provider that can't be reached: who, and since when.
async fn shows_stale(native: &Native, namespace: &str, name: &str) -> Outcome {
    let stale = |found: &Value| {
        let clusters = found["status"]["clusters"].as_array().into_iter().flatten();
        clusters.into_iter().any(|one| one["name"] == "member1" && one["staleSince"].is_string())
    };
    let shown = native.becomes(namespace, name, "the provider is shown as stale", stale).await?;
    let clusters = shown["status"]["clusters"].as_array().cloned().unwrap_or_default();
    let since = clusters.iter().find_map(|one| one["staleSince"].as_str()).unwrap_or_default().to_owned();
    let described = native.world.kubectl(&["-n", namespace, "describe", "mcs", name], "").await?;
    for words in ["Stale Since:", since.as_str(), "endpoints of member1 are kept, stale since", "Role:"] {
        ensure!(described.contains(words), "{words} is not in {described}");
    }
    let table = native.world.kubectl(&["-n", namespace, "get", "mcs", "-o", "wide"], "").await?;
    ensure!(table.contains("STALE") && table.contains("member1"), "{table}");
    Ok(())
}

async fn api_goes(native: &Native) -> Outcome {
    let ns = "apigoes";
    let (one, two) = (native.member(1), native.member(2));
    native.namespace(ns).await?;
    serve(one, ns, 1).await?;
    native.apply(&[web(ns), mcs(ns, "web", &["member1"], &["member2"])]).await?;
    native.is_fine(ns, "web").await?;
    native.becomes(ns, "web", "one endpoint is known", |found| found["status"]["endpoints"] == 1).await?;
    let table = native.world.kubectl(&["-n", ns, "get", "mcs"], "").await?;
    let words: Vec<&str> = table.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    ensure!(words.get(..6) == Some(&["web", "1", "1", "1", "True", "True"][..]), "{table}");
    let requests = Requests::begin(two, &format!("web.{ns}.svc")).await?;
    let stopped = one.stop(Component::ApiServer)?;
    ensure!(one.client().await?.apiserver_version().await.is_err(), "the fault bites");
    shows_stale(native, ns, "web").await?;
    requests.more(100).await?;
    // A hub that starts now has never heard the provider, and keeps what it gave.
    native.restart_hub_among(2).await?;
    shows_stale(native, ns, "web").await?;
    requests.more(100).await?;
    stopped.heal()?;
    one.ready().await?;
    let fresh = |found: &Value| super::fine(found) && !found["status"].to_string().contains("staleSince");
    native.becomes(ns, "web", "it is stale no more", fresh).await?;
    requests.more(50).await?;
    let all = requests.end().await?;
    ensure!(all.failed.is_empty(), "{} requests failed: {:?}", all.failed.len(), all.failed);
    ensure!(all.by.len() == 1 && all.from("member1") >= 250, "{:?}", all.by);
    native.delete(ns, "web").await
}

/// Who answers twenty requests that are made side by side; `nobody` where none does.
async fn who(client: &atoll_lab::Cluster, native: &str) -> anyhow::Result<Vec<String>> {
    let ask = format!(
        "for i in $(seq 20); do (workload fetch --timeout=3s --address={native}:80 2>/dev/null || echo nobody) & done; wait"
    );
    let said = client.exec("default", "tools", &["sh", "-c", &ask]).await?;
    Ok(said.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

async fn cut_off(native: &Native) -> Outcome {
    let ns = "cutoff";
    let (one, two, three) = (native.member(1), native.member(2), native.member(3));
    native.namespace(ns).await?;
    for provider in [one, three] {
        serve(provider, ns, 1).await?;
    }
    for (name, policy) in [("stays", "Retain"), ("goes", "Withdraw")] {
        let asked = mcs(ns, name, &["member1", "member3"], &["member2"]);
        let asked = annotated(asked, "atoll.dev/liveness", policy);
        native.apply(&[service(ns, name, &serving()), asked]).await?;
        native.is_fine(ns, name).await?;
    }
    let (stays, goes) = (format!("stays.{ns}.svc"), format!("goes.{ns}.svc"));
    for name in [&stays, &goes] {
        answers(two, name, "member1").await?;
        answers(two, name, "member3").await?;
    }
    let kept = Requests::begin(two, &stays).await?;
    let withdrawn = Requests::begin(two, &goes).await?;
    let cut = one.cut(&Cut::of(Traffic::Everything))?;
    let of_member1 = async |name: &str| {
        let labels = format!("{},kubernetes.io/service-name={name}", super::OURS);
        let held = slices(two, ns, &labels).await?;
        Ok::<_, anyhow::Error>(held.iter().filter(|(name, _)| name.starts_with("member1-")).count())
    };
    until(
        Deadline::after(Duration::from_secs(60), "what member1 had is withdrawn where that is asked"),
        async || {
            Ok(match of_member1("goes").await {
                Ok(0) => Ok(()),
                other => Err(format!("{other:?}")),
            })
        },
    )
    .await?;
    shows_stale(native, ns, "stays").await?;
    native.restart_hub_among(2).await?;
    shows_stale(native, ns, "stays").await?;

    // Withdrawn: the other provider answers every request. Retained: about half of them go to the one that is cut off, and fail.
    until(Deadline::after(Duration::from_secs(60), "member3 answers every request"), async || {
        Ok(match who(two, &goes).await {
            Ok(who) if who.len() == 20 && who.iter().all(|who| who == "member3") => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await?;
    ensure!(of_member1("stays").await? > 0, "they are kept");
    let from_stays = who(two, &stays).await?;
    let count = |who: &str| from_stays.iter().filter(|one| *one == who).count();
    ensure!(count("nobody") > 0 && count("member3") > 0 && count("member1") == 0, "{from_stays:?}");
    withdrawn.more(1).await?; // one may have begun before
    let late = withdrawn.more(20).await?;
    ensure!(late.failed.is_empty(), "{late:?}");

    cut.heal()?;
    one.ready().await?;
    for name in ["stays", "goes"] {
        native.is_fine(ns, name).await?;
    }
    for name in [&stays, &goes] {
        answers(two, name, "member1").await?;
    }
    let (kept, withdrawn) = (kept.end().await?, withdrawn.end().await?);
    println!(
        "cut off whole: Retain failed {} of {}, Withdraw failed {} of {} requests",
        kept.failed.len(),
        kept.failed.len() + kept.by.values().sum::<usize>(),
        withdrawn.failed.len(),
        withdrawn.failed.len() + withdrawn.by.values().sum::<usize>()
    );
    ensure!(!kept.failed.is_empty(), "{kept:?}");
    for name in ["stays", "goes"] {
        native.delete(ns, name).await?;
    }
    Ok(())
}
