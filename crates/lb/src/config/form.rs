//! What is written down, before anything is checked. Fields of newer versions are ignored when a program reads it; see [`super`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Not;
use std::time::Duration;

use atoll_balance::{Algorithm, Backend, ClusterShare};
use serde::{Deserialize, Deserializer, Serialize};

use super::{VERSION, span};
use crate::desired::Protocol;

/// What a balancer should do, as it is written: in a file, in the `ConfigMap` of a service, in a balancer's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Of this form; what was written before there was one has the first.
    #[serde(default = "first")]
    pub version: u32,
    /// Where it listens, and for whom.
    #[serde(deserialize_with = "listed")]
    pub listeners: Vec<ListenerConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self { version: VERSION, listeners: Vec::new() }
    }
}

/// One address and port, and who answers there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenerConfig {
    /// What it is called in metrics and logs.
    pub name: String,
    /// TCP or UDP.
    #[serde(default)]
    pub protocol: Protocol,
    /// Where clients come in.
    pub address: SocketAddr,
    /// The interface that its address is put on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// How a backend is picked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub algorithm: Algorithm,
    /// For how long a client comes back to the same backend.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Duration>,
    /// What each cluster gets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, ClusterShare>,
    /// How backends are checked; none if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthConfig>,
    /// Whether backends that fail connections are left out for a while.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub ejection: bool,
    /// How long a backend that is no longer listed may finish.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    pub drain: Option<Duration>,
    /// A number that balancers agree on.
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u64,
    /// Whether backends are told who the client is.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub proxy_protocol: bool,
    /// Who backends see, where the kernel carries connections.
    #[serde(default, skip_serializing_if = "is_default")]
    pub source: SourceConfig,
    /// What it may use up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: LimitsConfig,
    /// How long a backend may take to accept a connection.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Duration>,
    /// When a connection that carries nothing ends.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// Who takes connections.
    #[serde(default)]
    pub backends: Vec<Backend>,
}

impl ListenerConfig {
    /// One with nothing special.
    pub fn new(name: String, protocol: Protocol, address: SocketAddr) -> Self {
        Self {
            name,
            protocol,
            address,
            interface: None,
            algorithm: Algorithm::default(),
            affinity: None,
            clusters: BTreeMap::new(),
            health: None,
            ejection: true,
            drain: None,
            seed: 0,
            proxy_protocol: false,
            source: SourceConfig::default(),
            limits: LimitsConfig::default(),
            connect_timeout: None,
            idle_timeout: None,
            backends: Vec::new(),
        }
    }
}

/// Who backends see: this machine, the client (`keep`), or one of a range of addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceConfig {
    /// The client itself.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub keep: bool,
    /// The first address of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<IpAddr>,
    /// The last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<IpAddr>,
}

/// How backends are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthConfig {
    /// From one check to the next.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// A check that takes longer has failed.
    #[serde(default, with = "span", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// So many good ones in a row make it healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rise: Option<u32>,
    /// So many failed ones in a row make it unhealthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fall: Option<u32>,
    /// The port that is checked, if it is not the backend's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// What one listener may use up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsConfig {
    /// Connections at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
    /// The same from one address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_client: Option<usize>,
}

fn first() -> u32 {
    1
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_true(flag: &bool) -> bool {
    *flag
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// None is a mistake: a file that was cut off must not look like one without listeners.
fn listed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ListenerConfig>, D::Error> {
    let listeners = Option::deserialize(deserializer)?;
    listeners.ok_or_else(|| serde::de::Error::custom("`listeners` is missing; `listeners: []` is for none"))
}
