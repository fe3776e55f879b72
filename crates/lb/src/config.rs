//! The file that a balancer can be run from: checked into [`Wanted`], with everything that is wrong at once.
//!
//! ```yaml
//! listeners:
//! - name: shop/web
//!   address: 127.0.0.1:8080
//!   algorithm: Maglev              # or LeastConnections
//!   clusters:
//!     paris: {weight: 3}
//!     tokyo: {weight: 1, tier: 1}  # only when paris has nobody
//!   health: {interval: 500ms}
//!   backends:
//!   - {address: "10.1.0.4:8080", cluster: paris}
//!   - {address: "10.2.0.9:8080", cluster: tokyo}
//! ```

mod form;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use self::form::{
    AlgorithmEntry, BackendEntry, ClusterEntry, File, ListenerEntry, ProtocolEntry, SourceEntry,
};
use crate::wanted::{Limits, Listener, Protocol, Source, Wanted};
use atoll_balance::{Algorithm, Backend, Checks, ClusterShare, Ejection, Settings};

/// Why a file is not taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// It is not of the form that is expected.
    #[error("{0}")]
    Form(String),
    /// It asks for what can't be.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Wrong(Vec<Wrong>),
}

/// One thing that can't be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Wrong {
    /// Two listeners want the same.
    #[error("`{one}` and `{other}` both use {protocol} {address}", protocol = protocol.name())]
    Clash {
        /// The first.
        one: Arc<str>,
        /// The second.
        other: Arc<str>,
        /// TCP or UDP.
        protocol: Protocol,
        /// The address.
        address: SocketAddr,
    },
    /// A backend stands there twice.
    #[error("`{listener}` lists {address} twice")]
    Twice {
        /// The listener.
        listener: Arc<str>,
        /// The backend.
        address: SocketAddr,
    },
    /// A backend is the listener itself, so that connections would go round for ever.
    #[error("`{listener}` lists its own address {address} as a backend")]
    Loop {
        /// The listener.
        listener: Arc<str>,
        /// The address.
        address: SocketAddr,
    },
    /// A port is missing.
    #[error("`{listener}` has a backend without a port: {address}")]
    NoPort {
        /// The listener.
        listener: Arc<str>,
        /// The backend.
        address: SocketAddr,
    },
    /// Datagrams can't be checked.
    #[error("`{listener}` needs `health.port`: UDP backends can only be checked at a TCP port")]
    UncheckedDatagrams {
        /// The listener.
        listener: Arc<str>,
    },
    /// Datagrams have no beginning.
    #[error("`{listener}` has `proxyProtocol` with UDP: it is for TCP only")]
    ProxyOfDatagrams {
        /// The listener.
        listener: Arc<str>,
    },
    /// Backends can't see both.
    #[error(
        "`{listener}`: `source` is either `keep` or a range from `first` to `last` of the listener's IP family"
    )]
    Source {
        /// The listener.
        listener: Arc<str>,
    },
    /// A span or number that must not be zero.
    #[error("`{listener}`: `{field}` must be greater than zero")]
    Zero {
        /// The listener.
        listener: Arc<str>,
        /// The field.
        field: &'static str,
    },
}

/// Reads and checks the file.
pub fn parse(text: &str) -> Result<Wanted, ConfigError> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| ConfigError::Form(error.to_string()))?;
    let Some(entries) = file.listeners else {
        return Err(ConfigError::Form("`listeners` is missing; write `listeners: []` for none".to_owned()));
    };
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<_, Arc<str>> = BTreeMap::new();
    let mut listeners = Vec::new();
    for entry in entries {
        let listener = listener(entry, &mut wrong);
        if let Some(one) = seen.insert(listener.key(), Arc::clone(&listener.name)) {
            wrong.push(Wrong::Clash {
                one,
                other: Arc::clone(&listener.name),
                protocol: listener.protocol,
                address: listener.address,
            });
        }
        listeners.push(listener);
    }
    if wrong.is_empty() { Ok(Wanted { listeners }) } else { Err(ConfigError::Wrong(wrong)) }
}

