//! Attacks on membership: other members' credentials, and what the hub's own may do. Beside each, the honest use.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_hub::join::Propagation;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::world::{Cluster, HUB, Outcome, World};

fn cluster(name: &str) -> Value {
    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}})
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": HUB}})
}

/// Its `Ready` condition.
fn ready(cluster: &Value) -> Value {
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|one| one["type"] == "Ready").unwrap_or_default()
}

async fn is_ready(world: &World, name: &str) -> Outcome {
    world.hub.becomes(&cluster(name), "it is ready", |found| ready(found)["status"] == "True").await?;
    Ok(())
}

async fn says(world: &World, name: &str, reason: &str) -> anyhow::Result<String> {
    let found = world.hub.becomes(&cluster(name), reason, |found| ready(found)["reason"] == reason).await?;
    ensure!(ready(&found)["status"] == "False", "{found:#}");
    Ok(ready(&found)["message"].as_str().unwrap_or_default().to_owned())
}

/// A server that listens for tokens, and never says a word.
struct Listener {
    address: String,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Listener {
    async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let all = Arc::clone(&all);
                tokio::spawn(async move {
                    let mut bytes = [0; 4096];
                    while let Ok(some @ 1..) = stream.read(&mut bytes).await {
                        all.lock().unwrap().extend_from_slice(&bytes[..some]);
                    }
                });
            }
        });
        Ok(Self { address, heard })
    }

    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

/// The hub's token for a member.
async fn token(world: &World, name: &str) -> anyhow::Result<String> {
    let secrets: Api<Secret> = Api::namespaced(world.hub.client.clone(), HUB);
    let data = secrets.get(name).await?.data.unwrap_or_default();
    Ok(String::from_utf8(data.get("token").context("it has a token")?.0.clone())?)
}

