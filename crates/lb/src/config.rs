//! What a balancer should do, as it is written down: in the file of `atoll lb --config`, in the `ConfigMap` that the hub publishes for a service,
//! in the state of a balancer. One form, typed on both sides.
//!
//! ```yaml
//! listeners:
//! - name: shop/web
//!   address: 127.0.0.1:8080
//!   algorithm: Maglev              # or LeastConnections
//!   clusters:
//!     paris: {weight: 3}
//!     tokyo: {weight: 1, tier: 1}  # only when paris has no backend
//!   health: {interval: 500ms}
//!   backends:
//!   - {address: "10.1.0.4:8080", cluster: paris}
//!   - {address: "10.2.0.9:8080", cluster: tokyo}
//! ```

//!
//! [`Config`] is the form, [`Desired`] what is left after checking, with everything that is wrong at once. A person's file with a misspelt
//! field is refused ([`parse`]); a program's text may have fields that this version does not know ([`Config::read`]). A form of another
//! version is refused.

mod form;
mod span;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use atoll_balance::{Checks, Ejection, Settings};
use serde::Deserialize;

pub use self::form::{Config, HealthConfig, LimitsConfig, ListenerConfig, SourceConfig};
use crate::desired::{Desired, Limits, Listener, Protocol, Source};

/// The version of the form that this balancer reads and writes.
pub const VERSION: u32 = 1;

/// A longer text is no configuration of a balancer.
const LONGEST_TEXT: usize = 64 * 1024 * 1024;
/// So many listeners one balancer has at the most, backends one listener, and clusters with a share.
const MOST_LISTENERS: usize = 65_536;
const MOST_BACKENDS: usize = 16_384;
const MOST_CLUSTERS: usize = 1024;
/// Two names of Kubernetes and a port. Names stand in metrics and logs.
const LONGEST_NAME: usize = 512;

