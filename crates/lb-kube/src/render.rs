//! What a balancer should do for one service on its addresses, from what the service's provider is asked for.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use atoll_api::names::annotation::balancing::{ALGORITHM, PROXY_PROTOCOL};
use atoll_balance::{Algorithm, Backend, ClusterShare};
use atoll_lb::Protocol;
use atoll_lb::config::{Config, HealthConfig, ListenerConfig};
use atoll_lb::provider::{self, Key, Port, Spec};

/// What is published for the service.
pub(crate) fn config(key: &Key, spec: &Spec, addresses: &[IpAddr]) -> Config {
    let mut config = Config::default();
    for address in addresses {
        config.listeners.extend(spec.ports.iter().map(|port| listener(key, spec, *address, port)));
    }
    config
}

fn listener(key: &Key, spec: &Spec, address: IpAddr, port: &Port) -> ListenerConfig {
    let all = || spec.backends.iter().filter(|backend| backend.port_name == port.name);
    // The kernel leads to the same family only; where there are backends of it, the others answer on their own address.
    let same = |backend: &&provider::Backend| backend.address.is_ipv4() == address.is_ipv4();
    let own = all().any(|backend| same(&backend));
    let backends: Vec<&provider::Backend> = all().filter(|backend| !own || same(backend)).collect();
    let health = match (port.protocol, check_port(spec, &backends)) {
        (Protocol::Tcp, _) => Some(HealthConfig::default()),
        (Protocol::Udp, Some(port)) => Some(HealthConfig { port: Some(port), ..HealthConfig::default() }),
        (Protocol::Udp, None) => None,
    };
    let is = |key: &str, value: &str| spec.annotations.get(key).is_some_and(|text| text == value);
    let share = |share: &provider::Share| ClusterShare { weight: Some(share.weight), tier: share.tier };
    let name = format!("{key}:{}", port.port);
    ListenerConfig {
        algorithm: match is(ALGORITHM, "LeastConnections") {
            true => Algorithm::LeastConnections,
            false => Algorithm::Maglev,
        },
        affinity: spec.affinity.map(|span| Duration::from_secs(span.as_secs().max(1))),
        clusters: spec.shares.iter().map(|(name, one)| (name.clone(), share(one))).collect(),
        health,
        proxy_protocol: port.protocol == Protocol::Tcp && is(PROXY_PROTOCOL, "true"),
        backends: backends.into_iter().map(backend).collect(),
        ..ListenerConfig::new(name, port.protocol, SocketAddr::new(address, port.port))
    }
}

fn backend(backend: &provider::Backend) -> Backend {
    Backend { draining: !backend.ready, ..Backend::new(backend.address, &backend.cluster) }
}

/// Datagrams can't be checked: a TCP port that every one of these backends has too says whether it is there.
fn check_port(spec: &Spec, backends: &[&provider::Backend]) -> Option<u16> {
    let streams = spec.ports.iter().filter(|port| port.protocol == Protocol::Tcp);
    let of = |name: &str| -> BTreeSet<SocketAddr> {
        let its = spec.backends.iter().filter(|backend| backend.port_name == name);
        its.map(|backend| backend.address).collect()
    };
    streams.map(|port| of(&port.name)).find_map(|taken| {
        let number = taken.first()?.port();
        let each =
            |backend: &&provider::Backend| taken.contains(&SocketAddr::new(backend.address.ip(), number));
        backends.iter().all(each).then_some(number)
    })
}

/// What was published before for members that have not been heard since the hub started: it stays.
pub(crate) fn retained(before: &Config, spec: &Spec) -> Vec<provider::Backend> {
    let mut kept: Vec<provider::Backend> = Vec::new();
    for listener in &before.listeners {
        let same = |port: &&Port| (port.protocol, port.port) == (listener.protocol, listener.address.port());
        let Some(port) = spec.ports.iter().find(same) else { continue };
        for entry in listener.backends.iter().filter(|entry| spec.unheard.contains(&*entry.cluster)) {
            let backend = provider::Backend {
                address: entry.address,
                port_name: port.name.clone(),
                cluster: entry.cluster.to_string(),
                zone: String::new(),
                ready: !entry.draining,
            };
            if !kept.contains(&backend) {
                kept.push(backend);
            }
        }
    }
    kept
}

#[cfg(test)]
pub(crate) mod tests {
    use atoll_lb::provider::Share;

    use super::*;