/// Who stole it.
async fn thief(member: &Cluster, token: String) -> anyhow::Result<Client> {
    let mut config = member.config().await?;
    config.auth_info = kube::config::AuthInfo { token: Some(token.into()), ..Default::default() };
    Ok(Client::try_from(config)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_object_that_points_at_anothers_secret_gets_no_byte_of_its_token() -> Outcome {
    let mut world = World::start(1).await?;
    is_ready(&world, "member1").await?;
    let listener = Listener::start().await?;
    for (name, spec, reason) in [
        ("plain", json!({"apiEndpoint": format!("http://{}", listener.address)}), "EndpointNotAllowed"),
        (
            "tls",
            json!({"apiEndpoint": format!("https://{}", listener.address)}),
            "CredentialsNotForThisCluster",
        ),
        (
            "unchecked",
            json!({"apiEndpoint": listener.address, "insecureSkipTLSVerification": true}),
            "CredentialsNotForThisCluster",
        ),
    ] {
        let mut evil = cluster(name);
        evil["spec"] = spec;
        evil["spec"]["syncMode"] = "Push".into();
        evil["spec"]["secretRef"] = json!({"namespace": HUB, "name": "member1"});
        evil["spec"]["impersonatorSecretRef"] = json!({"namespace": HUB, "name": "member1"});
        world.hub.apply(evil).await?;
        says(&world, name, reason).await?;
    }
    // The person at the command line is no easier to deceive.
    let reached = atoll_hub::reach::member(&world.hub.client, "tls").await;
    ensure!(reached.is_err(), "{:?}", reached.map(|config| config.cluster_url));
    ensure!(listener.heard().is_empty(), "a client connected: {}", listener.heard());
    is_ready(&world, "member1").await?;
    // A forged object goes at once, and leaves the Secret to its owner.
    world.hub.delete(&cluster("tls")).await?;
    world.hub.becomes(&cluster("tls"), "it goes", Value::is_null).await?;
    ensure!(!world.hub.get(&secret("member1")).await?.is_null(), "the member's Secret is gone");
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_endpoint_or_proxy_is_changed_sends_nothing_there_and_comes_back() -> Outcome {
    let mut world = World::start(1).await?;
    is_ready(&world, "member1").await?;
    let before = world.hub.get(&cluster("member1")).await?["spec"].clone();
    let listener = Listener::start().await?;
    let clusters: Api<atoll_api::types::Cluster> = Api::all(world.hub.client.clone());
    let set = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        clusters.patch("member1", &PatchParams::default(), &patch).await.map(drop)
    };
    for attack in [
        json!({"apiEndpoint": format!("http://{}", listener.address)}),
        json!({"apiEndpoint": format!("https://{}", listener.address), "insecureSkipTLSVerification": true}),
        json!({"proxyURL": format!("http://{}", listener.address)}),
        json!({"insecureSkipTLSVerification": true}),
        json!({"id": "00000000-0000-0000-0000-000000000000"}),
    ] {
        set(attack.clone()).await?;
        let message =
            says(&world, "member1", "EndpointNotAllowed").await.with_context(|| attack.to_string())?;
        ensure!(message.contains("atoll join member1"), "{message}");
        set(json!({
            "apiEndpoint": before["apiEndpoint"], "id": before["id"],
            "proxyURL": null, "insecureSkipTLSVerification": null,
        }))
        .await?;
        is_ready(&world, "member1").await.with_context(|| attack.to_string())?;
    }
    ensure!(listener.heard().is_empty(), "a client connected: {}", listener.heard());
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_another_namespace_is_neither_read_nor_deleted() -> Outcome {
    let mut world = World::start(1).await?;
    is_ready(&world, "member1").await?;
    let listener = Listener::start().await?;
    let theirs = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs", "namespace": "default",
            "labels": {"atoll.dev/cluster": "evil"}},
        "stringData": {"token": "swordfish", "cluster": "evil", "serverTrust": "None",
            "apiEndpoint": format!("https://{}", listener.address)}});
    world.hub.apply(theirs.clone()).await?;
    let mut evil = cluster("evil");
    evil["spec"] = json!({"syncMode": "Push", "apiEndpoint": format!("https://{}", listener.address),
        "insecureSkipTLSVerification": true, "secretRef": {"namespace": "default", "name": "theirs"}});
    world.hub.apply(evil).await?;
    let told = |found: &Value| {
        ready(found)["message"].as_str().is_some_and(|why| why.contains("its own namespace only"))
    };
    world.hub.becomes(&cluster("evil"), "it is told so", told).await?;
    atoll_hub::unjoin::unjoin(&world.hub.client, HUB, "evil", true, Duration::from_secs(10)).await?;
    ensure!(!world.hub.get(&theirs).await?.is_null(), "a Secret of another namespace was deleted");
    ensure!(listener.heard().is_empty(), "a client connected: {}", listener.heard());
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_authority_ends_the_connection_before_the_token() -> Outcome {
    // The attacker has taken the member's very address, by ARP or DNS: only the pinned certificate is left.
    let mut world = World::start(1).await?;
    is_ready(&world, "member1").await?;
    world.members[0].cut();
    let mut impostor = Cluster::start("impostor").await?;
    impostor.take_place_of(&world.members[0])?;
    impostor.serve().await?;
    world
        .hub
        .becomes(&cluster("member1"), "it is not reachable", |found| {
            ready(found)["message"].as_str().is_some_and(|why| why.contains("certificate"))
        })
        .await?;
    impostor.cut();
    drop(impostor);
    world.members[0].serve().await?;
    is_ready(&world, "member1").await?;
    world.halt().await
}

fn service(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "protocol": "TCP"}]}})
}

fn slice(namespace: &str, service: &str, hub: &str) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": format!("{service}-stolen"), "namespace": namespace,
            "labels": {"kubernetes.io/service-name": service, "atoll.dev/hub": hub}},
        "addressType": "IPv4", "endpoints": [{"addresses": ["10.6.6.6"]}], "ports": []})
}

