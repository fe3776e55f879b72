//! Attacks on what members say, against a whole hub: what may not cross does not, its owner is told why, and the others go on.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::world::{Cluster, Outcome, World};

fn of(kind: &str, api: &str, namespace: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
}

fn export_of(namespace: &str, name: &str) -> Value {
    of("ServiceExport", "multicluster.x-k8s.io/v1beta1", namespace, name)
}

fn import_of(namespace: &str, name: &str) -> Value {
    of("ServiceImport", "multicluster.x-k8s.io/v1beta1", namespace, name)
}

async fn serves(member: &Cluster, namespace: &str, name: &str, address: &str) -> Outcome {
    let mut service = of("Service", "v1", namespace, name);
    service["spec"] = json!({"ports": [{"name": "dns", "port": 53, "targetPort": 53, "protocol": "TCP"}]});
    let mut slice = of("EndpointSlice", "discovery.k8s.io/v1", namespace, &format!("{name}-1"));
    slice["metadata"]["labels"] = json!({"kubernetes.io/service-name": name});
    slice["addressType"] = "IPv4".into();
    slice["endpoints"] = json!([{"addresses": [address], "conditions": {"ready": true}}]);
    slice["ports"] = json!([{"name": "dns", "port": 53, "protocol": "TCP"}]);
    member.apply(service).await?;
    member.apply(slice).await.map(drop)
}

/// Waits until a condition of the export says so; gives its message.
async fn says(
    member: &Cluster,
    export: &Value,
    kind: &str,
    status: &str,
    reason: &str,
) -> anyhow::Result<String> {
    let find = |found: &Value| -> Option<String> {
        let conditions = found["status"]["conditions"].as_array()?;
        let one = conditions.iter().find(|one| one["type"] == kind)?;
        (one["status"] == status && one["reason"] == reason).then(|| one["message"].to_string())
    };
    let found = member
        .becomes(export, &format!("{kind} is {status} for {reason}"), |found| find(found).is_some())
        .await?;
    Ok(find(&found).unwrap_or_default())
}

/// The addresses that a member holds of another's service.
async fn holds(member: &Cluster, namespace: &str, name: &str) -> anyhow::Result<Vec<String>> {
    let kind = of("EndpointSlice", "discovery.k8s.io/v1", namespace, "");
    let slices = member.list(&kind, &format!("multicluster.kubernetes.io/service-name={name}")).await?;
    let endpoints =
        slices.iter().flat_map(|slice| slice.data["endpoints"].as_array().cloned().unwrap_or_default());
    Ok(endpoints.filter_map(|one| Some(one["addresses"][0].as_str()?.to_owned())).collect())
}

