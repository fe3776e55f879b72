//! Joining and leaving, as a platform engineer does it, with good and bad input.

use crate::harness::{Outcome, Suite};
use anyhow::{Context, ensure};
use atoll_lab::audit::Recorder;
use atoll_lab::clusterset::{Atoll, HubApi, beside};
use atoll_lab::suite::name;
use atoll_lab::{Deadline, Lab, Progress, Spec, until};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

pub(crate) fn tests(suite: &mut Suite) {
    suite.test_alone("joining_refuses_bad_input_and_leaves_nothing_half_done", bad_input);
    suite.test_alone("crds_newer_than_ours_are_left_alone", newer_crds);
    suite.test_alone("unjoining_takes_away_what_joining_brought", unjoin);
    suite.test_alone("a_token_is_renewed_without_a_failed_request_or_a_new_watch", renewed);
    suite.test_alone("a_stolen_token_of_the_hub_changes_nothing_of_users_and_can_be_revoked", stolen);
}

fn binary() -> std::path::PathBuf {
    beside(Path::new(env!("CARGO_BIN_EXE_lab")))
}

async fn start(name: &str) -> anyhow::Result<(Lab, Atoll, atoll_lab::Process)> {
    let lab = Lab::start(&Spec::api_only(name, 2).with_bystander("hub"), &Progress::silent()).await?;
    let atoll = Atoll::on(HubApi::of_environment(), &binary(), lab.member(1), lab.bystander("hub"))?;
    let hub = atoll.start_hub("hub", &[])?;
    atoll.has_api().await?;
    Ok((lab, atoll, hub))
}

/// The CRDs and namespaces of a cluster: what a join that failed must not have added to.
async fn traces(cluster: &atoll_lab::Cluster) -> anyhow::Result<Vec<String>> {
    let client = cluster.client().await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let crd = kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ));
    let crds: Api<DynamicObject> = Api::all_with(client, &crd);
    let mut names: Vec<_> = namespaces
        .list(&ListParams::default())
        .await?
        .items
        .into_iter()
        .filter_map(|o| o.metadata.name)
        .collect();
    names.extend(crds.list(&ListParams::default()).await?.items.into_iter().filter_map(|o| o.metadata.name));
    Ok(names)
}

async fn bad_input() -> Outcome {
    let (lab, atoll, _hub) = start(&name("join")).await?;
    let two = lab.member(2);
    let kubeconfig = two.dir().join("kubeconfig").display().to_string();
    let broken = two.dir().join("broken.kubeconfig");
    std::fs::write(&broken, two.kubeconfig().replace("token: ", "token: wrong"))?;
    let nobody = two.dir().join("nobody.kubeconfig");
    two.apply(&[json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "default"}})])
        .await?;
    let token = two.kubectl().args(["create", "token", "nobody"]).output().await?;
    let token = String::from_utf8(token.stdout)?;
    std::fs::write(&nobody, with_user(&two.kubeconfig(), &json!({"token": token.trim()})).to_string())?;
    let expired = two.dir().join("expired.kubeconfig");
    let (certificate, key) = two.expired_certificate()?;
    let (certificate, key) = (ByteString(certificate.into_bytes()), ByteString(key.into_bytes()));
    let user = json!({"client-certificate-data": certificate, "client-key-data": key});
    std::fs::write(&expired, with_user(&two.kubeconfig(), &user).to_string())?;
    let before = traces(two).await?;
    for (name, file, words) in [
        ("Not_A_Label", kubeconfig.as_str(), ["Not_A_Label", "hint"]),
        (&"x".repeat(49), &kubeconfig, ["48", "hint"]),
        ("east", "/does/not/exist", ["/does/not/exist", "hint"]),
        ("east", &broken.display().to_string(), ["rejected", "hint"]),
        ("east", &expired.display().to_string(), ["rejected", "hint"]),
        ("east", &nobody.display().to_string(), ["lacks rights", "hint"]),
    ] {
        let output = atoll.run(&["join", name, "--cluster-kubeconfig", file]).await?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success(), "{name} {file} was joined");
        for word in words {
            ensure!(said.contains(word), "{name} {file}: `{word}` is not in: {said}");
        }
        ensure!(traces(two).await? == before, "a refused join left something behind");
    }
    atoll.join(two).await?;
    let again = atoll.run(&["join", "other", "--cluster-kubeconfig", &kubeconfig]).await?;
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    ensure!(
        !again.status.success() && said.contains("member2") && said.contains("hint"),
        "under two names: {said}"
    );
    lab.down()?;
    Ok(())
}