    pub(crate) fn key() -> Key {
        Key { clusterset: "set".into(), namespace: "shop".into(), name: "web".into(), uid: "u".into() }
    }

    fn backend(address: &str, port_name: &str, cluster: &str) -> provider::Backend {
        provider::Backend {
            address: address.parse().unwrap(),
            port_name: port_name.into(),
            cluster: cluster.into(),
            zone: "a".into(),
            ready: true,
        }
    }

    pub(crate) fn spec() -> Spec {
        let port = |name: &str, protocol, port| Port { name: name.into(), protocol, port };
        Spec {
            ports: vec![port("http", Protocol::Tcp, 80), port("dns", Protocol::Udp, 53)],
            backends: vec![
                backend("10.1.0.1:8080", "http", "paris"),
                backend("[fd00::1]:8080", "http", "paris"),
                provider::Backend { ready: false, ..backend("10.2.0.1:8080", "http", "tokyo") },
                backend("10.1.0.1:5353", "dns", "paris"),
            ],
            shares: [("paris".to_owned(), Share { weight: 3, tier: 0 })].into(),
            affinity: Some(Duration::from_secs(10)),
            ..Spec::default()
        }
    }

    pub(crate) fn vips() -> [IpAddr; 2] {
        ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()]
    }

    #[test]
    fn what_is_published_is_what_a_balancer_does() {
        let mut spec = spec();
        for (key, value) in [(ALGORITHM, "LeastConnections"), (PROXY_PROTOCOL, "true")] {
            spec.annotations.insert(key.to_owned(), value.to_owned());
        }
        let published = config(&key(), &spec, &vips()).text();
        let desired = atoll_lb::config::parse(&published).unwrap();
        let [web, dns, web6, dns6] = &desired.listeners[..] else { panic!("{desired:?}") };
        assert_eq!((&*web.name, web.address), ("shop/web:80", "192.0.2.1:80".parse().unwrap()));
        let who = |listener: &atoll_lb::Listener| -> Vec<_> {
            listener.backends.iter().map(|one| (one.address.to_string(), one.draining)).collect()
        };
        assert_eq!(who(web), [("10.1.0.1:8080".into(), false), ("10.2.0.1:8080".into(), true)]);
        assert_eq!(who(web6), [("[fd00::1]:8080".into(), false)]);
        assert_eq!(who(dns6), who(dns), "none of its own family: the others are better than none");
        assert_eq!((dns.protocol, dns.check_port), (Protocol::Udp, Some(8080)));
        assert!(web.settings.checks.is_some() && web.proxy_protocol && !dns.proxy_protocol);
        assert_eq!(web.settings.clusters["paris"].weight, Some(3));
        assert_eq!(web.settings.affinity, Some(Duration::from_secs(10)));
        assert_eq!(web.settings.algorithm, Algorithm::LeastConnections);
    }

    #[test]
    fn what_has_not_been_heard_stays_and_nothing_else_does() {
        let before = config(&key(), &spec(), &vips());
        let now = Spec { backends: Vec::new(), unheard: ["paris".to_owned()].into(), ..spec() };
        let kept: Vec<_> =
            retained(&before, &now).into_iter().map(|one| (one.address.to_string(), one.port_name)).collect();
        let want = [("10.1.0.1:8080", "http"), ("10.1.0.1:5353", "dns"), ("[fd00::1]:8080", "http")];
        assert_eq!(kept, want.map(|(address, name)| (address.to_owned(), name.to_owned())));
        assert_eq!(retained(&before, &Spec { unheard: BTreeSet::new(), ..now }), []);
    }

    /// As the first builds wrote it: no version, every key in order of its name.
    #[test]
    fn what_an_earlier_build_published_is_read() {
        let text = r#"{"listeners":[{"address":"192.0.2.1:80","affinity":"10s","algorithm":"LeastConnections","backends":[{"address":"10.1.0.1:8080","cluster":"paris"},{"address":"10.2.0.1:8080","cluster":"tokyo","draining":true}],"clusters":{"paris":{"tier":0,"weight":3}},"health":{},"name":"shop/web:80","protocol":"TCP","proxyProtocol":true}]}"#;
        let mut spec = spec();
        for (key, value) in [(ALGORITHM, "LeastConnections"), (PROXY_PROTOCOL, "true")] {
            spec.annotations.insert(key.to_owned(), value.to_owned());
        }
        spec.ports.truncate(1);
        assert_eq!(Config::read(text), Ok(config(&key(), &spec, &vips()[..1])));
    }
}
