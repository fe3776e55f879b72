//! The kernel as the carrier, in network namespaces of the test's own: a client, a balancer and backends, both families.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use atoll_balance::{Backend, Checks, ClusterShare};
use atoll_lb::{Balancer, DataPath, Desired, Listener, Protocol, Source};
use nlink::netlink::nftables::Family;
use nlink::netlink::{Connection, Nftables};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::world::DEADLINE;

const PATIENCE: Duration = Duration::from_secs(5);

/// Three namespaces in a row: `client`, `lb`, `back`. Gone when dropped.
pub(crate) struct Net {
    pub(crate) names: [String; 3],
}

pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Net {
    /// None, and it says why, where it can't be.
    pub(crate) fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            assert!(std::env::var_os("CI").is_none(), "the kernel's path is tested as root");
            eprintln!("lb: SKIPPED the kernel's path: it needs root");
            return None;
        }
        let name = |role: &str| format!("lb-{test}-{role}-{}", std::process::id());
        let net = Self { names: [name("client"), name("lb"), name("back")] };
        let [client, lb, back] = &net.names;
        for name in &net.names {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        for (one, other, number) in [(client, lb, 1), (back, lb, 2)] {
            ip(&format!("-n {one} link add eth0 type veth peer name to{number} netns {lb}"));
            for (netns, device, last) in [(one, "eth0", 2), (other, &*format!("to{number}"), 1)] {
                ip(&format!("-n {netns} addr add 10.7{number}.0.{last}/24 dev {device}"));
                ip(&format!("-n {netns} addr add fd00:7{number}::{last}/64 dev {device} nodad"));
                ip(&format!("-n {netns} link set {device} up"));
            }
            ip(&format!("-n {one} route add default via 10.7{number}.0.1"));
            ip(&format!("-n {one} route add default via fd00:7{number}::1"));
        }
        net.inside("lb", || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
            std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        });
        Some(net)
    }

    /// Runs `work` in a thread in this namespace. Sockets that it makes stay there.
    fn inside<T: Send + 'static>(&self, role: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
        let name = self.names.iter().find(|name| name.contains(&format!("-{role}-"))).unwrap();
        let namespace = File::open(format!("/run/netns/{name}")).unwrap();
        let thread = std::thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        thread.join().unwrap()
    }

    /// A backend that says its name, then repeats.
    fn tcp_server(&self, name: &'static str, address: &str) -> Backend {
        let address: SocketAddr = address.parse().unwrap();
        let listener = self.inside("back", move || TcpListener::bind(address).unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || {
                    let mut stream = stream;
                    let _ = stream.write_all(name.as_bytes());
                    let mut answers = stream.try_clone().unwrap();
                    let _ = std::io::copy(&mut stream, &mut answers);
                });
            }
        });
        Backend::new(address, name)
    }

    /// A backend that answers datagrams with its name, and takes TCP connections on the same port so that it can be checked. Both end together.
    fn udp_server(&self, name: &'static str, address: &str) -> (Backend, mpsc::Sender<()>) {
        let address: SocketAddr = address.parse().unwrap();
        let (socket, check) = self
            .inside("back", move || (UdpSocket::bind(address).unwrap(), TcpListener::bind(address).unwrap()));
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (stop, stopped) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 100];
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                if let Ok((_, from)) = socket.recv_from(&mut buffer) {
                    let _ = socket.send_to(name.as_bytes(), from);
                }
            }
            drop(check);
        });
        (Backend::new(address, name), stop)
    }

    fn connect(&self, to: &str) -> std::io::Result<(TcpStream, String)> {
        let to: SocketAddr = to.parse().unwrap();
        self.inside("client", move || {
            let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            let mut name = [0; 5];
            stream.read_exact(&mut name)?;
            Ok((stream, String::from_utf8_lossy(&name).into_owned()))
        })
    }

    /// Whether the balancer's machine has this address.
    fn has(&self, address: &str) -> bool {
        let addresses = Command::new("ip").args(["-n", &self.names[1], "-o", "addr"]).output().unwrap();
        String::from_utf8_lossy(&addresses.stdout).contains(address)
    }

    /// Waits until the balancer's machine has this address no more.
    fn loses(&self, address: &str) {
        let deadline = Instant::now() + DEADLINE;
        while self.has(address) {
            assert!(Instant::now() < deadline, "{address} stays for ever");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Another one if the balancer's IPv4 table was replaced.
    fn table_handle(&self) -> Option<u64> {
        self.inside("lb", || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let tables = runtime
                .block_on(async { Connection::<Nftables>::new().unwrap().list_tables_in(Family::Ip).await });
            tables.unwrap().iter().find(|table| table.name == "atoll_lb").map(|table| table.handle)
        })
    }

    /// A balancer in the middle that does what it is told over the channel, and says when it has.
    pub(crate) fn balancer(&self) -> Running {
        self.balancer_by(DataPath::Kernel)
    }

    fn balancer_by(&self, path: DataPath) -> Running {
        let (orders, inbox) = mpsc::channel::<Desired>();
        let (done, dones) = mpsc::channel();
        let namespace = File::open(format!("/run/netns/{}", self.names[1])).unwrap();
        let thread = std::thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let balancer = Balancer::start(path, 1).unwrap();
                loop {
                    match inbox.try_recv() {
                        Ok(wanted) => {
                            let unbound = balancer.apply(wanted).await;
                            done.send((unbound, balancer.metrics())).unwrap();
                        }
                        Err(mpsc::TryRecvError::Empty) => tokio::time::sleep(Duration::from_millis(5)).await,
                        Err(mpsc::TryRecvError::Disconnected) => return,
                    }
                }
            });
        });
        Running { orders: Some(orders), dones, thread: Some(thread) }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

