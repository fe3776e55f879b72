//! `MultiClusterService` of type `LoadBalancer`: a client outside all clusters, one address, pods of two clusters, real packets.

use crate::harness::{Outcome, Suite};
use crate::policies::{World, has, kubectl};
use anyhow::{Context, ensure};
use atoll_lab::fault::cut::{Cut, Traffic};
use atoll_lab::image::SERVE;
use atoll_lab::suite::name;
use atoll_lab::{Cluster, Deadline, Lab, Machine, Process, Progress, Spec, until};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take: the machine may be busy.
const SOON: Duration = Duration::from_secs(60);
/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(2);
/// Requests of which the shares are counted: five standard deviations of 3 in 4 are 30.
const COUNTED: usize = 200;

const TEST: &str = "one_address_leads_to_pods_of_two_clusters_whatever_happens";

pub(crate) fn tests(suite: &mut Suite) {
    suite.test_alone(TEST, balanced);
}

/// Runs `work` in a thread in the network of `machine`.
fn inside<T: Send + 'static>(
    machine: &Machine,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let network = File::open(format!("/proc/{}/ns/net", machine.first().pid()))?;
    let (sent, entered) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let done = move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network));
        let stays_out = done.is_err();
        let _ = sent.send(done);
        // Never anything in the host's own network.
        if stays_out {
            std::thread::park();
        }
        work()
    });
    match entered.recv() {
        Ok(Ok(())) => Ok(thread),
        other => Err(std::io::Error::other(format!("{other:?}"))),
    }
}

fn ask_stream(vip: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&vip, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.0\r\nHost: lb\r\nConnection: close\r\n\r\n")?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    let body = said.split_once("\r\n\r\n").map(|(_, body)| body.trim().to_owned()).unwrap_or_default();
    if body.is_empty() { Err(std::io::Error::other(format!("no answer: {said:?}"))) } else { Ok(body) }
}

fn ask_datagram(vip: SocketAddr) -> std::io::Result<String> {
    let any: IpAddr = if vip.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(vip)?;
    socket.send(b"who?")?;
    let mut heard = [0; 512];
    let length = socket.recv(&mut heard)?;
    Ok(String::from_utf8_lossy(&heard[..length]).trim().to_owned())
}

/// The cluster that an answer comes from.
fn cluster_of(answer: &str) -> String {
    answer.split(' ').next().unwrap_or_default().to_owned()
}

/// Requests one after another, each on a connection of its own, until it is stopped.
struct Requests {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<(Instant, Result<String, String>)>>,
}

impl Requests {
    fn start(client: &Machine, vip: SocketAddr) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let made = Arc::new(AtomicUsize::new(0));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&made));
        let thread = inside(client, move || {
            let mut all = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let begun = Instant::now();
                all.push((begun, ask_stream(vip).map_err(|error| error.to_string())));
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(10)); // the pace of the client, and no condition
            }
            all
        })?;
        Ok(Self { stop, made, thread })
    }

    /// Waits until so many more were made.
    async fn more(&self, count: usize) -> Outcome {
        let goal = self.made.load(Ordering::Relaxed) + count;
        until(Deadline::after(SOON, format!("{count} more requests are made")), async || {
            let made = self.made.load(Ordering::Relaxed);
            Ok(if made >= goal { Ok(()) } else { Err(format!("{made} of {goal}")) })
        })
        .await?;
        Ok(())
    }

    /// Stops; says what failed, and for how long after `since` requests began that failed.
    fn failed(self, story: &str, since: Instant) -> anyhow::Result<usize> {
        self.stop.store(true, Ordering::Relaxed);
        let all = self.thread.join().map_err(|_| anyhow::anyhow!("the client broke off"))?;
        let failed: Vec<_> = all.iter().filter(|(_, outcome)| outcome.is_err()).collect();
        let last = failed.iter().map(|(begun, _)| begun.saturating_duration_since(since)).max();
        let why = failed.first().and_then(|(_, outcome)| outcome.as_ref().err());
        eprintln!(
            "lb: {story}: {} of {} requests failed, the last began {last:?} after; first reason: {why:?}",
            failed.len(),
            all.len()
        );
        Ok(failed.len())
    }
}

