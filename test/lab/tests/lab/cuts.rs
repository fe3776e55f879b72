//! Cut cables: what is named is cut, what is not passes, and all of it heals.

use crate::harness::{Outcome, Suite};
use crate::recorder::config_map;
use crate::traffic::{reaches_api, serve};
use anyhow::ensure;
use atoll_lab::fault::cut::{Cut, Direction, Traffic};
use atoll_lab::{Cluster, Deadline, Lab, until};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use std::time::Duration;

pub(crate) fn tests(suite: &mut Suite) {
    suite.test("an_api_is_cut_off_from_one_peer_while_its_pods_are_reached", an_api_is_cut_off);
    suite.test("pods_are_cut_off_while_the_api_is_reached", pods_are_cut_off);
    suite.test("a_cut_of_the_way_in_loses_the_request", the_way_in);
    suite.test("a_cut_of_the_way_out_loses_only_the_answer", the_way_out);
    suite.test("two_clusters_are_cut_from_each_other_and_from_nobody_else", two_clusters);
}

/// Whether a pod of `from` gets the page of a pod at `address`, within two seconds.
async fn reaches_pod(from: &Cluster, address: &str) -> bool {
    let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let fetch = format!("workload fetch --timeout=2s --address={address}:8080");
    from.exec("cuts", "tools", &["sh", "-c", &fetch]).await.is_ok_and(|said| said.starts_with("hello from"))
}

/// A page in `member2`, and pods with tools in the other two.
async fn prepare(lab: &Lab) -> atoll_lab::Result<Vec<String>> {
    for client in [lab.member(1), lab.member(3)] {
        client.namespace("cuts").await?;
        client.tools("cuts", "tools").await?;
    }
    let page = serve(lab.member(2), "cuts").await?;
    for address in &page {
        for client in [lab.member(1), lab.member(3)] {
            until(Deadline::after(Duration::from_secs(30), "the page is reached"), async || {
                Ok(if reaches_pod(client, address).await { Ok(()) } else { Err("no answer".into()) })
            })
            .await?;
        }
    }
    Ok(page)
}

async fn an_api_is_cut_off(lab: &Lab) -> Outcome {
    let page = prepare(lab).await?;
    let target = lab.member(2);
    ensure!(reaches_api(lab, target)?, "before");
    let cut = target.cut(&Cut::of(Traffic::Api).with(lab.bystander("client")))?;
    ensure!(!reaches_api(lab, target)?, "the peer is cut off");
    target.client().await?.apiserver_version().await?;
    ensure!(reaches_pod(lab.member(1), &page[0]).await, "its pods are reached");
    cut.heal()?;
    ensure!(reaches_api(lab, target)?, "healed");
    Ok(())
}

async fn pods_are_cut_off(lab: &Lab) -> Outcome {
    let page = prepare(lab).await?;
    let target = lab.member(2);
    let cut = target.cut(&Cut::of(Traffic::Pods))?;
    for address in &page {
        ensure!(!reaches_pod(lab.member(1), address).await, "{address} is cut off");
    }
    ensure!(reaches_api(lab, target)?, "the API is reached");
    drop(cut);
    for address in &page {
        ensure!(reaches_pod(lab.member(1), address).await, "{address} is healed by dropping the fault");
    }
    Ok(())
}

/// Creates a `ConfigMap` and gives up after two seconds; whether an answer came.
async fn create(cluster: &Cluster, name: &str) -> anyhow::Result<bool> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await?, "default");
    let (create, map) = (PostParams::default(), config_map(name));
    let answer = tokio::time::timeout(Duration::from_secs(2), maps.create(&create, &map)).await;
    Ok(matches!(answer, Ok(Ok(_))))
}

async fn exists(cluster: &Cluster, name: &str) -> anyhow::Result<bool> {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await?, "default");
    Ok(maps.get_opt(name).await?.is_some())
}

async fn the_way_in(lab: &Lab) -> Outcome {
    let target = lab.member(2);
    let cut = target.cut(&Cut::of(Traffic::Api).with(lab.host()).only(Direction::Arriving))?;
    ensure!(!create(target, "way-in").await?, "no answer comes");
    cut.heal()?;
    ensure!(!exists(target, "way-in").await?, "the request never arrived");
    ensure!(create(target, "way-in").await?, "healed");
    Ok(())
}

/// Without answers no connection comes about, so the request goes over one that is there already.
async fn the_way_out(lab: &Lab) -> Outcome {
    let target = lab.member(2);
    let maps: Api<ConfigMap> = Api::namespaced(target.client().await?, "default");
    maps.get_opt("way-out").await?;
    let cut = target.cut(&Cut::of(Traffic::Api).with(lab.host()).only(Direction::Leaving))?;
    let map = config_map("way-out");
    let answer =
        tokio::time::timeout(Duration::from_secs(2), maps.create(&PostParams::default(), &map)).await;
    ensure!(!matches!(answer, Ok(Ok(_))), "no answer comes: {answer:?}");
    cut.heal()?;
    ensure!(exists(target, "way-out").await?, "the request was carried out all the same");
    Ok(())
}

async fn two_clusters(lab: &Lab) -> Outcome {
    let page = prepare(lab).await?;
    let cut = lab.member(2).cut(&Cut::of(Traffic::Everything).with(lab.member(1)))?;
    for address in &page {
        ensure!(!reaches_pod(lab.member(1), address).await, "{address} is cut off from member1");
        ensure!(reaches_pod(lab.member(3), address).await, "{address} is reached from member3");
    }
    ensure!(reaches_api(lab, lab.member(2))?, "a bystander is not concerned");
    cut.heal()?;
    ensure!(reaches_pod(lab.member(1), &page[0]).await, "healed");
    Ok(())
}
