//! What a `MultiClusterService` of type `LoadBalancer` does: from members' endpoints to a balancer, and back to its status.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_hub::balancing::Balancing;
use atoll_lb::provider::{
    Access, Ingress, Key, Provider, ProviderError, Remote, Spec, Status, async_trait, serve,
};
use atoll_lb::{Balancer, DataPath};
use atoll_lb_kube::{Follow, follow};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::world::{Cluster, Outcome, World};

const PATIENCE: Duration = Duration::from_secs(30);

fn mcs(name: &str, annotations: &Value) -> Value {
    json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations}, "spec": {"types": ["LoadBalancer"]}})
}

fn service(name: &str, port: u16) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": port, "targetPort": 8080, "protocol": "TCP"}]}})
}

fn slice(service: &str, backends: &[&str], port: u16) -> Value {
    let endpoints: Vec<Value> =
        backends.iter().map(|one| json!({"addresses": [one], "conditions": {"ready": true}})).collect();
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": format!("{service}-1"), "namespace": "shop", "labels": {"kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}},
        "endpoints": endpoints, "ports": [{"name": "http", "port": port, "protocol": "TCP"}]})
}

fn published(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("lb.shop.{name}"), "namespace": "atoll-system"}})
}

/// The condition's status and message.
fn condition(object: &Value) -> (String, String) {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == "LoadBalancerReady").unwrap_or_default();
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