/// Why a configuration is not taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// It is not of the form that is expected.
    #[error("{0}")]
    Form(String),
    /// It was written for another version.
    #[error(
        "it has version {0} and this release reads version {VERSION}: run the same release of the hub and of its load balancers"
    )]
    Version(u32),
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
    /// More than a balancer takes.
    #[error("`{listener}` has more than {most} {what}")]
    TooMany {
        /// The listener, or the first of them.
        listener: Arc<str>,
        /// Of what.
        what: &'static str,
        /// So many may there be.
        most: usize,
    },
    /// A name that is none.
    #[error("invalid name {name:?}: 1 to {LONGEST_NAME} characters, none of them a control character")]
    Name {
        /// Its beginning.
        name: String,
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

/// Reads and checks what a person wrote: a field that there is not is a mistake.
pub fn parse(text: &str) -> Result<Desired, ConfigError> {
    let (config, unknown) = read(text)?;
    if !unknown.is_empty() {
        return Err(ConfigError::Form(format!("unknown field: {}", unknown.join(", "))));
    }
    config.check()
}

impl Config {
    /// Reads what a program wrote; fields that this version does not know are ignored.
    pub fn read(text: &str) -> Result<Self, ConfigError> {
        read(text).map(|(config, _)| config)
    }

    /// As text, which [`Config::read`] and [`parse`] take.
    pub fn text(&self) -> String {
        // Nothing in it can't be written: no map has keys that are not text.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What it asks for, or everything that is wrong with it.
    pub fn check(&self) -> Result<Desired, ConfigError> {
        let mut wrong = Vec::new();
        let mut seen: BTreeMap<_, Arc<str>> = BTreeMap::new();
        let mut listeners = Vec::new();
        if let Some(first) = self.listeners.first().filter(|_| self.listeners.len() > MOST_LISTENERS) {
            let listener = Arc::from(shown(&first.name));
            let many = Wrong::TooMany { listener, what: "listeners beside it", most: MOST_LISTENERS };
            return Err(ConfigError::Wrong(vec![many]));
        }
        for config in &self.listeners {
            let listener = listener(config, &mut wrong);
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
        if wrong.is_empty() { Ok(Desired { listeners }) } else { Err(ConfigError::Wrong(wrong)) }
    }
}

/// The configuration, and the fields that are not known.
fn read(text: &str) -> Result<(Config, Vec<String>), ConfigError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    if text.len() > LONGEST_TEXT {
        return Err(ConfigError::Form(format!("it is longer than {LONGEST_TEXT} bytes")));
    }
    let mut unknown = Vec::new();
    let read: Result<Config, _> = serde_saphyr::with_deserializer_from_str(text, |deserializer| {
        serde_ignored::deserialize(deserializer, |path| unknown.push(path.to_string().replace(".?", "")))
    });
    match read {
        Ok(config) if config.version == VERSION => Ok((config, unknown)),
        Ok(config) => Err(ConfigError::Version(config.version)),
        // Another version may have another form.
        Err(error) => match serde_saphyr::from_str(text) {
            Ok(Versioned { version }) if version != VERSION => Err(ConfigError::Version(version)),
            Ok(_) | Err(_) => Err(ConfigError::Form(error.to_string())),
        },
    }
}

/// A part of a name, for people.
fn shown(name: &str) -> String {
    name.chars().take(64).map(|one| if one.is_control() { '?' } else { one }).collect()
}

/// What of it a balancer can hold, and show.
fn bounds(config: &ListenerConfig, wrong: &mut Vec<Wrong>) {
    let clusters = config.clusters.keys().map(String::as_str);
    let of_backends = config.backends.iter().map(|backend| &*backend.cluster).filter(|name| !name.is_empty());
    let names = std::iter::once(config.name.as_str()).chain(clusters).chain(of_backends);
    let is_bad = |name: &str| !(1..=LONGEST_NAME).contains(&name.len()) || name.chars().any(char::is_control);
    let bad: BTreeSet<String> = names.filter(|name| is_bad(name)).map(shown).collect();
    wrong.extend(bad.into_iter().map(|name| Wrong::Name { name }));
    for (what, count, most) in [
        ("backends", config.backends.len(), MOST_BACKENDS),
        ("clusters", config.clusters.len(), MOST_CLUSTERS),
    ] {
        if count > most {
            wrong.push(Wrong::TooMany { listener: Arc::from(shown(&config.name)), what, most });
        }
    }
}

fn listener(config: &ListenerConfig, wrong: &mut Vec<Wrong>) -> Listener {
    bounds(config, wrong);
    let name = || Arc::from(&*config.name);
    let protocol = config.protocol;
    let defaults = Listener::new(&config.name, protocol, config.address, config.backends.clone());
    if protocol == Protocol::Udp && config.proxy_protocol {
        wrong.push(Wrong::ProxyOfDatagrams { listener: name() });
    }
    if protocol == Protocol::Udp && config.health.as_ref().is_some_and(|health| health.port.is_none()) {
        wrong.push(Wrong::UncheckedDatagrams { listener: name() });
    }
    let checks = config.health.as_ref().map(checks);
    let source = source(&config.source).filter(|source| source.fits(config.address.ip()));
    let source = source.unwrap_or_else(|| {
        wrong.push(Wrong::Source { listener: name() });
        Source::default()
    });
    let connect_timeout = config.connect_timeout.unwrap_or(defaults.connect_timeout);
    let idle_timeout = config.idle_timeout.unwrap_or(defaults.idle_timeout);
    for (field, zero) in [
        ("health.interval", checks.is_some_and(|checks| checks.interval.is_zero())),
        ("health.timeout", checks.is_some_and(|checks| checks.timeout.is_zero())),
        ("connectTimeout", connect_timeout.is_zero()),
        ("idleTimeout", idle_timeout.is_zero()),
        ("limits.connections", config.limits.connections == Some(0)),
        ("limits.perClient", config.limits.per_client == Some(0)),
    ] {
        if zero {
            wrong.push(Wrong::Zero { listener: name(), field });
        }
    }
    let mut seen = BTreeSet::new();
    for address in config.backends.iter().map(|backend| backend.address) {
        if !seen.insert(address) {
            wrong.push(Wrong::Twice { listener: name(), address });
        }
        if address.port() == 0 {
            wrong.push(Wrong::NoPort { listener: name(), address });
        }
        if address == config.address {
            wrong.push(Wrong::Loop { listener: name(), address });
        }
    }
    Listener {
        settings: Settings {
            algorithm: config.algorithm,
            affinity: config.affinity,
            clusters: config.clusters.iter().map(|(name, share)| (name.as_str().into(), *share)).collect(),
            checks,
            ejection: config.ejection.then(Ejection::default),
            drain: config.drain.unwrap_or(defaults.settings.drain),
            seed: config.seed,
        },
        limits: Limits {
            connections: config.limits.connections.unwrap_or(defaults.limits.connections),
            per_client: config.limits.per_client,
        },
        interface: config.interface.as_deref().map(Into::into),
        proxy_protocol: config.proxy_protocol,
        source,
        connect_timeout,
        idle_timeout,
        check_port: config.health.as_ref().and_then(|health| health.port),
        ..defaults
    }
}

fn checks(health: &HealthConfig) -> Checks {
    let usual = Checks::default();
    Checks {
        interval: health.interval.unwrap_or(usual.interval),
        timeout: health.timeout.unwrap_or(usual.timeout),
        rise: health.rise.unwrap_or(usual.rise),
        fall: health.fall.unwrap_or(usual.fall),
    }
}

/// None if it says two things at once.
fn source(config: &SourceConfig) -> Option<Source> {
    match (config.keep, config.first, config.last) {
        (true, None, None) => Some(Source::Keep),
        (false, None, None) => Some(Source::Masquerade),
        (false, Some(first), last) => Some(Source::Pool(first, last.unwrap_or(first))),
        (true, ..) | (false, None, Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use atoll_balance::{Backend, ClusterShare};

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
        assert_eq!(parse("listeners: []"), Ok(Desired::default()));
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

    /// Attack: a file, or a `ConfigMap`, that fills the memory, the log or the metrics of whoever reads it.
    #[test]
    fn hostile_configuration_is_refused_before_it_costs_anything() {
        let listener = |name: &str, backends: &str| {
            format!(
                r#"{{"listeners":[{{"name":"{name}","address":"127.0.0.1:80","backends":[{backends}]}}]}}"#
            )
        };
        let many: Vec<String> = (0..=MOST_BACKENDS)
            .map(|number| format!(r#"{{"address":"10.0.{}.{}:80"}}"#, number / 250, number % 250))
            .collect();
        let long = "x".repeat(LONGEST_NAME + 1);
        for (text, want) in [
            (listener("a", &many.join(",")), "more than 16384 backends"),
            (listener(&long, ""), "invalid name"),
            (listener("", ""), "invalid name"),
            (listener("a\\nfake_metric 1\\n", ""), "invalid name \"a?fake_metric 1?\""),
            (listener("a", r#"{"address":"10.0.0.1:80","cluster":"x\ny"}"#), "invalid name \"x?y\""),
        ] {
            let error = Config::read(&text).and_then(|config| config.check()).unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
        // Aliases that double at every level: a few hundred bytes that would be many gigabytes.
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        bomb.push_str("listeners: []\n");
        let since = std::time::Instant::now();
        assert!(Config::read(&bomb).is_err());
        assert!(since.elapsed() < std::time::Duration::from_secs(5), "{:?}", since.elapsed());
        let deep = format!("{{\"listeners\": {}", "[".repeat(100_000));
        assert!(Config::read(&deep).is_err());
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

    #[test]
    fn a_program_may_write_fields_that_this_version_does_not_know() {
        let text = r#"{"version": 1, "hints": {}, "listeners": [{"name": "a", "address": "127.0.0.1:80", "mood": 3,
            "backends": [{"address": "10.0.0.1:80", "cluster": "paris", "since": "today"}]}]}"#;
        let config = Config::read(text).unwrap();
        assert_eq!(config.listeners[0].backends, [Backend::new("10.0.0.1:80".parse().unwrap(), "paris")]);
        let Err(ConfigError::Form(why)) = parse(text) else { panic!("taken") };
        for field in ["hints", "listeners.0.mood", "listeners.0.backends.0.since"] {
            assert!(why.contains(field), "{why}");
        }
    }

    #[test]
    fn another_version_is_refused_whatever_its_form() {
        for text in ["{version: 2, listeners: []}", "{version: 2, services: {}}"] {
            assert_eq!(Config::read(text), Err(ConfigError::Version(2)), "{text}");
            assert_eq!(parse(text), Err(ConfigError::Version(2)), "{text}");
        }
        let first = Config::read("listeners: []").unwrap();
        assert_eq!(first, Config::default(), "what was written before there were versions");
        assert_eq!(first.text(), r#"{"version":1,"listeners":[]}"#);
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let text = r#"{"version":1,"listeners":[{"name":"shop/web:80","protocol":"TCP","address":"192.0.2.1:80","interface":"eth0","algorithm":"LeastConnections","affinity":"10s","clusters":{"paris":{"weight":3,"tier":0}},"health":{"interval":"1500ms","port":9000},"ejection":false,"drain":"60s","seed":7,"proxyProtocol":true,"source":{"first":"10.0.0.1"},"limits":{"connections":10},"connectTimeout":"1s","idleTimeout":"2s","backends":[{"address":"10.1.0.1:8080","cluster":"paris","weight":2,"draining":true}]}]}"#;
        assert_eq!(Config::read(text).unwrap().text(), text);
    }
}