async fn newer_crds() -> Outcome {
    let (lab, atoll, _hub) = start(&name("crds")).await?;
    let two = lab.member(2);
    let mut installed = Vec::new();
    for crd in atoll_api::crds::of_members() {
        let mut crd = serde_json::to_value(crd)?;
        let labels = crd["metadata"]["labels"].as_object_mut().context("it says which release it is")?;
        for (key, value) in labels.iter_mut().filter(|(key, _)| key.ends_with("release-version")) {
            ensure!(value.is_string(), "{key}: {value}");
            *value = json!("v99.0.0");
        }
        for version in crd["spec"]["versions"].as_array_mut().context("it has versions")? {
            version["schema"]["openAPIV3Schema"]["properties"]["later"] = json!({"type": "string"});
        }
        installed.push(crd);
    }
    two.apply(&installed).await?;
    let before = generations(two).await?;
    ensure!(before.len() == installed.len(), "{before:?}");
    atoll.join(two).await?;
    atoll.all_ready(std::slice::from_ref(two)).await?;
    ensure!(generations(two).await? == before, "a join replaced a newer CRD");
    // Ours are written over older ones, so the labels above are what held us back.
    for crd in &mut installed {
        for (_, value) in crd["metadata"]["labels"].as_object_mut().into_iter().flatten() {
            *value = if value == "v99.0.0" { json!("v0.0.1") } else { value.clone() };
        }
    }
    two.apply(&installed).await?;
    atoll.must(&["unjoin", two.name()]).await?;
    atoll.join(two).await?;
    ensure!(generations(two).await? != before, "a join left an older CRD");
    lab.down()?;
    Ok(())
}

/// The CRDs of a cluster, and how often each has changed.
async fn generations(cluster: &atoll_lab::Cluster) -> anyhow::Result<Vec<(Option<String>, Option<i64>)>> {
    let kind = kube::api::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let crds: Api<DynamicObject> =
        Api::all_with(cluster.client().await?, &kube::api::ApiResource::from_gvk(&kind));
    let crds = crds.list(&ListParams::default()).await?.items;
    Ok(crds.into_iter().map(|crd| (crd.metadata.name, crd.metadata.generation)).collect())
}

/// The kubeconfig with another user: JSON is YAML, and the lab's kubeconfigs have one user.
fn with_user(kubeconfig: &str, user: &serde_json::Value) -> serde_json::Value {
    let parsed = kube::config::Kubeconfig::from_yaml(kubeconfig).expect("the lab writes good kubeconfigs");
    let mut value = serde_json::to_value(parsed).expect("a kubeconfig serializes");
    value["users"][0]["user"] = user.clone();
    value
}

async fn unjoin() -> Outcome {
    let (lab, atoll, _hub) = start(&name("unjoin")).await?;
    for cluster in lab.clusters() {
        atoll.join(cluster).await?;
    }
    atoll.all_ready(lab.clusters()).await?;
    let two = lab.member(2);
    let property = kube::api::ApiResource::from_gvk(&kube::api::GroupVersionKind::gvk(
        "about.k8s.io",
        "v1beta1",
        "ClusterProperty",
    ));
    let properties: Api<DynamicObject> = Api::all_with(two.client().await?, &property);
    let id = properties.get("cluster.clusterset.k8s.io").await?;
    ensure!(id.data["spec"]["value"] == "member2", "{id:?}");
    properties.get("clusterset.k8s.io").await.context("it is in a clusterset")?;
    for cluster in lab.clusters() {
        cluster
            .apply(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})])
            .await?;
    }
    lab.member(1)
        .apply(&[json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"ports": [{"name": "http", "port": 80}]},
        })])
        .await?;
    crate::mcs::export(lab.member(1), "shop", "web").await?;
    crate::mcs::addresses(two, "shop", "web").await?;
    atoll.must(&["unjoin", "member2"]).await?;
    crate::mcs::nothing_is_imported(two, "shop", "web").await?;
    ensure!(properties.get_opt("clusterset.k8s.io").await?.is_none(), "it is in no clusterset");
    crate::mcs::addresses(lab.member(1), "shop", "web").await?;
    // The same cluster may come back under its name.
    atoll.join(two).await?;
    crate::mcs::addresses(two, "shop", "web").await?;
    lab.down()?;
    Ok(())
}