fn ingress(object: &Value) -> Vec<String> {
    let all = object["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
    all.iter().filter_map(|one| Some(one["ip"].as_str()?.to_owned())).collect()
}

async fn is_balanced(hub: &Cluster, object: &Value) -> anyhow::Result<Value> {
    let ready = |found: &Value| condition(found).0 == "True" && !ingress(found).is_empty();
    hub.becomes(object, "it has an address", ready).await
}

/// The backends of the first listener, with their clusters.
fn backends(map: &Value) -> Vec<(String, String)> {
    let text = map["data"]["lb.json"].as_str().unwrap_or_default();
    let all = atoll_lb::config::parse(text).map(|wanted| wanted.listeners).unwrap_or_default();
    let first = all.into_iter().next().map(|listener| listener.backends).unwrap_or_default();
    first.iter().map(|one| (one.address.to_string(), one.cluster.to_string())).collect()
}

async fn leads_to(hub: &Cluster, name: &str, want: &[(&str, &str)]) -> anyhow::Result<Value> {
    let want: Vec<(String, String)> =
        want.iter().map(|(address, cluster)| ((*address).to_owned(), (*cluster).to_owned())).collect();
    hub.becomes(&published(name), &format!("it leads to {want:?}"), |map| backends(map) == want).await
}

async fn set_up(pool: &str) -> anyhow::Result<World> {
    let world = World::balanced_by(Balancing::BuiltIn(pool.parse()?), 2).await?;
    world.hub.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    for (number, member) in (1..).zip(&world.members) {
        member.apply(service("web", 80)).await?;
        member.apply(slice("web", &[&format!("10.{number}.0.1")], 8080)).await?;
    }
    Ok(world)
}

const BOTH: [(&str, &str); 2] = [("10.1.0.1:8080", "member1"), ("10.2.0.1:8080", "member2")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_of_all_members_get_one_address_which_outlives_the_hub_and_goes_with_the_service() -> Outcome
{
    let mut world = set_up("192.0.2.0/29,2001:db8::/125").await?;
    let object = mcs("web", &json!({"atoll.dev/weights": "member1=3,member2=1"}));
    world.hub.apply(object.clone()).await?;
    let shown = is_balanced(&world.hub, &object).await?;
    ensure!(ingress(&shown) == ["192.0.2.1", "2001:db8::1"], "{shown:#}");
    ensure!(
        shown["metadata"]["finalizers"] == json!(["karmada.io/multi-cluster-service-controller"]),
        "{shown:#}"
    );
    let map = leads_to(&world.hub, "web", &BOTH).await?;
    let text = map["data"]["lb.json"].as_str().context("a text")?;
    let wanted = atoll_lb::config::parse(text)?;
    ensure!(wanted.listeners[0].address == "192.0.2.1:80".parse()?, "{text}");
    ensure!(wanted.listeners[0].settings.clusters["member1"].weight == Some(3), "{text}");
    world
        .hub
        .becomes(&object, "the endpoints are counted", |found| found["status"]["endpoints"] == 2)
        .await?;

    // A second service has another address; a changed endpoint changes what is published.
    for (number, member) in (1..).zip(&world.members) {
        member.apply(service("other", 80)).await?;
        member.apply(slice("other", &[&format!("10.{number}.0.8")], 8080)).await?;
    }
    let other = mcs("other", &json!({}));
    world.hub.apply(other.clone()).await?;
    ensure!(ingress(&is_balanced(&world.hub, &other).await?)[0] == "192.0.2.2");
    world.members[0].apply(slice("web", &["10.1.0.1", "10.1.0.2"], 8080)).await?;
    let three = [("10.1.0.1:8080", "member1"), ("10.1.0.2:8080", "member1"), ("10.2.0.1:8080", "member2")];
    leads_to(&world.hub, "web", &three).await?;

    // Another hub keeps the address, and does what was missed meanwhile: a change, and a deletion.
    world.halt().await?;
    world.members[0].apply(slice("web", &["10.1.0.1"], 8080)).await?;
    world.hub.delete(&other).await?;
    world.run();
    world.hub.becomes(&other, "the deletion is finished", Value::is_null).await?;
    world.hub.becomes(&published("other"), "its address is free", Value::is_null).await?;
    leads_to(&world.hub, "web", &BOTH).await?;
    ensure!(ingress(&world.hub.get(&object).await?)[0] == "192.0.2.1");

    world.hub.delete(&object).await?;
    world.hub.becomes(&object, "it is gone", Value::is_null).await?;
    ensure!(world.hub.get(&published("web")).await?.is_null(), "nothing is left of it");
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_no_new_hub_has_heard_keeps_its_backends_and_one_that_is_withdrawn_does_not() -> Outcome
{
    let mut world = set_up("192.0.2.0/29").await?;
    let kept = mcs("web", &json!({}));
    world.hub.apply(kept.clone()).await?;
    leads_to(&world.hub, "web", &BOTH).await?;
    is_balanced(&world.hub, &kept).await?;

    world.halt().await?;
    world.members[1].cut();
    world.members[0].apply(slice("web", &["10.1.0.9"], 8080)).await?;
    world.run();
    let both = [("10.1.0.9:8080", "member1"), ("10.2.0.1:8080", "member2")];
    leads_to(&world.hub, "web", &both).await.context("the new hub has not heard member2")?;
    world.hub.apply(mcs("web", &json!({"atoll.dev/liveness": "Withdraw"}))).await?;
    leads_to(&world.hub, "web", &both[..1]).await.context("member2 is withdrawn")?;
    world.members[1].serve().await?;
    leads_to(&world.hub, "web", &both).await.context("member2 is back")?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_is_said_in_the_condition() -> Outcome {
    let mut world = set_up("").await?;
    let says = async |world: &World, object: &Value, words: &str| {
        world
            .hub
            .becomes(object, &format!("it says {words:?}"), |found| {
                let (status, message) = condition(found);
                status == "False" && message.contains(words)
            })
            .await
    };
    let web = mcs("web", &json!({}));
    world.hub.apply(web.clone()).await?;
    says(&world, &web, "the hub has no addresses for load balancers").await?;
    ensure!(world.hub.get(&published("web")).await?.is_null());

    world.halt().await?;
    world.balancing = Balancing::BuiltIn("192.0.2.0/30".parse()?);
    world.run();
    is_balanced(&world.hub, &web).await?;
    let none = mcs("none", &json!({}));
    world.hub.apply(none.clone()).await?;
    says(&world, &none, "the service has no ports").await?;
    for name in ["clash", "outside", "second", "third"] {
        world.members[0].apply(service(name, 80)).await?;
    }
    let clash = mcs("clash", &json!({"atoll.dev/lb-addresses": "192.0.2.1"}));
    world.hub.apply(clash.clone()).await?;
    says(&world, &clash, "TCP port 80 of 192.0.2.1 is used by shop/web").await?;
    let outside = mcs("outside", &json!({"atoll.dev/lb-addresses": "192.0.2.9"}));
    world.hub.apply(outside.clone()).await?;
    says(&world, &outside, "192.0.2.9 is not in the pool 192.0.2.0/30").await?;
    // A ConfigMap of the name that is not ours is left alone.
    let mut theirs = published("second");
    theirs["data"] = json!({"mine": "yes"});
    world.hub.apply(theirs.clone()).await?;
    let second = mcs("second", &json!({}));
    world.hub.apply(second.clone()).await?;
    says(&world, &second, "already exists").await?;
    ensure!(world.hub.get(&theirs).await?["data"] == json!({"mine": "yes"}));
    world.hub.delete(&theirs).await?;
    // Another port of the same address is free.
    world.members[0].apply(service("clash", 81)).await?;
    says(&world, &clash, "it has the address 192.0.2.1, but no backends").await?;
    says(&world, &second, "it has the address 192.0.2.2, but no backends").await?;
    let third = mcs("third", &json!({}));
    world.hub.apply(third.clone()).await?;
    says(&world, &third, "all addresses of the pool 192.0.2.0/30 are in use").await?;
    // It does not wait for its next try when its owner does something about it.
    world.hub.apply(mcs("third", &json!({"atoll.dev/lb-addresses": "192.0.2.2"}))).await?;
    says(&world, &third, "TCP port 80 of 192.0.2.2 is used by shop/second").await?;
    // Nor when another service makes room.
    world.hub.delete(&second).await?;
    says(&world, &third, "it has the address 192.0.2.2, but no backends").await?;
    world.members[0].apply(slice("third", &["10.1.0.9"], 8080)).await?;
    is_balanced(&world.hub, &third).await?;
    for object in [&none, &outside, &third] {
        world.hub.delete(object).await?;
        world
            .hub
            .becomes(object, "it goes at once, whether or not it has an address", Value::is_null)
            .await?;
    }

    world.halt().await?;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "member1", "namespace": "atoll-system"}});
    world.hub.annotate(&secret, "atoll.dev/observed-pod-cidrs", "192.0.2.0/24").await?;
    world.hub.apply(mcs("outside", &json!({}))).await?;
    world.run();
    says(&world, &outside, "overlaps the pod network 192.0.2.0/24 of member1").await?;

    // Where load balancers belong to another controller, nothing is done about them.
    world.halt().await?;
    world.balancing = Balancing::Off;
    world.hub.apply(mcs("theirs", &json!({}))).await?;
    world.run();
    let cross = json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
        "metadata": {"name": "web2", "namespace": "shop"}, "spec": {"types": ["CrossCluster"]}});
    world.hub.apply(cross.clone()).await?;
    world.hub.becomes(&cross, "the hub works", |found| !found["status"]["conditions"].is_null()).await?;
    let theirs = world.hub.get(&mcs("theirs", &json!({}))).await?;
    ensure!(theirs["metadata"]["finalizers"].is_null() && theirs["status"].is_null(), "{theirs:#}");
    world.halt().await
}

