//! The union of the exports' ports, and what becomes of each export's own.
//!
//! kube-proxy joins a Service's port and a slice's port by name. So a port that is one with another's (same protocol and number)
//! takes that name, and a port whose name stands for another one stays behind: traffic must not reach it.

use std::sync::Arc;

use litemap::LiteMap;

use crate::facts::{Protocol, ServicePort};
use crate::few;
use crate::memory::Offer;
use crate::names::{ClusterId, PortName};

/// The merged ports of a service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ports {
    /// Without duplicate names or duplicate (protocol, port); all named if there are several.
    pub union: Vec<ServicePort>,
    /// By cluster and by name there: what becomes of each port.
    pub fates: LiteMap<ClusterId, PortFates>,
    /// The exports that have other ports than the first, by their places.
    pub disagree: Vec<usize>,
}

/// What becomes of the ports of one export, by their names there.
pub type PortFates = LiteMap<PortName, PortFate>;

/// What becomes of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortFate {
    /// It serves the import's port of this name.
    Serves(PortName),
    /// Its name stands for another port.
    Dropped {
        /// Whose port has the name.
        winner: ClusterId,
    },
}

/// Merges the ports of exports given in order of precedence: by name first, then by (protocol, port).
pub fn merge(exports: &[(ClusterId, Arc<Offer>)]) -> Ports {
    let mut union: Vec<(ServicePort, &ClusterId)> = Vec::new();
    // Where each port went: its place in the union, or who took its name.
    let mut places: Vec<(&ClusterId, &PortName, Result<usize, &ClusterId>)> = Vec::new();
    for (cluster, offer) in exports {
        for port in &offer.ports {
            let same =
                |(other, _): &(ServicePort, _)| (other.protocol, other.port) == (port.protocol, port.port);
            let place = match union.iter().position(|(other, _)| other.name == port.name) {
                Some(at) if same(&union[at]) => Ok(at),
                Some(at) => Err(union[at].1),
                None => Ok(union.iter().position(same).unwrap_or_else(|| {
                    union.push((port.clone(), cluster));
                    union.len() - 1
                })),
            };
            places.push((cluster, &port.name, place));
        }
    }
    let disagree = match exports {
        [] => Vec::new(),
        [(_, first), ..] => {
            let others = exports.iter().enumerate();
            others.filter(|(_, (_, offer))| !same_set(&first.ports, &offer.ports)).map(|(at, _)| at).collect()
        }
    };
    let mut union: Vec<ServicePort> = union.into_iter().map(|(port, _)| port).collect();
    name_all(&mut union);
    let mut fates: LiteMap<ClusterId, PortFates> = LiteMap::with_capacity(exports.len());
    for (cluster, name, place) in places {
        let fate = match place {
            Ok(at) => PortFate::Serves(union[at].name.clone()),
            Err(winner) => PortFate::Dropped { winner: winner.clone() },
        };
        // A Service has no two ports of one name; should a member say so, the first counts.
        fates.entry(cluster.clone()).or_insert_with(few::for_one).entry(name.clone()).or_insert(fate);
    }
    Ports { union, fates, disagree }
}

/// The API demands a name of each port when there are several.
fn name_all(union: &mut [ServicePort]) {
    if union.len() < 2 {
        return;
    }
    let Some(unnamed) = union.iter().position(|port| port.name.is_empty()) else { return };
    let (protocol, number) = (union[unnamed].protocol, union[unnamed].port);
    let protocol = match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    };
    let candidates = (1..)
        .map(|n| if n == 1 { format!("{protocol}-{number}") } else { format!("{protocol}-{number}-{n}") });
    let free = candidates
        .filter_map(|name| PortName::parse(name).ok())
        .find(|name| union.iter().all(|p| p.name != *name));
    if let Some(free) = free {
        union[unnamed].name = free;
    }
}

pub(super) fn same_set(a: &[ServicePort], b: &[ServicePort]) -> bool {
    a.len() == b.len() && a.iter().all(|port| b.contains(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{id, ports as parse};

    /// Exports as `cluster: name:port …`; the outcome as the union and, per cluster, the ports that do not keep their name.
    fn merged(exports: &[(&str, &str)]) -> (String, String, usize) {
        let exports: Vec<_> = exports
            .iter()
            .map(|(cluster, ports)| {
                (id(cluster), Arc::new(Offer { ports: parse(ports), ..Offer::default() }))
            })
            .collect();
        let merged = merge(&exports);
        let union: Vec<_> = merged
            .union
            .iter()
            .map(|p| format!("{}:{}/{}", p.name, p.port, p.protocol.as_str().to_lowercase()))
            .collect();
        let mut fates = Vec::new();
        for (cluster, ports) in &merged.fates {
            for (name, fate) in ports {
                match fate {
                    PortFate::Serves(to) if to == name => {}
                    PortFate::Serves(to) => fates.push(format!("{cluster}/{name}={to}")),
                    PortFate::Dropped { winner } => fates.push(format!("{cluster}/{name}!{winner}")),
                }
            }
        }
        (union.join(" "), fates.join(" "), merged.disagree.len())
    }

    #[test]
    fn ports_are_joined_by_name_and_number_and_the_older_export_wins() {
        for (exports, union, fates, disagree) in [
            (&[("a", "http:80"), ("b", "http:80")][..], "http:80/tcp", "", 0),
            // The union, whatever differs.
            (&[("a", "http:80"), ("b", "http:80 dns:53/udp")], "http:80/tcp dns:53/udp", "", 1),
            // One number under two names: the winner's.
            (&[("a", "http:80"), ("b", "web:80")], "http:80/tcp", "b/web=http", 1),
            // One name for two numbers: the loser's stays behind.
            (&[("a", "tcp:42"), ("b", "tcp:4242")], "tcp:42/tcp", "b/tcp!a", 1),
            (&[("a", "x:1"), ("b", "y:2"), ("c", "y:3 x:1")], "x:1/tcp y:2/tcp", "c/y!b", 2),
            // The same number over another protocol is another port.
            (&[("a", "tcp:42"), ("b", "udp:42/udp")], "tcp:42/tcp udp:42/udp", "", 1),
            // An unnamed port stays so while it is alone.
            (&[("a", ":80"), ("b", "http:80")], ":80/tcp", "b/http=", 1),
            // In a union of several it gets a name, everywhere.
            (&[("a", ":80"), ("b", "dns:53/udp")], "tcp-80:80/tcp dns:53/udp", "a/=tcp-80", 1),
            (&[("a", "tcp-80:81"), ("b", ":80")], "tcp-80:81/tcp tcp-80-2:80/tcp", "b/=tcp-80-2", 1),
            // The empty name counts as a name.
            (&[("a", ":80"), ("b", ":81")], ":80/tcp", "b/!a", 1),
            // The name is looked at before the number.
            (&[("a", "x:1 y:2"), ("b", "y:1")], "x:1/tcp y:2/tcp", "b/y!a", 1),
            (&[], "", "", 0),
        ] {
            assert_eq!(merged(exports), (union.to_owned(), fates.to_owned(), disagree), "{exports:?}");
        }
    }

    #[test]
    fn another_app_protocol_is_a_conflict_and_the_order_of_ports_is_not() {
        assert_eq!(merged(&[("a", "x:1 y:2"), ("b", "y:2 x:1")]).2, 0);
        assert_eq!(merged(&[("a", "x:1"), ("b", "x:1=kubernetes.io/h2c")]).2, 1);
    }
}
