//! The `ConfigMap` of one service: what a balancer should do for it, the addresses that it was given, and whose it is.

use std::collections::BTreeMap;
use std::net::IpAddr;

use atoll_api::names::annotation::balancing::{ADDRESSES, OWNER, SHARE_WITH, TURNS};
use atoll_api::names::label;
use atoll_lb::config::{Config, ConfigError};
use atoll_lb::provider::Key;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use crate::sharing::Sharing;

/// The key of the configuration.
const CONFIG: &str = "lb.json";

/// The `ConfigMaps` of all services.
pub(crate) fn selector() -> String {
    format!("{}={}", label::BALANCER, label::BALANCER_BUILTIN)
}

/// The name of a service's.
pub(crate) fn name(namespace: &str, service: &str) -> String {
    // No name of a namespace or a service has a dot.
    format!("lb.{namespace}.{service}")
}

/// The namespace and the name of the service that a `ConfigMap` of this name is for. One that we would not give is for no service.
pub(crate) fn service(name: &str) -> (&str, &str) {
    name.strip_prefix("lb.").and_then(|rest| rest.split_once('.')).unwrap_or(("", name))
}

/// Whom the service lets share its addresses.
pub(crate) fn sharing(map: &ConfigMap) -> Sharing {
    Sharing::parse(map.annotations().get(SHARE_WITH).map(String::as_str).unwrap_or_default()).0
}

/// Its place among those that have each of its addresses. What was given before there were places is without.
pub(crate) fn turns(map: &ConfigMap) -> BTreeMap<IpAddr, u64> {
    let text = map.annotations().get(TURNS).map(String::as_str).unwrap_or_default();
    let each = text.split(',').filter_map(|one| one.split_once('='));
    each.filter_map(|(address, turn)| Some((address.parse().ok()?, turn.parse().ok()?))).collect()
}

/// Whether it is one of them.
pub(crate) fn is_ours(map: &ConfigMap) -> bool {
    map.labels().get(label::BALANCER).map(String::as_str) == Some(label::BALANCER_BUILTIN)
}

/// The uid of the `MultiClusterService` that it is for.
pub(crate) fn owner(map: &ConfigMap) -> Option<&str> {
    map.annotations().get(OWNER).map(String::as_str)
}

/// The addresses that the service has.
pub(crate) fn addresses(map: &ConfigMap) -> Vec<IpAddr> {
    parse_addresses(map.annotations().get(ADDRESSES).map(String::as_str).unwrap_or_default())
}

/// The addresses of a list with commas in between; what is no address is left out, as the hub says on the service.
pub(crate) fn parse_addresses(text: &str) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for address in text.split(',').filter_map(|one| one.trim().parse().ok()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// What it says, as text.
pub(crate) fn text(map: &ConfigMap) -> &str {
    map.data.as_ref().and_then(|data| data.get(CONFIG)).map(String::as_str).unwrap_or_default()
}

/// What a balancer should do for the service.
pub(crate) fn config(map: &ConfigMap) -> Result<Config, ConfigError> {
    Config::read(text(map))
}

/// What a service is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// Its addresses, in order.
    pub(crate) addresses: Vec<IpAddr>,
    /// Its place among those that have each of them.
    pub(crate) turns: BTreeMap<IpAddr, u64>,
    /// Whom it lets share them.
    pub(crate) sharing: Sharing,
}

/// With what is published now.
pub(crate) fn with(mut map: ConfigMap, key: &Key, given: &Given, config: &Config) -> ConfigMap {
    map.metadata.name = Some(name(&key.namespace, &key.name));
    let labels = map.metadata.labels.get_or_insert_default();
    labels.insert(label::BALANCER.to_owned(), label::BALANCER_BUILTIN.to_owned());
    let annotations = map.metadata.annotations.get_or_insert_default();
    annotations.insert(OWNER.to_owned(), key.uid.clone());
    match given.sharing.text() {
        text if text.is_empty() => drop(annotations.remove(SHARE_WITH)),
        text => drop(annotations.insert(SHARE_WITH.to_owned(), text)),
    }
    said(map, &given.addresses, &given.turns, config)
}

/// Without these addresses, and what was published for them.
pub(crate) fn without(map: ConfigMap, lost: &[IpAddr]) -> Result<ConfigMap, ConfigError> {
    let mut published = match config(&map) {
        Err(error @ ConfigError::Version(_)) => return Err(error),
        other => other.unwrap_or_default(),
    };
    published.listeners.retain(|listener| !lost.contains(&listener.address.ip()));
    let (mut kept, mut turns) = (addresses(&map), turns(&map));
    kept.retain(|address| !lost.contains(address));
    turns.retain(|address, _| !lost.contains(address));
    Ok(said(map, &kept, &turns, &published))
}

fn said(
    mut map: ConfigMap,
    addresses: &[IpAddr],
    turns: &BTreeMap<IpAddr, u64>,
    config: &Config,
) -> ConfigMap {
    map.data = Some([(CONFIG.to_owned(), config.text())].into());
    let annotations = map.metadata.annotations.get_or_insert_default();
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    annotations.insert(ADDRESSES.to_owned(), addresses.join(","));
    let turns: Vec<String> = turns.iter().map(|(address, turn)| format!("{address}={turn}")).collect();
    annotations.insert(TURNS.to_owned(), turns.join(","));
    map
}