pub(crate) struct Running {
    orders: Option<mpsc::Sender<Desired>>,
    dones: mpsc::Receiver<(Vec<atoll_lb::Unbound>, String)>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    /// Gives back its metrics of after that.
    pub(crate) fn want(&self, listeners: Vec<Listener>) -> String {
        self.orders.as_ref().unwrap().send(Desired { listeners }).unwrap();
        let (unbound, metrics) = self.dones.recv_timeout(DEADLINE).unwrap();
        assert_eq!(unbound, []);
        metrics
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orders.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listener(protocol: Protocol, address: &str, backends: Vec<Backend>) -> Listener {
    let mut listener = Listener::new("shop/web", protocol, address.parse().unwrap(), backends);
    for (cluster, weight) in [("paris", 3), ("tokyo", 1)] {
        listener.settings.clusters.insert(cluster.into(), ClusterShare { weight: Some(weight), tier: 0 });
    }
    listener
}

fn repeats(stream: &mut TcpStream) -> bool {
    let mut heard = [0; 4];
    stream.write_all(b"well").is_ok() && stream.read_exact(&mut heard).is_ok() && heard == *b"well"
}

#[test]
fn the_kernel_carries_streams_in_proportion_and_over_a_restart() {
    let Some(net) = Net::new("tcp") else { return };
    let four = vec![net.tcp_server("paris", "10.72.0.2:8001"), net.tcp_server("tokyo", "10.72.0.2:8002")];
    let six =
        vec![net.tcp_server("paris", "[fd00:72::2]:8001"), net.tcp_server("tokyo", "[fd00:72::2]:8002")];
    let balancer = net.balancer();
    let listeners = vec![
        listener(Protocol::Tcp, "10.99.0.1:80", four.clone()),
        listener(Protocol::Tcp, "[fd00:99::1]:80", six.clone()),
    ];
    balancer.want(listeners.clone());
    let mut seen: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    for (vip, backends) in [("10.99.0.1:80", &four), ("[fd00:99::1]:80", &six)] {
        let mut answers: BTreeMap<String, usize> = BTreeMap::new();
        for _ in 0..200 {
            *answers.entry(net.connect(vip).unwrap().1).or_default() += 1;
        }
        // 150 expected, with a deviation of 6: five of them.
        assert!(answers["paris"].abs_diff(150) < 31, "{vip}: {answers:?}");
        seen.extend(backends.iter().map(|backend| (backend.address, answers[&*backend.cluster])));
    }
    let (mut old, name) = net.connect("10.99.0.1:80").unwrap();
    *seen.get_mut(&four[usize::from(name == "tokyo")].address).unwrap() += 1;
    let only = listener(Protocol::Tcp, "10.99.0.1:80", vec![four[1].clone()]);
    // Of one of them places move: the other is not touched. Then one is taken away: everything is replaced.
    for (wanted, kept) in [(vec![only.clone(), listeners[1].clone()], true), (vec![only.clone()], false)] {
        let before = net.table_handle();
        let metrics = balancer.want(wanted.clone());
        assert_eq!(net.table_handle() == before, kept, "whether the table is the same");
        for (address, count) in seen.iter().filter(|(address, _)| address.is_ipv4() || wanted.len() == 2) {
            let count = format!("backend=\"{address}\"}} {count}\n");
            let counted =
                |line: &str| line.starts_with("atoll_lb_connections_total{") && line.contains(&count);
            assert!(metrics.split_inclusive('\n').any(counted), "{count} is not in {metrics}");
        }
        assert!(!metrics.contains("atoll_lb_open_connections{"), "nobody knows: {metrics}");
        assert!(repeats(&mut old), "a change of the rules ends no connection");
        assert_eq!(net.connect("10.99.0.1:80").unwrap().1, "tokyo");
        *seen.get_mut(&four[1].address).unwrap() += 1;
    }
    drop(balancer);
    assert!(repeats(&mut old), "the end of the process ends no connection");
    assert_eq!(net.connect("10.99.0.1:80").unwrap().1, "tokyo", "the rules stay");
    let balancer = net.balancer();
    balancer.want(vec![only]);
    assert!(repeats(&mut old));
    balancer.want(Vec::new());
    assert!(net.connect("10.99.0.1:80").is_err(), "an address that is given up leads nowhere");
}

#[test]
fn backends_see_the_client_or_an_address_of_the_pool() {
    let Some(net) = Net::new("src") else { return };
    let address: SocketAddr = "10.72.0.2:8001".parse().unwrap();
    let server = net.inside("back", move || TcpListener::bind(address).unwrap());
    let balancer = net.balancer();
    ip(&format!("-n {} addr add 10.72.0.5/32 dev to2", net.names[1]));
    let pool: (IpAddr, IpAddr) = ("10.72.0.5".parse().unwrap(), "10.72.0.5".parse().unwrap());
    for (source, want) in [
        (Source::Masquerade, "10.72.0.1"),
        (Source::Keep, "10.71.0.2"),
        (Source::Pool(pool.0, pool.1), "10.72.0.5"),
    ] {
        let mut listener = listener(Protocol::Tcp, "10.99.0.1:80", vec![Backend::new(address, "paris")]);
        listener.source = source;
        balancer.want(vec![listener]);
        let client =
            net.inside("client", || TcpStream::connect_timeout(&"10.99.0.1:80".parse().unwrap(), PATIENCE));
        let (_, seen) = server.accept().unwrap();
        assert_eq!(seen.ip().to_string(), want, "{source:?}");
        drop(client);
    }
}

/// A machine has 28,232 ports of its own unless it is told otherwise; what is translated must not be bound by that.
#[test]
fn one_source_address_is_enough_for_30000_connections_to_one_backend() {
    const PORTS: std::ops::Range<u16> = 20_000..50_000;
    const THREADS: u16 = 4;
    let Some(net) = Net::new("many") else { return };
    let address: SocketAddr = "10.72.0.2:8001".parse().unwrap();
    let server = net.inside("back", move || TcpListener::bind(address).unwrap());
    // The server ends each at once, so that clients' ports are free again; what is translated stays in conntrack.
    std::thread::spawn(move || server.incoming().map_while(Result::ok).for_each(drop));
    let balancer = net.balancer();
    balancer.want(vec![listener(Protocol::Tcp, "10.99.0.1:80", vec![Backend::new(address, "paris")])]);
    net.inside("lb", || {
        // Those that have ended are remembered for longer than this test takes on any machine.
        std::fs::write("/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait", "3600").unwrap();
    });
    let once = |port: u16| -> std::io::Result<usize> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::from(([10, 71, 0, 2], port)).into())?;
        socket.connect_timeout(&SocketAddr::from(([10, 99, 0, 1], 80)).into(), DEADLINE)?;
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.read(&mut [0])
    };
    let failures: Vec<String> = net.inside("client", move || {
        let of = |first: u16| {
            move || -> Option<String> {
                let mut ports = PORTS.skip(first.into()).step_by(THREADS.into());
                ports.find_map(|port| match once(port) {
                    Ok(0) => None,
                    other => Some(format!("port {port}: {other:?}")),
                })
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|first| std::thread::spawn(of(first))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(failures, Vec::<String>::new());
    let tracked =
        net.inside("lb", || std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_count").unwrap());
    // The kernel may give a port to another as soon as its connection has ended; most are still held.
    assert!(tracked.trim().parse::<usize>().unwrap() > 28_232, "{tracked}");
}

#[test]
fn addresses_are_put_on_an_interface_and_taken_away_again() {
    let Some(net) = Net::new("vip") else { return };
    let backends = vec![net.tcp_server("paris", "10.72.0.2:8001")];
    let balancer = net.balancer();
    // Of the client's own network: it asks by ARP who has it.
    let mut held = listener(Protocol::Tcp, "10.71.0.99:80", backends);
    held.interface = Some("to1".into());
    held.settings.drain = Duration::from_millis(100);
    assert!(net.connect("10.71.0.99:80").is_err());
    for _ in 0..2 {
        balancer.want(vec![held.clone()]);
        assert_eq!(net.connect("10.71.0.99:80").unwrap().1, "paris");
    }
    balancer.want(Vec::new());
    net.loses("10.71.0.99");
    assert!(net.has("10.71.0.1/24"));
}

#[test]
fn flows_of_datagrams_leave_a_backend_that_is_lost() {
    let Some(net) = Net::new("udp") else { return };
    let (paris, stop) = net.udp_server("paris", "10.72.0.2:8001");
    let (tokyo, _running) = net.udp_server("tokyo", "10.72.0.2:8002");
    let balancer = net.balancer();
    let mut listener = listener(Protocol::Udp, "10.99.0.1:53", vec![paris, tokyo]);
    listener.settings.checks = Some(Checks { interval: Duration::from_millis(50), ..Checks::default() });
    balancer.want(vec![listener]);
    let ask = |client: &UdpSocket| -> Option<String> {
        let mut buffer = [0; 100];
        client.send_to(b"?", "10.99.0.1:53").unwrap();
        match client.recv(&mut buffer) {
            Ok(length) => Some(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(error) => panic!("{error}"),
        }
    };
    let client = || {
        let socket = net.inside("client", || UdpSocket::bind("10.71.0.2:0").unwrap());
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        socket
    };
    let clients: Vec<UdpSocket> = (0..60).map(|_| client()).collect();
    let of_paris: Vec<&UdpSocket> = clients.iter().filter(|client| ask(client).unwrap() == "paris").collect();
    // 45 expected, with a deviation of 3.4: five of them.
    assert!(of_paris.len().abs_diff(45) < 17, "{}", of_paris.len());
    assert!(of_paris.iter().all(|client| ask(client).unwrap() == "paris"), "a flow stays");
    stop.send(()).unwrap();
    let deadline = Instant::now() + DEADLINE;
    for client in of_paris {
        while ask(client).as_deref() != Some("tokyo") {
            assert!(Instant::now() < deadline, "a flow to a lost backend stays there");
        }
    }
}

/// One transaction has all of them: it was larger than the socket's buffer with the third.
#[test]
fn forty_listeners_are_carried_at_once() {
    let Some(net) = Net::new("forty") else { return };
    let backends = vec![net.tcp_server("paris", "10.72.0.2:8001"), net.tcp_server("tokyo", "10.72.0.2:8002")];
    let balancer = net.balancer();
    let address = |port: u16| format!("10.71.0.1:{port}");
    let ports = 7001..=7040;
    balancer
        .want(ports.clone().map(|port| listener(Protocol::Tcp, &address(port), backends.clone())).collect());
    for port in ports {
        net.connect(&address(port)).unwrap_or_else(|error| panic!("port {port}: {error}"));
    }
}

#[test]
fn the_kernel_is_chosen_where_it_forwards() {
    let Some(net) = Net::new("auto") else { return };
    let backends = vec![net.tcp_server("paris", "10.72.0.2:8001")];
    let balancer = net.balancer_by(DataPath::Auto);
    for (forwarding, carrier) in [("1", "kernel"), ("0", "user-space"), ("1", "kernel")] {
        net.inside("lb", move || std::fs::write("/proc/sys/net/ipv4/ip_forward", forwarding).unwrap());
        let metrics = balancer.want(vec![listener(Protocol::Tcp, "10.71.0.1:80", backends.clone())]);
        assert!(metrics.contains(&format!("carrier=\"{carrier}\"}} 1")), "{forwarding}: {metrics}");
        assert_eq!(net.connect("10.71.0.1:80").unwrap().1, "paris", "by {carrier}");
    }
}

/// In user space: the last who is connected needs the address until the end.
#[test]
fn an_address_stays_while_somebody_uses_it_and_comes_back_when_it_was_taken_away() {
    let Some(net) = Net::new("stay") else { return };
    let backends = vec![net.tcp_server("paris", "10.72.0.2:8001")];
    let balancer = net.balancer_by(DataPath::UserSpace);
    let mut held = listener(Protocol::Tcp, "10.71.0.99:80", backends);
    held.interface = Some("to1".into());
    balancer.want(vec![held]);
    let (mut old, _) = net.connect("10.71.0.99:80").unwrap();
    ip(&format!("-n {} addr del 10.71.0.99/32 dev to1", net.names[1]));
    let deadline = Instant::now() + DEADLINE;
    while !net.has("10.71.0.99") {
        assert!(Instant::now() < deadline, "the address does not come back");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(repeats(&mut old));
    balancer.want(Vec::new());
    assert!(net.has("10.71.0.99") && repeats(&mut old), "a connection may finish");
    drop(old);
    net.loses("10.71.0.99");
}

#[test]
fn a_listener_that_was_away_for_a_moment_keeps_its_new_connections() {
    let Some(net) = Net::new("away") else { return };
    let backends = vec![net.tcp_server("paris", "10.72.0.2:8001")];
    let balancer = net.balancer();
    let [web, other] = ["10.99.0.1:80", "10.99.0.1:81"].map(|address| {
        let mut one = listener(Protocol::Tcp, address, backends.clone());
        one.settings.drain = Duration::from_millis(500);
        one
    });
    balancer.want(vec![web.clone(), other.clone()]);
    let (mut lost, _) = net.connect("10.99.0.1:81").unwrap();
    balancer.want(vec![other.clone()]);
    balancer.want(vec![web.clone(), other]);
    let (mut new, _) = net.connect("10.99.0.1:80").unwrap();
    // The other goes later and for good: when its connection is cut, what would have been cut before it has been.
    balancer.want(vec![web]);
    let deadline = Instant::now() + DEADLINE;
    while repeats(&mut lost) {
        assert!(Instant::now() < deadline, "the other's connection is not cut");
    }
    assert!(repeats(&mut new), "what came after is not cut with what was before");
}