async fn comes_to_hold(member: &Cluster, namespace: &str, name: &str, want: &[&str]) -> Outcome {
    let mut held = Vec::new();
    for _ in 0..1500 {
        held = holds(member, namespace, name).await?;
        held.sort();
        if held == want {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("{} holds {held:?} and should hold {want:?}", member.name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kube_dns_does_not_cross() -> Outcome {
    let world = World::start(2).await?;
    serves(&world.members[0], "kube-system", "kube-dns", "10.1.0.10").await?;
    world.members[0].apply(export_of("kube-system", "kube-dns")).await?;
    // Beside it, what is no system namespace.
    serves(&world.members[0], "shop", "web", "10.1.0.11").await?;
    world.members[0].apply(export_of("shop", "web")).await?;
    comes_to_hold(&world.members[1], "shop", "web", &["10.1.0.11"]).await?;
    let why = says(&world.members[0], &export_of("kube-system", "kube-dns"), "Valid", "False", "NotAllowed")
        .await?;
    ensure!(why.contains("--allow-namespace"), "{why}");
    ensure!(holds(&world.members[1], "kube-system", "kube-dns").await?.is_empty());
    ensure!(world.members[1].get(&import_of("kube-system", "kube-dns")).await?.is_null());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_fat_export_does_not_freeze_the_service() -> Outcome {
    let world = World::start(3).await?;
    let (honest, mallory, other) = (&world.members[0], &world.members[1], &world.members[2]);
    serves(honest, "shop", "web", "10.1.0.1").await?;
    honest.apply(export_of("shop", "web")).await?;
    comes_to_hold(other, "shop", "web", &["10.1.0.1"]).await?;
    serves(mallory, "shop", "web", "10.6.6.6").await?;
    let mut fat = export_of("shop", "web");
    fat["spec"] = json!({"exportedAnnotations": {"example.com/notes": "x".repeat(1_200_000)}});
    mallory.apply(fat).await?;
    let why = says(mallory, &export_of("shop", "web"), "Valid", "False", "LimitExceeded").await?;
    ensure!(why.contains("exported-bytes") && why.contains("8192"), "{why}");
    serves(honest, "shop", "web", "10.1.0.2").await?;
    comes_to_hold(other, "shop", "web", &["10.1.0.2"]).await?;
    says(honest, &export_of("shop", "web"), "Valid", "True", "Valid").await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sharing_policy_withdraws_what_it_does_not_allow_and_gives_it_back() -> Outcome {
    let world = World::start(3).await?;
    serves(&world.members[0], "shop", "web", "10.1.0.1").await?;
    world.members[0].apply(export_of("shop", "web")).await?;
    for member in &world.members[1..] {
        comes_to_hold(member, "shop", "web", &["10.1.0.1"]).await?;
    }
    let policy = |export_from: &[&str], import_into: &[&str]| {
        json!({"apiVersion": "atoll.dev/v1alpha1", "kind": "SharingPolicy", "metadata": {"name": "shop"},
            "spec": {"namespaces": ["shop"], "exportFrom": export_from, "importInto": import_into}})
    };
    world.hub.apply(policy(&["member1"], &["member2"])).await?;
    comes_to_hold(&world.members[2], "shop", "web", &[]).await?;
    comes_to_hold(&world.members[1], "shop", "web", &["10.1.0.1"]).await?;
    world.hub.apply(policy(&[], &["*"])).await?;
    says(&world.members[0], &export_of("shop", "web"), "Valid", "False", "NotAllowed").await?;
    comes_to_hold(&world.members[1], "shop", "web", &[]).await?;
    world.hub.delete(&policy(&[], &[])).await?;
    for member in &world.members[1..] {
        comes_to_hold(member, "shop", "web", &["10.1.0.1"]).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_object_does_not_widen_what_a_member_may_announce() -> Outcome {
    let world = World::start(2).await?;
    let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member1"}});
    for (key, ranges) in [("observed-pod-cidrs", "10.1.0.0/16"), ("observed-node-cidrs", "192.168.0.4/32")] {
        world.hub.annotate(&secret_of("member1"), &format!("atoll.dev/{key}"), ranges).await?;
    }
    serves(&world.members[0], "shop", "web", "10.1.0.1").await?;
    world.members[0].apply(export_of("shop", "web")).await?;
    comes_to_hold(&world.members[1], "shop", "web", &["10.1.0.1"]).await?;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lie"},
        "spec": {"podCIDR": "10.9.0.0/16", "podCIDRs": ["10.9.0.0/16"]},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.9.0.9"}]}});
    world.members[0].apply(node).await?;
    serves(&world.members[0], "shop", "web", "10.9.0.9").await?;
    let why = says(&world.members[0], &export_of("shop", "web"), "Ready", "False", "Failed").await?;
    ensure!(why.contains("outside"), "{why}");
    comes_to_hold(&world.members[1], "shop", "web", &[]).await?;
    let declared = |found: &Value| found["status"]["conditions"].to_string().contains("ReadAtJoin");
    world.hub.becomes(&cluster, "the operator sees what counts", declared).await.map(drop)
}

fn secret_of(member: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": member, "namespace": "atoll-system"}})
}

/// Whoever may write `clusters` opens no address to a member, and denies none to another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_of_clusters_declares_no_members_networks() -> Outcome {
    let world = World::start(3).await?;
    let cluster = |name: &str| json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}});
    world.hub.annotate(&secret_of("member1"), "atoll.dev/pod-cidrs", "10.1.0.0/16").await?;
    world.hub.annotate(&cluster("member1"), "atoll.dev/pod-cidrs", "10.0.0.0/8").await?;
    world.hub.annotate(&cluster("member2"), "atoll.dev/pod-cidrs", "10.1.0.0/24").await?;
    let told = |found: &Value| found["status"]["conditions"].to_string().contains("do not count");
    for name in ["member1", "member2"] {
        world
            .hub
            .becomes(&cluster(name), "the Cluster shows that its annotations do not count", told)
            .await?;
    }
    serves(&world.members[0], "shop", "web", "10.1.0.1").await?;
    world.members[0].apply(export_of("shop", "web")).await?;
    comes_to_hold(&world.members[2], "shop", "web", &["10.1.0.1"]).await?;
    serves(&world.members[0], "shop", "web", "10.9.0.9").await?;
    let why = says(&world.members[0], &export_of("shop", "web"), "Ready", "False", "Failed").await?;
    ensure!(why.contains("outside"), "{why}");
    // Honest: whoever may write the member's Secret declares its networks, with or without a join.
    world.hub.annotate(&secret_of("member1"), "atoll.dev/pod-cidrs", "10.1.0.0/16,10.9.0.0/16").await?;
    comes_to_hold(&world.members[2], "shop", "web", &["10.9.0.9"]).await
}