fn listener(entry: ListenerEntry, wrong: &mut Vec<Wrong>) -> Listener {
    let name = || Arc::from(&*entry.name);
    let protocol = match entry.protocol {
        ProtocolEntry::Tcp => Protocol::Tcp,
        ProtocolEntry::Udp => Protocol::Udp,
    };
    let defaults = Listener::new(&entry.name, protocol, entry.address, Vec::new());
    if protocol == Protocol::Udp && entry.proxy_protocol {
        wrong.push(Wrong::ProxyOfDatagrams { listener: name() });
    }
    let (checks, check_port) = match &entry.health {
        Some(health) => {
            if protocol == Protocol::Udp && health.port.is_none() {
                wrong.push(Wrong::UncheckedDatagrams { listener: name() });
            }
            let usual = Checks::default();
            let checks = Checks {
                interval: health.interval.unwrap_or(usual.interval),
                timeout: health.timeout.unwrap_or(usual.timeout),
                rise: health.rise.unwrap_or(usual.rise),
                fall: health.fall.unwrap_or(usual.fall),
            };
            (Some(checks), health.port)
        }
        None => (None, None),
    };
    let SourceEntry { keep, first, last } = entry.source;
    let source = match (keep, first, last) {
        (true, None, None) => Some(Source::Keep),
        (false, None, None) => Some(Source::Masquerade),
        (false, Some(first), last) => Some(Source::Pool(first, last.unwrap_or(first))),
        (true, ..) | (false, None, Some(_)) => None,
    };
    let source = source.filter(|source| source.fits(entry.address.ip())).unwrap_or_else(|| {
        wrong.push(Wrong::Source { listener: name() });
        Source::default()
    });
    let connect_timeout = entry.connect_timeout.unwrap_or(defaults.connect_timeout);
    let idle_timeout = entry.idle_timeout.unwrap_or(defaults.idle_timeout);
    for (field, zero) in [
        ("health.interval", checks.is_some_and(|checks| checks.interval.is_zero())),
        ("health.timeout", checks.is_some_and(|checks| checks.timeout.is_zero())),
        ("connectTimeout", connect_timeout.is_zero()),
        ("idleTimeout", idle_timeout.is_zero()),
        ("limits.connections", entry.limits.connections == Some(0)),
        ("limits.perClient", entry.limits.per_client == Some(0)),
    ] {
        if zero {
            wrong.push(Wrong::Zero { listener: name(), field });
        }
    }
    let mut seen = BTreeSet::new();
    for BackendEntry { address, .. } in &entry.backends {
        if !seen.insert(*address) {
            wrong.push(Wrong::Twice { listener: name(), address: *address });
        }
        if address.port() == 0 {
            wrong.push(Wrong::NoPort { listener: name(), address: *address });
        }
        if *address == entry.address {
            wrong.push(Wrong::Loop { listener: name(), address: *address });
        }
    }
    let usual = Settings::default();
    let share = |cluster: ClusterEntry| ClusterShare { weight: cluster.weight, tier: cluster.tier };
    Listener {
        settings: Settings {
            algorithm: match entry.algorithm {
                AlgorithmEntry::Maglev => Algorithm::Maglev,
                AlgorithmEntry::LeastConnections => Algorithm::LeastConnections,
            },
            affinity: entry.affinity,
            clusters: entry
                .clusters
                .into_iter()
                .map(|(name, cluster)| (name.into(), share(cluster)))
                .collect(),
            checks,
            ejection: entry.ejection.then(Ejection::default),
            drain: entry.drain.unwrap_or(usual.drain),
            seed: entry.seed,
        },
        backends: entry
            .backends
            .into_iter()
            .map(|backend| Backend {
                address: backend.address,
                cluster: backend.cluster.into(),
                weight: backend.weight,
                draining: backend.draining,
            })
            .collect(),
        limits: Limits {
            connections: entry.limits.connections.unwrap_or(defaults.limits.connections),
            per_client: entry.limits.per_client,
        },
        interface: entry.interface.map(Into::into),
        proxy_protocol: entry.proxy_protocol,
        source,
        connect_timeout,
        idle_timeout,
        check_port,
        ..defaults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Vec<String> {
        match parse(text) {
            Err(ConfigError::Wrong(wrong)) => wrong.iter().map(ToString::to_string).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_cut_off_is_not_a_file_without_listeners() {
        for text in ["", "# soon", "listeners:", "{}", "listeners: null"] {
            assert!(matches!(parse(text), Err(ConfigError::Form(_))), "{text:?}: {:?}", parse(text));
        }
        assert_eq!(parse("listeners: []"), Ok(Wanted::default()));
    }

    #[test]
    fn everything_can_be_said() {
        let wanted = parse(
            r#"
listeners:
- name: shop/web
  address: "[::1]:8080"
  algorithm: LeastConnections
  affinity: 3h
  clusters: {paris: {weight: 3}, tokyo: {weight: 1, tier: 1}}
  health: {interval: 2s, timeout: 1s, rise: 1, fall: 4, port: 9000}
  ejection: false
  drain: 1m
  proxyProtocol: true
  limits: {connections: 10, perClient: 2}
  connectTimeout: 300ms
  idleTimeout: 10m
  backends:
  - {address: "10.1.0.4:8080", cluster: paris, weight: 2, draining: true}
- {name: shop/dns, address: "127.0.0.1:5353", protocol: UDP}
"#,
        )
        .unwrap();
        let [web, dns] = &wanted.listeners[..] else { panic!("{wanted:?}") };
        assert_eq!((web.check_port, web.limits.per_client, web.proxy_protocol), (Some(9000), Some(2), true));
        assert_eq!(web.settings.clusters["tokyo"], ClusterShare { weight: Some(1), tier: 1 });
        assert_eq!(web.settings.checks.unwrap().fall, 4);
        assert!(web.backends[0].draining && web.settings.ejection.is_none());
        assert_eq!(
            dns,
            &Listener::new("shop/dns", Protocol::Udp, "127.0.0.1:5353".parse().unwrap(), Vec::new())
        );
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let said = wrong(
            r#"
listeners:
- name: a
  address: 127.0.0.1:80
  idleTimeout: 0s
  backends: [{address: "10.0.0.1:0"}, {address: "127.0.0.1:80"}, {address: "127.0.0.1:80"}]
- {name: b, address: "127.0.0.1:80"}
- {name: c, address: "127.0.0.1:80", protocol: UDP, proxyProtocol: true, health: {}}
"#,
        );
        for part in [
            "`a` and `b` both use TCP",
            "twice",
            "its own address",
            "without a port",
            "`idleTimeout`",
            "for TCP only",
            "`health.port`",
        ] {
            assert!(said.iter().any(|line| line.contains(part)), "{part}: {said:#?}");
        }
    }

    #[test]
    fn a_misspelt_field_is_not_ignored() {
        let Err(ConfigError::Form(why)) =
            parse("listeners: [{name: a, address: '127.0.0.1:80', algoritm: Maglev}]")
        else {
            panic!("taken");
        };
        assert!(why.contains("algoritm"), "{why}");
    }
}