fn deployment(cluster: &Cluster, replicas: usize) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"terminationGracePeriodSeconds": 20, "containers": [{"name": "web", "image": SERVE,
                "args": [format!("--message={} {{{{addr}}}}", cluster.name()), "--udp-port=8081"],
                "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}}}]}}}})
}

fn service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ipFamilyPolicy": "RequireDualStack", "ports": [
            {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
            {"name": "udp", "port": 81, "targetPort": 8081, "protocol": "UDP"}]}})
}

const OBJECT: &str = r#"
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata:
  name: web
  namespace: shop
  annotations: {atoll.dev/weights: "member1=3,member2=1"}
spec:
  types: [LoadBalancer]
"#;

struct Story {
    world: World,
    vips: Vec<IpAddr>,
}

impl Story {
    fn client(&self) -> &Machine {
        self.world.lab.bystander("client").machine()
    }

    fn balancer(&self) -> &Machine {
        self.world.lab.bystander("balancer").machine()
    }

    fn start_balancer(&self, log: &str, path: &str) -> anyhow::Result<Process> {
        let state = self.balancer().dir().join("lb.json");
        let (hub, program) = (self.world.atoll.kubeconfig(), self.world.atoll.binary());
        let argv = [
            program.display().to_string(),
            "lb".to_owned(),
            "--hub".to_owned(),
            hub.display().to_string(),
            "--interface".to_owned(),
            "eth0".to_owned(),
            "--state".to_owned(),
            state.display().to_string(),
            "--data-path".to_owned(),
            path.to_owned(),
        ];
        Ok(self.balancer().spawn(log, &argv)?)
    }

    /// Who answered how often; every request has to be answered.
    fn counted(
        &self,
        vip: SocketAddr,
        ask: fn(SocketAddr) -> std::io::Result<String>,
    ) -> anyhow::Result<BTreeMap<String, usize>> {
        let thread = inside(self.client(), move || {
            let mut counts = BTreeMap::new();
            for _ in 0..COUNTED {
                *counts.entry(cluster_of(&ask(vip)?)).or_insert(0) += 1;
            }
            Ok::<_, std::io::Error>(counts)
        })?;
        let joined = thread.join().map_err(|_| anyhow::anyhow!("the client broke off"))?;
        joined.with_context(|| format!("a request to {vip}"))
    }

    /// Waits until so many requests in a row are answered as they should be.
    async fn answered(&self, what: &str, vip: SocketAddr, is: fn(&str) -> bool) -> Outcome {
        const ROW: usize = 30;
        until(Deadline::after(SOON, what.to_owned()), async || {
            let asking = inside(self.client(), move || {
                (0..ROW).map(|_| ask_stream(vip).map_err(|error| error.to_string())).collect::<Vec<_>>()
            });
            let asking = asking.map(JoinHandle::join);
            let Ok(Ok(all)) = asking else { return Ok(Err("the client broke off".to_owned())) };
            let good = all.iter().all(|one| one.as_deref().is_ok_and(is));
            Ok(if good { Ok(()) } else { Err(format!("{all:?}")) })
        })
        .await?;
        Ok(())
    }

    /// Waits until every pod is reached from where the balancer is: a new pod's IPv6 address answers a second or two later than
    /// its IPv4 address, and until then the balancer leaves it out, as it should.
    async fn pods_are_reached(&self) -> Outcome {
        for number in [1, 2] {
            for pod in self.world.lab.member(number).pods_ready("shop", "app=web", 1).await? {
                let ips = pod.status.and_then(|status| status.pod_ips).unwrap_or_default();
                ensure!(ips.len() == 2, "a pod of both families has {ips:?}");
                for ip in ips {
                    let pod = SocketAddr::new(ip.ip.parse()?, 8080);
                    until(Deadline::after(SOON, format!("the pod answers at {pod}")), async || {
                        Ok(match inside(self.balancer(), move || ask_stream(pod)).map(JoinHandle::join) {
                            Ok(Ok(Ok(_))) => Ok(()),
                            other => Err(format!("{other:?}")),
                        })
                    })
                    .await?;
                }
            }
        }
        Ok(())
    }

