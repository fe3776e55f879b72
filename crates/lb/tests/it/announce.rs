//! An address that moves here: neighbours that believe it elsewhere learn better, and it goes when nobody wants it.

use std::process::Command;
use std::time::{Duration, Instant};

use atoll_lb::{Listener, Protocol};

use crate::kernel::{Net, ip};
use crate::world::DEADLINE;

fn said(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn until(what: &str, ask: &str, is: impl Fn(&str) -> bool) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let answer = said(ask);
        if is(&answer) {
            return;
        }
        assert!(Instant::now() < deadline, "never: {what}; `ip {ask}` says {answer}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn neighbours_learn_where_an_address_is_now() {
    let Some(net) = Net::new("announce") else { return };
    let [client, lb, _] = &net.names;
    let vips = ["10.71.0.9", "fd00:71::9"];
    for vip in vips {
        ip(&format!("-n {client} neigh add {vip} lladdr 02:00:00:00:00:99 dev eth0 nud stale"));
    }
    let link = said(&format!("-n {lb} -o link show to1"));
    let hardware = link.split("link/ether ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let balancer = net.balancer();
    let listener = |vip: &str| {
        let address = std::net::SocketAddr::new(vip.parse().unwrap(), 80);
        Listener { interface: Some("to1".into()), ..Listener::new("web", Protocol::Tcp, address, Vec::new()) }
    };
    balancer.want(vips.iter().map(|vip| listener(vip)).collect());
    for vip in vips {
        let ask = format!("-n {client} neigh show {vip} dev eth0");
        until("the neighbour knows", &ask, |answer| answer.contains(hardware));
    }
    balancer.want(Vec::new());
    until("the addresses are taken away", &format!("-n {lb} -o addr show dev to1"), |answer| {
        vips.iter().all(|vip| !answer.contains(&format!(" {vip}/")))
    });
}
