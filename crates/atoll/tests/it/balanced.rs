//! Load balancers in `atoll up`, in user space and without root; and a hub with a provider of others that is killed at every point.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use atoll_lb::provider::{Ingress, Key, Provider, ProviderError, Spec, Status, async_trait, serve};
use serde_json::Value;
use tokio::net::TcpListener;

use super::walkthrough::Workdir;

const PATIENCE: Duration = Duration::from_secs(90);

/// What is so in the end; what was found last is in the panic.
fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) => assert!(Instant::now() < deadline, "never: {what}; {why}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An answer, on a connection of its own.
fn ask(vip: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&vip, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET / HTTP/1.0\r\nHost: lb\r\nConnection: close\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    let body = said.split_once("\r\n\r\n").map(|(_, body)| body.trim().to_owned()).unwrap_or_default();
    if body.is_empty() { Err(std::io::Error::other(format!("no answer: {said:?}"))) } else { Ok(body) }
}

/// `member1` of `hello from member1-node, pod …`.
fn member(answer: &str) -> String {
    answer.split(' ').nth(2).and_then(|node| node.split('-').next()).unwrap_or_default().to_owned()
}

fn counted(vip: SocketAddr, times: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..times {
        let who = ask(vip).map_or_else(|error| format!("failed: {error}"), |answer| member(&answer));
        *counts.entry(who).or_insert(0) += 1;
    }
    counts
}

#[test]
fn one_address_leads_to_pods_of_two_members_without_root() {
    let place = Workdir::new();
    let ready = place.run("atoll up --members 2 --detach");
    assert!(ready.contains("ready after"), "{ready}");
    let applied = place.run("atoll apply -C hub -f examples/balanced.yaml");
    assert!(applied.contains("multiclusterservice.networking.karmada.io/balanced created"), "{applied}");
    let vip: SocketAddr = until("it has an address", || {
        let said = place.run("atoll get -C hub mcs balanced -o json");
        let object: Value = serde_json::from_str(&said).map_err(|_| said.clone())?;
        let ip = object["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().ok_or(said)?;
        format!("{ip}:8088").parse().map_err(|error| format!("{ip}: {error}"))
    });
    let table = place.run("atoll get -C hub mcs balanced");
    assert!(table.contains("ADDRESS") && table.contains(&vip.ip().to_string()), "{table}");
    until("both members answer", || {
        let counts = counted(vip, 40);
        if counts.len() == 2 && counts.keys().all(|who| who.starts_with("member")) {
            Ok(())
        } else {
            Err(format!("{counts:?}"))
        }
    });
    // Five standard deviations of 3 in 4 are 30.
    let counts = counted(vip, 200);
    let first = counts.get("member1").copied().unwrap_or_default();
    assert!((120..=180).contains(&first), "{counts:?}");
    assert_eq!(first + counts.get("member2").copied().unwrap_or_default(), 200, "{counts:?}");

    // Another pod in each; the shares of the members stay.
    let more = place.run("sed 's/replicas: 1/replicas: 2/' examples/balanced.yaml > $HOME/two.yaml; atoll apply -C hub -f $HOME/two.yaml");
    assert!(more.contains("deployment.apps/balanced configured"), "{more}");
    until("four pods answer", || {
        let pods: std::collections::BTreeSet<String> = (0..80).filter_map(|_| ask(vip).ok()).collect();
        if pods.len() == 4 { Ok(()) } else { Err(format!("{pods:?}")) }
    });

    // A member is switched off: what is asked from then on is answered by the other.
    let stopped = place.run("atoll member stop member1");
    until("the other answers alone", || {
        let counts = counted(vip, 40);
        if counts.keys().eq(["member2"]) { Ok(()) } else { Err(format!("{counts:?} {stopped}")) }
    });
    place.run("atoll member start member1");
    until("the first answers again", || {
        let counts = counted(vip, 40);
        if counts.contains_key("member1") { Ok(()) } else { Err(format!("{counts:?}")) }
    });

    let deleted = place.run("atoll delete -C hub mcs balanced");
    until("nobody listens there any more", || match TcpStream::connect(vip) {
        Ok(_) => Err(deleted.clone()),
        Err(_) => Ok(()),
    });
    let left = place.run("atoll get -C hub configmaps -n atoll-system");
    assert!(!left.contains("lb.default.balanced"), "{left}");
}

/// A provider that keeps balancers in memory, and can be told to hang.
#[derive(Default)]
struct Slow {
    hangs: Mutex<Option<&'static str>>,
    calls: Mutex<Vec<&'static str>>,
    made: Mutex<BTreeMap<Key, Spec>>,
}

impl Slow {
    /// A call comes in; it may stay.
    async fn called(&self, call: &'static str) {
        self.calls.lock().unwrap().push(call);
        let hangs = *self.hangs.lock().unwrap() == Some(call);
        if hangs {
            std::future::pending::<()>().await;
        }
    }
}

fn fine() -> Status {
    Status { ingress: vec![Ingress::Ip([198, 51, 100, 7].into())] }
}

#[async_trait]
impl Provider for Slow {
    async fn get(&self, key: &Key) -> Result<Option<Status>, ProviderError> {
        self.called("get").await;
        Ok(self.made.lock().unwrap().contains_key(key).then(fine))
    }

    async fn ensure(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        // Done already when the answer gets lost: the worst moment.
        self.made.lock().unwrap().insert(key.clone(), spec.clone());
        self.called("ensure").await;
        Ok(fine())
    }

    async fn update(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        self.made.lock().unwrap().insert(key.clone(), spec.clone());
        self.called("update").await;
        Ok(fine())
    }

    async fn ensure_deleted(&self, key: &Key) -> Result<(), ProviderError> {
        self.made.lock().unwrap().remove(key);
        self.called("delete").await;
        Ok(())
    }
}

/// A hub's process.
struct Hub(Child);

impl Hub {
    fn start(data: &Path, provider: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args([
            "hub",
            "--api-address",
            "127.0.0.1:0",
            "--metrics-address",
            "none",
            "--identity",
            "hub-0",
        ]);
        command.args(["--lb-provider", provider, "--lb-provider-plaintext", "--data-dir"]).arg(data);
        Self(command.env_clear().stderr(Stdio::null()).spawn().unwrap())
    }

    /// Without a goodbye.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_killed_in_every_call_of_a_provider_leaves_nothing_behind() {
    let slow = Arc::new(Slow::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("grpc://{}", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, Arc::clone(&slow) as _));
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("hub");
    let story = tokio::task::spawn_blocking(move || story(&slow, &url, &data));
    story.await.unwrap();
}

fn story(slow: &Slow, url: &str, data: &Path) {
    let atoll = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args(arguments).arg("--kubeconfig").arg(data.join("kubeconfig")).env_clear();
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(said) } else { Err(talk) }
    };
    let manifest = data.with_extension("yaml");
    let manifest_path = manifest.to_str().unwrap();
    let write = |number: usize| {
        let text = format!(
            "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\nmetadata: {{name: web, namespace: default, \
             annotations: {{number: '{number}'}}}}\nspec: {{types: [LoadBalancer]}}\n"
        );
        std::fs::write(&manifest, text).unwrap();
    };
    let called = |call| slow.calls.lock().unwrap().iter().filter(|one| **one == call).count();
    // The hub dies while this call is under way; its successor finishes.
    let die_in = |hub: Hub, call: &'static str, before: usize| {
        until(
            &format!("{call} is called"),
            || if called(call) > before { Ok(()) } else { Err(String::new()) },
        );
        hub.kill();
        *slow.hangs.lock().unwrap() = None;
        Hub::start(data, url)
    };
    let balanced = || {
        until("it has its address", || {
            let said = atoll(&["get", "mcs", "web", "-o", "json"])?;
            let object: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
            // There are no members, and so nobody answers.
            let ready = object["status"]["conditions"][0]["reason"] == "NobodyAnswers"
                && object["status"]["loadBalancer"]["ingress"][0]["ip"] == "198.51.100.7";
            if ready { Ok(()) } else { Err(said) }
        });
    };
    let mut hub = Hub::start(data, url);
    let mut number = 0;
    for call in ["get", "ensure", "update", "delete"] {
        number += 1;
        write(number);
        if matches!(call, "get" | "ensure") {
            *slow.hangs.lock().unwrap() = Some(call);
        }
        let before = called(call);
        until("it is applied", || atoll(&["apply", "-f", manifest_path]));
        if matches!(call, "get" | "ensure") {
            hub = die_in(hub, call, before);
        }
        balanced();
        assert_eq!(slow.made.lock().unwrap().len(), 1, "{call}");
        if call == "update" {
            let before = called(call);
            *slow.hangs.lock().unwrap() = Some(call);
            number += 1;
            write(number);
            until("it is changed", || atoll(&["apply", "-f", manifest_path]));
            hub = die_in(hub, call, before);
            until("the provider has the newest wish", || {
                let made = slow.made.lock().unwrap();
                let want = number.to_string();
                let is = made.values().any(|spec| spec.annotations.get("number") == Some(&want));
                if is { Ok(()) } else { Err(format!("{made:?}")) }
            });
            balanced();
        }
        let before = called("delete");
        if call == "delete" {
            *slow.hangs.lock().unwrap() = Some(call);
        }
        until("it is deleted", || atoll(&["delete", "mcs", "web", "--wait=false"]));
        if call == "delete" {
            hub = die_in(hub, call, before);
        }
        until("the deletion gets through", || match atoll(&["get", "mcs", "-o", "json"]) {
            Ok(said) if said.contains("\"items\": []") => Ok(()),
            other => Err(format!("{other:?}")),
        });
        assert!(slow.made.lock().unwrap().is_empty(), "{call}: a balancer is left");
    }
    drop(hub);
}
