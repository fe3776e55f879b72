//! The cables: one bridge on the host, a leg of it on every machine, routes between pod networks.

use crate::addresses::{self, ClusterAddresses, Pair};
use crate::command::{run, run_with_input};
use crate::error::Result;
use crate::machine::Machine;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Makes the lab's bridge, with the host's own addresses on it. Links carry the lab's folder as their alias.
pub(crate) fn build_bridge(slot: u8, lab: &Path) -> Result<()> {
    let (bridge, host) = (addresses::bridge(slot), addresses::host(slot));
    ip(&format!(
        "link add {bridge} type bridge
link set {bridge} alias {lab}
addr add {v4}/24 dev {bridge}
addr add {v6}/64 dev {bridge} nodad
link set {bridge} up
",
        lab = lab.display(),
        v4 = host.v4,
        v6 = host.v6
    ))
}

/// Whether `slot` has no links, anybody's.
pub(crate) fn is_free(slot: u8) -> bool {
    links(|name, _| is_of_slot(name, slot)).is_empty()
}

/// The links of the lab at `lab`: those that carry its folder, and those of the slot that it claimed when
/// there were none.
pub(crate) fn links_of(lab: &Path, slot: Option<u8>) -> Vec<String> {
    let alias = lab.display().to_string();
    links(|name, its| its == alias || (its.is_empty() && slot.is_some_and(|slot| is_of_slot(name, slot))))
}

fn is_of_slot(name: &str, slot: u8) -> bool {
    name == addresses::bridge(slot) || name.starts_with(&addresses::cable_prefix(slot))
}

fn links(of: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let folder = Path::new("/sys/class/net");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            let alias = std::fs::read_to_string(folder.join(name).join("ifalias")).unwrap_or_default();
            of(name, alias.trim_end())
        })
        .collect()
}

/// Removes `links`, and does not mind those that went by themselves meanwhile.
pub(crate) fn remove(links: &[String]) -> Result<()> {
    for link in links {
        let outcome = run(Command::new("ip").args(["link", "del", link]));
        if Path::new("/sys/class/net").join(link).exists() {
            outcome?;
        }
    }
    Ok(())
}

/// Gives `machine` its leg on the bridge with last byte `host`, and routes to the pods of `clusters`.
pub(crate) fn plug_in(machine: &Machine, slot: u8, host: u8, clusters: &[ClusterAddresses]) -> Result<()> {
    let (bridge, cable) = (addresses::bridge(slot), addresses::cable(slot, host));
    ip(&format!(
        "link add {cable} type veth peer name eth0 netns {pid}
link set {cable} alias {lab} master {bridge} up
",
        pid = machine.first().pid(),
        lab = machine.lab().display()
    ))?;
    let own = addresses::on_bridge(slot, host);
    machine.shell(&format!(
        "echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
echo 0 > /proc/sys/net/ipv4/conf/default/rp_filter
ip -batch - <<EOF
{}EOF",
        inside(own, host, clusters)
    ))?;
    Ok(())
}

/// What `ip` has to be told on a machine.
fn inside(own: Pair, host: u8, clusters: &[ClusterAddresses]) -> String {
    // The default route leads to the bridge, not to the host: a ClusterIP needs some route before
    // kube-proxy's rules see the packet, and nothing may leave the host.
    let mut batch = format!(
        "addr add {}/24 dev eth0
addr add {}/64 dev eth0 nodad
link set eth0 up
route add default dev eth0
route add ::/0 dev eth0
",
        own.v4, own.v6
    );
    for other in clusters.iter().filter(|other| other.number != host) {
        let (pods, node) = (other.pods(), other.node());
        let _ = writeln!(batch, "route add {} via {}", pods.v4, node.v4);
        let _ = writeln!(batch, "route add {} via {}", pods.v6, node.v6);
    }
    batch
}

fn ip(batch: &str) -> Result<()> {
    run_with_input(Command::new("ip").args(["-batch", "-"]), batch).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_routes_to_the_others_but_not_to_itself() {
        let clusters = [1, 2].map(|number| ClusterAddresses { slot: 0, number });
        let batch = inside(clusters[0].node(), 1, &clusters);
        assert!(batch.contains("route add 10.12.0.0/24 via 10.200.0.2"), "{batch}");
        assert!(batch.contains("route add fd00:10:2::/112 via fd00:200::2"), "{batch}");
        assert!(!batch.contains("10.11.0.0"), "{batch}");
    }
}