    /// Three in four from the one, over both protocols and both families.
    async fn in_proportion(&self, path: &str) -> Outcome {
        for ip in &self.vips {
            for (port, ask) in [(80, ask_stream as fn(_) -> _), (81, ask_datagram)] {
                until(
                    Deadline::after(SOON, format!("both clusters answer at {ip} port {port}")),
                    async || {
                        Ok(match self.counted(SocketAddr::new(*ip, port), ask) {
                            Ok(counts) if counts.len() == 2 => Ok(()),
                            other => Err(format!("{other:?}")),
                        })
                    },
                )
                .await?;
                let counts = self.counted(SocketAddr::new(*ip, port), ask)?;
                eprintln!("lb: {path}, {ip} port {port}: {counts:?}");
                let first = counts.get("member1").copied().unwrap_or_default();
                let second = counts.get("member2").copied().unwrap_or_default();
                ensure!(first + second == COUNTED, "{counts:?}");
                ensure!((120..=180).contains(&first), "3 in 4 were to be of member1: {counts:?}");
            }
        }
        Ok(())
    }

    /// Whether the balancer has its addresses on its interface.
    fn holds_addresses(&self) -> anyhow::Result<usize> {
        let output = self.balancer().command("ip").args(["-o", "addr", "show", "dev", "eth0"]).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(self.vips.iter().filter(|ip| said.contains(&format!(" {ip}/"))).count())
    }
}

