//! Between what travels and what is used. Everything from outside is checked here.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::{Backend, Ingress, Key, Port, Share, Spec, Status};
use crate::desired::Protocol;

/// What is generated from the `.proto`.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    reason = "generated; the .proto is documented"
)]
pub(super) mod v1 {
    tonic::include_proto!("atoll.lb.v1");
}

/// A status must not be filled with more than an object can hold.
const MOST_INGRESS: usize = 64;
const LONGEST_HOSTNAME: usize = 253;

/// What makes no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Nonsense {
    #[error("a part of the message is missing: {0}")]
    Missing(&'static str),
    #[error("invalid IP address `{0}`")]
    Ip(String),
    #[error("invalid host name `{0}`")]
    Hostname(String),
    #[error("invalid port {0}")]
    Port(u32),
    #[error("unknown protocol {0}")]
    Protocol(i32),
    #[error("an ingress must have either an IP address or a host name")]
    Ingress,
    #[error("{0} addresses are too many for one balancer")]
    TooMany(usize),
    #[error("an address that clients cannot use: {0}")]
    Unusable(IpAddr),
}

/// Whether bytes from outside are a message that makes sense, of a caller or of a provider.
pub fn readable(bytes: &[u8]) -> bool {
    use prost::Message;
    let asked = v1::EnsureRequest::decode(bytes)
        .is_ok_and(|read| key_in(read.key).is_ok() && spec_in(read.spec).is_ok());
    let told = v1::GetResponse::decode(bytes).is_ok_and(|read| status_in(read.status).is_ok());
    let key = v1::GetRequest::decode(bytes).is_ok_and(|read| key_in(read.key).is_ok());
    asked || told || key
}

pub(super) fn key_out(key: &Key) -> v1::Key {
    v1::Key {
        clusterset: key.clusterset.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: key.uid.clone(),
    }
}

pub(super) fn key_in(key: Option<v1::Key>) -> Result<Key, Nonsense> {
    let key = key.ok_or(Nonsense::Missing("key"))?;
    for (field, text) in [("key.namespace", &key.namespace), ("key.name", &key.name), ("key.uid", &key.uid)] {
        if text.is_empty() {
            return Err(Nonsense::Missing(field));
        }
    }
    Ok(Key { clusterset: key.clusterset, namespace: key.namespace, name: key.name, uid: key.uid })
}

pub(super) fn spec_out(spec: &Spec) -> v1::Spec {
    let protocol = |protocol| match protocol {
        Protocol::Tcp => v1::Protocol::Tcp,
        Protocol::Udp => v1::Protocol::Udp,
    };
    v1::Spec {
        ports: spec
            .ports
            .iter()
            .map(|port| v1::Port {
                name: port.name.clone(),
                protocol: protocol(port.protocol).into(),
                port: port.port.into(),
            })
            .collect(),
        backends: spec
            .backends
            .iter()
            .map(|backend| v1::Backend {
                address: backend.address.ip().to_string(),
                port: backend.address.port().into(),
                port_name: backend.port_name.clone(),
                cluster: backend.cluster.clone(),
                zone: backend.zone.clone(),
                ready: backend.ready,
            })
            .collect(),
        shares: spec
            .shares
            .iter()
            .map(|(cluster, share)| v1::ClusterShare {
                cluster: cluster.clone(),
                weight: share.weight,
                tier: share.tier,
            })
            .collect(),
        annotations: spec.annotations.clone().into_iter().collect(),
        affinity_seconds: spec
            .affinity
            .map_or(0, |span| u32::try_from(span.as_secs()).unwrap_or(u32::MAX).max(1)),
        unheard_clusters: spec.unheard.iter().cloned().collect(),
    }
}

pub(super) fn spec_in(spec: Option<v1::Spec>) -> Result<Spec, Nonsense> {
    let spec = spec.ok_or(Nonsense::Missing("spec"))?;
    let ports = spec.ports.into_iter().map(|port| {
        let protocol = match v1::Protocol::try_from(port.protocol) {
            Ok(v1::Protocol::Tcp) => Protocol::Tcp,
            Ok(v1::Protocol::Udp) => Protocol::Udp,
            Ok(v1::Protocol::Unspecified) | Err(_) => return Err(Nonsense::Protocol(port.protocol)),
        };
        Ok(Port { name: port.name, protocol, port: port_in(port.port)? })
    });
    let backends = spec.backends.into_iter().map(|backend| {
        Ok(Backend {
            address: SocketAddr::new(ip_in(&backend.address)?, port_in(backend.port)?),
            port_name: backend.port_name,
            cluster: backend.cluster,
            zone: backend.zone,
            ready: backend.ready,
        })
    });
    let shares = spec
        .shares
        .into_iter()
        .map(|share| (share.cluster, Share { weight: share.weight, tier: share.tier }));
    let affinity = u64::from(spec.affinity_seconds);
    Ok(Spec {
        ports: ports.collect::<Result<_, _>>()?,
        backends: backends.collect::<Result<_, _>>()?,
        shares: shares.collect(),
        annotations: spec.annotations.into_iter().collect(),
        affinity: (affinity > 0).then(|| Duration::from_secs(affinity)),
        unheard: spec.unheard_clusters.into_iter().collect(),
    })
}

