//! Cables that are cut: packets that vanish without a word, as they do when a network breaks.
//!
//! A cut is made at a cluster's own door (`eth0`), on the addresses that are on the wire, so the peer need
//! not know of it and other traffic passes.

use super::Fault;
use crate::addresses::{ClusterAddresses, Pair};
use crate::cluster::Cluster;
use crate::command::{run, run_with_input};
use crate::error::Result;
use crate::lab::Bystander;
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which packets are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// All of them.
    Everything,
    /// Those to and from the cluster's API.
    Api,
    /// Those to and from the cluster's pods.
    Pods,
}

/// Which way is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Both ways.
    Both,
    /// Towards the cluster: what is asked never arrives.
    Arriving,
    /// From the cluster: what is asked is done, and the answer is lost.
    Leaving,
}

/// A cut to be made at a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    traffic: Traffic,
    direction: Direction,
    /// IPv4 and IPv6 addresses or networks of the peers; none means everybody.
    peers: Option<(Vec<String>, Vec<String>)>,
    /// The addresses of the only pods that it is about; none means all of the cluster.
    pods: Option<(Vec<String>, Vec<String>)>,
}

impl Cut {
    /// Cuts `traffic` with everybody, both ways.
    pub fn of(traffic: Traffic) -> Self {
        Self { traffic, direction: Direction::Both, peers: None, pods: None }
    }

    /// Limits it to `peer`: a cluster, a bystander or a pair of addresses. More than once adds up.
    pub fn with(mut self, peer: impl Into<Peer>) -> Self {
        let Peer { v4, v6 } = peer.into();
        let peers = self.peers.get_or_insert_default();
        peers.0.extend(v4);
        peers.1.extend(v6);
        self
    }

    /// Limits it to some pods, by their addresses: what a NetworkPolicy would drop, where nothing enforces it.
    pub fn pods(mut self, addresses: &[String]) -> Self {
        self.pods = Some(addresses.iter().cloned().partition(|address| !address.contains(':')));
        self
    }

    /// Limits it to one direction.
    pub fn only(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }

    /// The packet filter's rules for a cluster at `addresses`.
    fn rules(&self, table: &str, addresses: &ClusterAddresses) -> String {
        let mut text = format!("table inet {table} {{\n");
        // Before address translation on the way in, after it on the way out: as on the wire.
        let arriving = (Direction::Arriving, "prerouting", -310, "iifname", "saddr", "daddr", "dport");
        let leaving = (Direction::Leaving, "postrouting", 310, "oifname", "daddr", "saddr", "sport");
        for (direction, hook, priority, door, peer, own, port) in [arriving, leaving] {
            if self.direction != Direction::Both && self.direction != direction {
                continue;
            }
            let _ = writeln!(text, "  chain {hook} {{\n    type filter hook {hook} priority {priority};");
            let all = addresses.pods();
            let (four, six) = self.pods.clone().unwrap_or((vec![all.v4], vec![all.v6]));
            for (family, pods, peers) in [
                ("ip", four, self.peers.as_ref().map(|peers| &peers.0)),
                ("ip6", six, self.peers.as_ref().map(|peers| &peers.1)),
            ] {
                if self.traffic == Traffic::Pods && pods.is_empty() {
                    continue;
                }
                let who = match peers {
                    None => format!("meta nfproto {}", if family == "ip" { "ipv4" } else { "ipv6" }),
                    Some(peers) => format!("{family} {peer} {{ {} }}", peers.join(", ")),
                };
                let what = match self.traffic {
                    Traffic::Everything => String::new(),
                    Traffic::Api => format!("tcp {port} 6443 "),
                    Traffic::Pods => format!("{family} {own} {{ {} }} ", pods.join(", ")),
                };
                let _ = writeln!(text, "    {door} \"eth0\" {who} {what}counter drop");
            }
            text.push_str("  }\n");
        }
        text.push_str("}\n");
        text
    }
}

/// The addresses of whoever is at the other end of a cut.
#[derive(Debug, Clone)]
pub struct Peer {
    v4: Vec<String>,
    v6: Vec<String>,
}

impl From<Pair> for Peer {
    fn from(pair: Pair) -> Self {
        Self { v4: vec![pair.v4.to_string()], v6: vec![pair.v6.to_string()] }
    }
}

impl From<&Bystander> for Peer {
    fn from(bystander: &Bystander) -> Self {
        bystander.addresses().into()
    }
}

impl From<&Cluster> for Peer {
    /// The node and its pods.
    fn from(cluster: &Cluster) -> Self {
        let mut peer = Self::from(cluster.addresses().node());
        let pods = cluster.addresses().pods();
        peer.v4.push(pods.v4);
        peer.v6.push(pods.v6);
        peer
    }
}

impl Cluster {
    /// Cuts packets at this cluster's door; healing lets them pass again.
    pub fn cut(&self, cut: &Cut) -> Result<Fault> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let table = format!("atoll_cut_{}_{number}", std::process::id());
        let rules = cut.rules(&table, &self.addresses());
        run_with_input(self.machine().command("nft").args(["-f", "-"]), &rules)?;
        let machine = self.machine().clone();
        Ok(Fault::new(format!("{cut:?} at {}", self.name()), move || {
            // With the machine, its packet filter is gone too.
            if !machine.first().alive() {
                return Ok(());
            }
            run(machine.command("nft").args(["delete", "table", "inet", &table])).map(drop)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: ClusterAddresses = ClusterAddresses { slot: 0, number: 1 };

    #[test]
    fn the_api_is_cut_off_from_one_peer_both_ways() {
        let hub = crate::addresses::on_bridge(0, 200);
        let rules = Cut::of(Traffic::Api).with(hub).rules("cut", &ADDRESSES);
        for line in [
            r#"iifname "eth0" ip saddr { 10.200.0.200 } tcp dport 6443 counter drop"#,
            r#"oifname "eth0" ip6 daddr { fd00:200::c8 } tcp sport 6443 counter drop"#,
        ] {
            assert!(rules.contains(line), "{line} is not in\n{rules}");
        }
    }

    #[test]
    fn one_direction_leaves_the_other_alone() {
        let rules = Cut::of(Traffic::Everything).only(Direction::Leaving).rules("cut", &ADDRESSES);
        assert!(rules.contains("postrouting") && !rules.contains("prerouting"), "{rules}");
    }

    #[test]
    fn pods_are_cut_off_from_everybody_and_nothing_else_is() {
        let rules = Cut::of(Traffic::Pods).rules("cut", &ADDRESSES);
        assert!(rules.contains("meta nfproto ipv4 ip daddr { 10.11.0.0/24 } counter drop"), "{rules}");
        assert!(!rules.contains("6443"), "{rules}");
        let one = Cut::of(Traffic::Pods).pods(&["10.11.0.7".to_owned()]).rules("cut", &ADDRESSES);
        assert!(one.contains("ip daddr { 10.11.0.7 } counter drop") && !one.contains("ip6"), "{one}");
    }
}