/// The hub's Secrets with the credentials of members.
async fn secrets(atoll: &Atoll) -> anyhow::Result<Api<Secret>> {
    let read = kube::config::Kubeconfig::read_from(atoll.kubeconfig())?;
    let config = kube::Config::from_custom_kubeconfig(read, &Default::default()).await?;
    Ok(Api::namespaced(kube::Client::try_from(config)?, "atoll-system"))
}

async fn token(secrets: &Api<Secret>, member: &str) -> anyhow::Result<String> {
    let data = secrets.get(member).await?.data.unwrap_or_default();
    Ok(String::from_utf8(data.get("token").context("it has a token")?.0.clone())?)
}

async fn renewed() -> Outcome {
    const HUB: &str = "system:serviceaccount:atoll-system:atoll-hub";
    let (lab, atoll, _hub) = start(&name("renew")).await?;
    let two = lab.member(2);
    atoll.join(two).await?;
    atoll.all_ready(std::slice::from_ref(two)).await?;
    let secrets = secrets(&atoll).await?;
    let before = token(&secrets, "member2").await?;
    let recorder = Recorder::of(two)?;
    let due =
        json!({"stringData": {"tokenIssuedAt": "2020-01-01T00:00:00Z", "tokenLifetimeSeconds": "3600"}});
    secrets.patch("member2", &PatchParams::default(), &Patch::Merge(&due)).await?;
    until(Deadline::after(Duration::from_secs(30), "the hub has another token"), async || {
        Ok(match token(&secrets, "member2").await {
            Ok(now) if now != before => Ok(()),
            Ok(_) => Err("it is the same".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    })
    .await?;
    // The hub writes with the new one.
    two.apply(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})]).await?;
    two.apply(&[json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    })])
    .await?;
    crate::mcs::export(two, "shop", "web").await?;
    crate::mcs::addresses(two, "shop", "web").await?;
    for one in recorder.requests().await?.into_iter().filter(|one| one.user == HUB) {
        ensure!(!matches!(one.code, 401 | 403), "refused: {one:?}");
        ensure!(one.request.verb != "watch", "a watch began anew: {one:?}");
    }
    lab.down()?;
    Ok(())
}

async fn stolen() -> Outcome {
    let (lab, atoll, _hub) = start(&name("stolen")).await?;
    let two = lab.member(2);
    atoll.join(two).await?;
    atoll.all_ready(std::slice::from_ref(two)).await?;
    two.apply(&[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]}}),
    ])
    .await?;
    let token = token(&secrets(&atoll).await?, "member2").await?;
    let thief = with_user(&two.kubeconfig(), &json!({"token": token}));
    let thief = kube::config::Kubeconfig::from_yaml(&thief.to_string())?;
    let thief =
        kube::Client::try_from(kube::Config::from_custom_kubeconfig(thief, &Default::default()).await?)?;
    let services: Api<Service> = Api::namespaced(thief.clone(), "shop");
    let evil = Patch::Merge(json!({"spec": {"selector": {"app": "evil"}}}));
    // The API server reads new policies with some delay.
    until(Deadline::after(Duration::from_secs(20), "the fence is up"), async || {
        Ok(match services.patch("web", &PatchParams::default().dry_run(), &evil).await {
            Err(kube::Error::Api(status)) if status.code == 422 || status.code == 403 => Ok(()),
            other => Err(format!("{:?}", other.map(|_| "allowed"))),
        })
    })
    .await?;
    let dns = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "evil", "namespace": "kube-system", "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.6.6.6"]}], "ports": []});
    let slice = kube::api::ApiResource::from_gvk_with_plural(
        &kube::api::GroupVersionKind::gvk("discovery.k8s.io", "v1", "EndpointSlice"),
        "endpointslices",
    );
    let slices: Api<DynamicObject> = Api::namespaced_with(thief.clone(), "kube-system", &slice);
    let made = slices.create(&Default::default(), &serde_json::from_value(dns)?).await;
    ensure!(made.is_err(), "endpoints were added to the cluster's DNS");
    atoll.must(&["cluster", "revoke", "member2"]).await?;
    until(Deadline::after(Duration::from_secs(60), "the token is refused"), async || {
        Ok(match services.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 401 => Ok(()),
            other => Err(format!("{:?}", other.map(|_| "it counts"))),
        })
    })
    .await?;
    atoll.join(two).await?;
    atoll.all_ready(std::slice::from_ref(two)).await?;
    lab.down()?;
    Ok(())
}