pub(super) fn status_out(status: &Status) -> v1::Status {
    let ingress = status.ingress.iter().map(|ingress| match ingress {
        Ingress::Ip(ip) => v1::Ingress { ip: ip.to_string(), hostname: String::new() },
        Ingress::Hostname(name) => v1::Ingress { ip: String::new(), hostname: name.clone() },
    });
    v1::Status { ingress: ingress.collect() }
}

pub(super) fn status_in(status: Option<v1::Status>) -> Result<Status, Nonsense> {
    let status = status.ok_or(Nonsense::Missing("status"))?;
    if status.ingress.len() > MOST_INGRESS {
        return Err(Nonsense::TooMany(status.ingress.len()));
    }
    let mut ingress = status
        .ingress
        .into_iter()
        .map(|one| match (one.ip.as_str(), one.hostname.as_str()) {
            (ip, "") => {
                let ip = ip_in(ip)?;
                if !is_usable(ip) {
                    return Err(Nonsense::Unusable(ip));
                }
                Ok(Ingress::Ip(ip))
            }
            ("", name) if is_hostname(name) => Ok(Ingress::Hostname(name.to_owned())),
            ("", name) => Err(Nonsense::Hostname(name.chars().take(LONGEST_HOSTNAME).collect())),
            (_, _) => Err(Nonsense::Ingress),
        })
        .collect::<Result<Vec<_>, _>>()?;
    // The order means nothing, and must not look like a change.
    ingress.sort();
    ingress.dedup();
    Ok(Status { ingress })
}

/// Whether clients outside can reach it: what is each machine's own (loopback, link-local, which a cloud's metadata has too) leads them
/// to another machine.
fn is_usable(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [first, ..] = ip.octets();
            !(first == 0 || ip.is_loopback() || ip.is_link_local() || ip.is_multicast() || ip.is_broadcast())
        }
        IpAddr::V6(ip) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_unicast_link_local() || ip.is_multicast())
        }
    }
}

fn is_hostname(name: &str) -> bool {
    name.len() <= LONGEST_HOSTNAME
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

fn ip_in(text: &str) -> Result<IpAddr, Nonsense> {
    text.parse().map_err(|_| Nonsense::Ip(text.chars().take(64).collect()))
}

fn port_in(port: u32) -> Result<u16, Nonsense> {
    u16::try_from(port).ok().filter(|port| *port > 0).ok_or(Nonsense::Port(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ingress(ip: &str, hostname: &str) -> v1::Ingress {
        v1::Ingress { ip: ip.to_owned(), hostname: hostname.to_owned() }
    }

    #[test]
    fn nonsense_is_told_from_sense() {
        for (ip, hostname, sense) in [
            ("192.0.2.1", "", true),
            ("2001:db8::1", "", true),
            ("", "lb-1.example.com", true),
            ("", "", false),
            ("192.0.2.1", "lb.example.com", false),
            ("192.0.2.256", "", false),
            ("0.0.0.0", "", false),
            ("ff02::1", "", false),
            ("127.0.0.1", "", false),
            ("::1", "", false),
            ("::ffff:127.0.0.1", "", false),
            ("169.254.169.254", "", false),
            ("::ffff:169.254.169.254", "", false),
            ("fe80::1", "", false),
            ("255.255.255.255", "", false),
            ("", "Not A Host", false),
            ("", "-x.example.com", false),
        ] {
            let status = v1::Status { ingress: vec![ingress(ip, hostname)] };
            assert_eq!(status_in(Some(status)).is_ok(), sense, "`{ip}` `{hostname}`");
        }
        let many = v1::Status { ingress: vec![ingress("192.0.2.1", ""); 65] };
        assert_eq!(status_in(Some(many)), Err(Nonsense::TooMany(65)));
        assert_eq!(status_in(None), Err(Nonsense::Missing("status")));
    }

    #[test]
    fn the_order_of_addresses_means_nothing() {
        let status = |list: &[&str]| v1::Status { ingress: list.iter().map(|ip| ingress(ip, "")).collect() };
        assert_eq!(
            status_in(Some(status(&["192.0.2.2", "192.0.2.1", "192.0.2.2"]))),
            status_in(Some(status(&["192.0.2.1", "192.0.2.2"])))
        );
    }

    #[test]
    fn a_spec_arrives_as_it_was_sent() {
        let spec = super::super::conformance::example_spec();
        assert_eq!(spec_in(Some(spec_out(&spec))), Ok(spec));
    }
}