async fn set_up() -> anyhow::Result<Story> {
    let spec = Spec::whole(&name("lb"), 2).with_bystander("hub").with_bystander("balancer");
    let lab = Lab::start(&spec.with_bystander("client"), &Progress::silent()).await?;
    let slot = lab.slot();
    let pool = format!("10.200.{slot}.248/30,fd00:200:{slot:x}::f8/126");
    let world = World::on(lab, &["--lb-pool", &pool]).await?;
    for number in [1, 2] {
        world.join(number, &[]).await?;
        let cluster = world.lab.member(number);
        cluster.namespace("shop").await?;
        cluster.apply(&[deployment(cluster, 1), service()]).await?;
    }
    world.kubectl(&["create", "namespace", "shop"], "").await?;
    for number in [1, 2] {
        world.lab.member(number).pods_ready("shop", "app=web", 1).await?;
    }
    world.apply(OBJECT).await?;
    let shown = world
        .hub_has(&["-n", "shop", "mcs", "web"], "it has its addresses", |found| {
            found["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|all| all.len() == 2)
        })
        .await?;
    let ingress = shown["status"]["loadBalancer"]["ingress"].as_array().context("ingress")?;
    let vips = ingress.iter().map(|one| Ok(one["ip"].as_str().context("an address")?.parse()?));
    Ok(Story { vips: vips.collect::<anyhow::Result<_>>()?, world })
}

async fn balanced() -> Outcome {
    let mut story = set_up().await?;
    // IPv4 first.
    story.vips.sort();
    let told = tell(&story).await;
    if told.is_err() {
        story.world.keep_evidence(TEST).await;
    }
    let down = story.world.lab.down();
    told?; // says more than what could not be taken down after it
    Ok(down?)
}

async fn tell(story: &Story) -> Outcome {
    let vip = SocketAddr::new(story.vips[0], 80);
    let (one, two) = (story.world.lab.member(1), story.world.lab.member(2));
    story.pods_are_reached().await?;
    let process = story.start_balancer("lb", "user-space")?;
    story.answered("the client is answered", vip, |said| said.starts_with("member")).await?;
    story.in_proportion("user space").await?;

    // Scaled, then drained: no client notices.
    let requests = Requests::start(story.client(), vip)?;
    let begun = Instant::now();
    kubectl(one, &["-n", "shop", "scale", "deployment", "web", "--replicas=2"]).await?;
    let pods = one.pods_ready("shop", "app=web", 2).await?;
    let pod = pods[0].metadata.name.clone().context("a pod has a name")?;
    kubectl(one, &["-n", "shop", "delete", "pod", &pod, "--wait=true"]).await?;
    one.pods_ready("shop", "app=web", 2).await?;
    let failed = requests.failed("scaled to two pods, one of which was drained", begun)?;
    ensure!(failed == 0, "{failed} requests failed although nothing broke");

    // Killed.
    let requests = Requests::start(story.client(), vip)?;
    let pods = one.pods_ready("shop", "app=web", 2).await?;
    let pod = pods[0].metadata.name.clone().context("a pod has a name")?;
    let begun = Instant::now();
    kubectl(one, &["-n", "shop", "delete", "pod", &pod, "--grace-period=0", "--force"]).await?;
    one.pods_ready("shop", "app=web", 2).await?;
    requests.failed("a pod was killed", begun)?;

    // A cluster is cut off as a whole, and comes back.
    let requests = Requests::start(story.client(), vip)?;
    let begun = Instant::now();
    let cut = one.cut(&Cut::of(Traffic::Everything))?;
    story.answered("the other cluster answers alone", vip, |said| said.starts_with("member2")).await?;
    requests.failed("a cluster was cut off", begun)?;
    cut.heal()?;
    until(Deadline::after(SOON, "the cluster that was cut off answers again"), async || {
        Ok(match story.counted(vip, ask_stream) {
            Ok(counts) if counts.contains_key("member1") => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await?;

    // The hub is gone, and then the balancer is restarted without it.
    let requests = Requests::start(story.client(), vip)?;
    let begun = Instant::now();
    story.world.kill()?;
    requests.more(100).await?;
    ensure!(requests.failed("the hub was killed", begun)? == 0, "the hub is not on the way of requests");
    process.kill()?;
    let process = story.start_balancer("lb-again", "user-space")?;
    story
        .answered("the balancer was restarted without the hub", vip, |said| said.starts_with("member"))
        .await?;
    story.world.start_again().await?;

    // The same by the kernel, where it may forward.
    process.end(Duration::from_secs(40))?;
    for setting in ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"] {
        let set = story.balancer().command("sysctl").args(["-qw", setting]).output()?;
        ensure!(set.status.success(), "{setting}: {}", String::from_utf8_lossy(&set.stderr));
    }
    story.start_balancer("lb-kernel", "kernel")?;
    story.answered("the kernel carries", vip, |said| said.starts_with("member")).await?;
    story.in_proportion("kernel").await?;
    let requests = Requests::start(story.client(), vip)?;
    let begun = Instant::now();
    let cut = one.cut(&Cut::of(Traffic::Everything))?;
    story.answered("the other cluster answers alone", vip, |said| said.starts_with("member2")).await?;
    requests.failed("a cluster was cut off, by the kernel", begun)?;
    cut.heal()?;

    // Deleted: the addresses are free, and nothing answers there.
    ensure!(story.holds_addresses()? == 2, "the balancer has both addresses");
    story.world.kubectl(&["-n", "shop", "delete", "mcs", "web"], "").await?;
    until(Deadline::after(SOON, "the balancer gives its addresses up"), async || {
        Ok(match story.holds_addresses() {
            Ok(0) => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await?;
    let refused = inside(story.client(), move || ask_stream(vip))?.join();
    ensure!(refused.is_ok_and(|answer| answer.is_err()), "something still answers");
    has(two, &["-n", "shop", "service", "web"], "the Service stays", |_| true).await?;
    Ok(())
}