/// A server that says its name to whoever connects.
async fn server(name: &'static str) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, name.as_bytes()).await;
        }
    });
    Ok(address)
}

async fn ask(address: SocketAddr) -> anyhow::Result<String> {
    let mut said = String::new();
    let mut stream = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await??;
    let from = stream.local_addr();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut said)).await;
    read.with_context(|| format!("{from:?} heard {said:?} and no end"))??;
    Ok(said)
}

/// A port that no program has at the moment.
fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_balancer_carries_what_the_hub_published_also_when_the_hub_is_gone() -> Outcome {
    let mut world = World::start(0).await?;
    let (port, backend) = (free_port()?, server("paris").await?);
    let vip: SocketAddr = format!("127.77.0.1:{port}").parse()?;
    let text =
        json!({"listeners": [{"name": "shop/web", "address": vip, "backends": [{"address": backend}]}]});
    let mut object = published("web");
    object["metadata"]["labels"] = json!({"atoll.dev/balancer": "builtin"});
    object["data"] = json!({"lb.json": text.to_string()});
    world.hub.apply(object.clone()).await?;

    let folder = tempfile::tempdir()?;
    let options = Follow {
        namespace: "atoll-system".to_owned(),
        interface: None,
        state: Some(folder.path().join("lb.json")),
        near: Vec::new(),
    };
    let run = |client: kube::Client| {
        let options = options.clone();
        tokio::spawn(async move {
            let balancer = Balancer::start(DataPath::UserSpace, 1).unwrap();
            follow(client, &balancer, &options).await;
        })
    };
    let answers = async |what: &str| {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            match ask(vip).await {
                Ok(said) if said == "paris" => return anyhow::Ok(()),
                other => ensure!(tokio::time::Instant::now() < give_up, "{what}: {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // What one has left must not answer for the next.
    let is_left = async || {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        while TcpStream::connect(vip).await.is_ok() {
            ensure!(tokio::time::Instant::now() < give_up, "its address is still listened on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    let noted = async |words: &str| {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            match std::fs::read_to_string(folder.path().join("lb.json")) {
                Ok(text) if text.contains(words) => return anyhow::Ok(()),
                other => ensure!(tokio::time::Instant::now() < give_up, "{words}: {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let first = run(world.hub.client.clone());
    answers("it carries").await?;
    noted("shop/web").await?;
    world.halt().await?;
    answers("the hub is gone").await?;
    first.abort();
    let _ = first.await;
    is_left().await?;
    // Restarted where no hub answers: it goes on with what it noted.
    let nowhere: kube::Client = kube::Client::try_from(kube::Config::new("http://127.0.0.1:9".parse()?))?;
    let second = run(nowhere);
    answers("it was restarted without the hub").await?;
    second.abort();
    let _ = second.await;
    is_left().await?;

    // The hub is back, and the service is deleted: no balancer listens there any more.
    let third = run(world.hub.client.clone());
    answers("the hub is back").await?;
    world.hub.delete(&object).await?;
    is_left().await?;
    noted("\"listeners\":[]").await?;
    third.abort();
    Ok(())
}

/// What goes wrong in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Refuses,
    Hangs,
    /// Does it, and its answer is lost.
    Dies,
    Nonsense,
}

/// A provider that does one kind of call wrong, the first few times.
#[derive(Default)]
struct Clumsy {
    fault: Mutex<Option<(&'static str, Fault, usize)>>,
    made: Mutex<BTreeMap<Key, Spec>>,
    calls: Mutex<Vec<&'static str>>,
}

impl Clumsy {
    /// What is to go wrong now.
    fn fault(&self, call: &'static str) -> Option<Fault> {
        self.calls.lock().unwrap().push(call);
        let mut fault = self.fault.lock().unwrap();
        let (wrong, how, left) = fault.as_mut().filter(|(wrong, _, left)| *wrong == call && *left > 0)?;
        let _ = wrong;
        *left -= 1;
        Some(*how)
    }

    async fn act<T>(
        &self,
        call: &'static str,
        work: impl FnOnce(&mut BTreeMap<Key, Spec>) -> T,
        nonsense: Option<T>,
    ) -> Result<T, ProviderError> {
        match self.fault(call) {
            Some(Fault::Refuses) => Err(ProviderError::passing("out of order")),
            Some(Fault::Hangs) => std::future::pending().await,
            Some(Fault::Dies) => {
                work(&mut self.made.lock().unwrap());
                Err(ProviderError::passing("connection reset"))
            }
            Some(Fault::Nonsense) => match nonsense {
                Some(nonsense) => Ok(nonsense),
                None => Err(ProviderError::passing("?")),
            },
            None => Ok(work(&mut self.made.lock().unwrap())),
        }
    }
}

fn fine() -> Status {
    Status { ingress: vec![Ingress::Ip([198, 51, 100, 1].into())] }
}

fn senseless() -> Status {
    Status { ingress: vec![Ingress::Ip([0, 0, 0, 0].into())] }
}

#[async_trait]
impl Provider for Clumsy {
    async fn get(&self, key: &Key) -> Result<Option<Status>, ProviderError> {
        self.act("get", |made| made.contains_key(key).then(fine), Some(Some(senseless()))).await
    }

    async fn ensure(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        let work = |made: &mut BTreeMap<Key, Spec>| {
            made.insert(key.clone(), spec.clone());
            fine()
        };
        self.act("ensure", work, Some(senseless())).await
    }

    async fn update(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        let work = |made: &mut BTreeMap<Key, Spec>| {
            made.insert(key.clone(), spec.clone());
            fine()
        };
        self.act("update", work, Some(senseless())).await
    }

    async fn ensure_deleted(&self, key: &Key) -> Result<(), ProviderError> {
        self.act("delete", |made| drop(made.remove(key)), None).await
    }
}

async fn until(what: &str, holds: impl Fn() -> bool) -> Outcome {
    let give_up = tokio::time::Instant::now() + PATIENCE;
    while !holds() {
        ensure!(tokio::time::Instant::now() < give_up, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_provider_does_wrong_and_whenever_the_hub_ends_nothing_is_left_behind() -> Outcome {
    let clumsy = Arc::new(Clumsy::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("grpc://{}", listener.local_addr()?);
    tokio::spawn(serve(listener, Arc::clone(&clumsy) as _));
    let remote = Remote::new(&url, &Access::plaintext(), Duration::from_millis(500))?;
    let mut world = World::balanced_by(Balancing::Provider(Arc::new(remote)), 1).await?;
    world.hub.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    world.members[0].apply(service("web", 80)).await?;
    let mut number = 0;
    for call in ["get", "ensure", "update", "delete"] {
        for fault in [Fault::Refuses, Fault::Hangs, Fault::Dies, Fault::Nonsense] {
            number += 1;
            let story = format!("{fault:?} in {call}");
            let set = |left| *clumsy.fault.lock().unwrap() = Some((call, fault, left));
            clumsy.calls.lock().unwrap().clear();
            let called = |which: &'static str| {
                clumsy.calls.lock().unwrap().iter().filter(|one| **one == which).count()
            };
            let object = mcs("web", &json!({}));
            let end_hub = |before: usize| {
                let clumsy = Arc::clone(&clumsy);
                async move {
                    until("the call that goes wrong", || {
                        clumsy.calls.lock().unwrap().iter().filter(|one| **one == call).count() > before
                    })
                    .await
                }
            };
            if matches!(call, "get" | "ensure") {
                set(1);
            }
            world.members[0].apply(slice("web", &[&format!("10.1.0.{number}")], 8080)).await?;
            world.hub.apply(object.clone()).await?;
            if matches!(call, "get" | "ensure") {
                // The hub ends while the call is under way, or just after it went wrong.
                end_hub(0).await.context(story.clone())?;
                world.halt().await?;
                world.run();
            }
            is_balanced(&world.hub, &object).await.context(story.clone())?;
            if call == "update" {
                let before = called("update");
                set(1);
                world.members[0].apply(slice("web", &[&format!("10.2.0.{number}")], 8080)).await?;
                end_hub(before).await.context(story.clone())?;
                world.halt().await?;
                world.run();
                let right = format!("10.2.0.{number}:8080");
                until("the balancer is right", || {
                    let made = clumsy.made.lock().unwrap();
                    made.values().any(|spec| spec.backends.iter().any(|one| one.address.to_string() == right))
                })
                .await
                .context(story.clone())?;
                is_balanced(&world.hub, &object).await.context(story.clone())?;
            }
            if call == "delete" {
                set(1);
            }
            world.hub.delete(&object).await?;
            if call == "delete" {
                end_hub(0).await.context(story.clone())?;
                world.halt().await?;
                world.run();
            }
            world
                .hub
                .becomes(&object, "the deletion gets through", Value::is_null)
                .await
                .context(story.clone())?;
            ensure!(clumsy.made.lock().unwrap().is_empty(), "{story}: a balancer is left");
        }
    }
    world.halt().await
}