async fn hub_uid(world: &World) -> anyhow::Result<String> {
    let system = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}});
    Ok(world.hub.get(&system).await?["metadata"]["uid"].as_str().context("it has a uid")?.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_token_changes_no_service_of_a_user_and_makes_no_token_that_outlives_its_theft() -> Outcome {
    let mut world = World::start(0).await?;
    world.join_with("member1", Propagation::Nothing).await?;
    is_ready(&world, "member1").await?;
    let hub = hub_uid(&world).await?;
    world.halt().await?; // or it would tidy up
    let member = &world.members[0];
    member.apply(service("web", &json!({"team": "a"}))).await?;
    let thief = member.as_user(thief(member, token(&world, "member1").await?).await?);

    let ours = json!({"atoll.dev/hub": hub});
    let refused = async |what: &str, done: anyhow::Result<Value>| {
        let error = done.err().with_context(|| format!("{what} was allowed"))?;
        ensure!(
            format!("{error:#}").contains("forbidden") || format!("{error:#}").contains("Forbidden"),
            "{what}: {error:#}"
        );
        anyhow::Ok(())
    };
    let patch = async |labels: Value, annotations: Value, selector: &str| {
        thief.merge(
            &service("web", &json!({})),
            json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": {"selector": {"app": selector}}}),
        )
        .await
    };
    refused("a changed selector", patch(json!({}), json!({}), "evil").await).await?;
    refused("a claim on it", patch(ours.clone(), json!({}), "evil").await).await?;
    let copy = json!({"atoll.dev/propagated-by": hub});
    let adopted = json!({"atoll.dev/adopted": "true"});
    refused("a change while it is taken over", patch(copy.clone(), adopted.clone(), "evil").await).await?;
    refused("taking it over in secret", patch(copy.clone(), json!({}), "web").await).await?;
    refused("a Service without a mark", thief.create(service("other", &json!({}))).await).await?;
    refused("its deletion", thief.delete(&service("web", &json!({}))).await.map(|()| Value::Null)).await?;
    refused("endpoints of the cluster's DNS", thief.create(slice("kube-system", "kube-dns", &hub)).await)
        .await?;
    refused("endpoints of the cluster's API", thief.create(slice("default", "kubernetes", &hub)).await)
        .await?;
    refused("endpoints without a mark", thief.create(slice("shop", "web", "another-hub")).await).await?;
    let secrets: Api<Secret> = Api::all(thief.client.clone());
    ensure!(secrets.list(&Default::default()).await.is_err(), "it reads Secrets");

    // Tokens: renewed as the hub renews them, and in no other way.
    let accounts: Api<ServiceAccount> = Api::namespaced(thief.client.clone(), HUB);
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: Some("atoll-hub-credentials".to_owned()),
        ..Default::default()
    };
    let ask = async |bound_object_ref, seconds| {
        let spec =
            TokenRequestSpec { bound_object_ref, expiration_seconds: Some(seconds), ..Default::default() };
        let request = TokenRequest { spec: Some(spec), ..Default::default() };
        accounts.create_token_request("atoll-hub", &PostParams::default(), &request).await.is_ok()
    };
    ensure!(!ask(None, 3600).await, "a token that nothing revokes");
    ensure!(!ask(Some(bound.clone()), 10 * 365 * 24 * 3600).await, "a token for ten years");
    ensure!(ask(Some(bound), 3600).await, "the hub can't renew its token");

    // The honest uses of the same rights.
    patch(copy, adopted, "web").await.context("a Service is taken over as it is")?;
    refused("a change after it was taken over", patch(json!({}), json!({}), "evil").await).await?;
    let unmarked = json!({"atoll.dev/propagated-by": null});
    let released = json!({"atoll.dev/adopted": null});
    refused("a change while it is given back", patch(unmarked.clone(), released.clone(), "evil").await)
        .await?;
    patch(unmarked, released, "web").await.context("it is given back")?;
    thief.create(service("derived", &ours)).await.context("a Service with the hub's mark")?;
    thief.create(slice("shop", "web", &hub)).await.context("a slice with the hub's mark")?;
    thief.delete(&slice("shop", "web", &hub)).await?;
    thief.delete(&service("derived", &json!({}))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_no_more_than_the_fenced_rights_a_service_is_exported_imported_and_cleaned_up() -> Outcome {
    let mut world = World::start(0).await?;
    for name in ["member1", "member2"] {
        world.join_with(name, Propagation::Nothing).await?;
        is_ready(&world, name).await?;
    }
    let [one, two] = &world.members[..] else { anyhow::bail!("two members") };
    one.apply(service("web", &json!({}))).await?;
    one.apply(json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": "web", "namespace": "shop"}}))
        .await?;
    let import = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "web", "namespace": "shop"}});
    two.becomes(&import, "it is imported", |found| !found["spec"]["ips"].is_null()).await?;
    atoll_hub::unjoin::unjoin(&world.hub.client, HUB, "member2", false, Duration::from_secs(30)).await?;
    two.becomes(&import, "it is cleaned up", Value::is_null).await?;
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "atoll-hub-services"}});
    two.becomes(&policy, "the fence goes with the role", Value::is_null).await?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_opens_nothing_and_the_condition_says_to_join_again() -> Outcome {
    let mut world = World::start(1).await?;
    is_ready(&world, "member1").await?;
    let stolen = thief(&world.members[0], token(&world, "member1").await?).await?;
    ensure!(atoll_member::cluster_uid(&stolen).await.is_ok(), "it counts");
    let config = atoll_hub::reach::member(&world.hub.client, "member1").await?;
    let own_way = atoll_hub::connect::client(config)?;
    let revoked = atoll_hub::revoke::revoke(&world.hub.client, HUB, &own_way).await?;
    ensure!(revoked.account, "there was an account");
    ensure!(atoll_member::cluster_uid(&stolen).await.is_err(), "it still counts");
    let told = |found: &Value| {
        ready(found)["message"].as_str().is_some_and(|why| why.contains("run `atoll join member1"))
    };
    world.hub.becomes(&cluster("member1"), "it says what to do", told).await?;
    world.admit(&world.members[0], Propagation::Everything).await?;
    is_ready(&world, "member1").await?;
    ensure!(atoll_member::cluster_uid(&stolen).await.is_err(), "the old token counts again");
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_replaced_under_load_and_nothing_is_missed() -> Outcome {
    let mut world = World::start(2).await?;
    for name in ["member1", "member2"] {
        is_ready(&world, name).await?;
    }
    let since = async |name: &str| {
        anyhow::Ok(ready(&world.hub.get(&cluster(name)).await?)["lastTransitionTime"].clone())
    };
    let before = [since("member1").await?, since("member2").await?];
    let [one, two] = &world.members[..] else { anyhow::bail!("two members") };
    one.apply(service("web", &json!({}))).await?;
    one.apply(json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": "web", "namespace": "shop"}}))
        .await?;
    let kind = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"namespace": "shop"}});
    let mut tokens = std::collections::BTreeSet::new();
    for round in 1..=40u8 {
        if round % 10 == 1 {
            // Half of its life is over.
            let due = jiff::Timestamp::now() - Duration::from_secs(3600);
            let patch =
                json!({"stringData": {"tokenIssuedAt": due.to_string(), "tokenLifetimeSeconds": "3600"}});
            for name in ["member1", "member2"] {
                tokens.insert(token(&world, name).await?);
                let secrets: Api<Secret> = Api::namespaced(world.hub.client.clone(), HUB);
                secrets.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            }
        }
        let address = format!("10.1.0.{round}");
        one.apply(json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web",
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}},
            "addressType": "IPv4", "ports": [{"port": 8080, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}]}))
            .await?;
        let give_up = tokio::time::Instant::now() + Duration::from_secs(20);
        loop {
            let slices = two.list(&kind, "multicluster.kubernetes.io/service-name=web").await?;
            let there = slices
                .iter()
                .any(|slice: &DynamicObject| slice.data["endpoints"][0]["addresses"][0] == address);
            if there {
                break;
            }
            ensure!(tokio::time::Instant::now() < give_up, "{address} did not come: {slices:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    for name in ["member1", "member2"] {
        tokens.insert(token(&world, name).await?);
    }
    ensure!(tokens.len() >= 8, "only {} tokens were used", tokens.len());
    ensure!([since("member1").await?, since("member2").await?] == before, "a member was not ready meanwhile");
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_not_joined_twice_under_two_names() -> Outcome {
    let mut world = World::start(1).await?;
    is_ready(&world, "member1").await?;
    world.members[0].name = "other".to_owned();
    let again = world.admit(&world.members[0], Propagation::Nothing).await;
    let error = format!("{:#}", again.err().context("it joined twice")?);
    ensure!(error.contains("already a member, with the name `member1`"), "{error}");
    world.halt().await
}
