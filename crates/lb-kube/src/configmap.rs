//! The `ConfigMap` of one service: what a balancer should do for it, the addresses that it was given, and whose it is.

use std::net::IpAddr;

use atoll_api::names::annotation::balancing::{ADDRESSES, OWNER};
use atoll_api::names::label;
use atoll_lb::config::{Config, ConfigError};
use atoll_lb::provider::Key;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

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

/// The service of a name, for people.
pub(crate) fn service(name: &str) -> String {
    name.strip_prefix("lb.").unwrap_or(name).replacen('.', "/", 1)
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

/// With what is published now.
pub(crate) fn with(mut map: ConfigMap, key: &Key, addresses: &[IpAddr], config: &Config) -> ConfigMap {
    map.metadata.name = Some(name(&key.namespace, &key.name));
    map.data = Some([(CONFIG.to_owned(), config.text())].into());
    let labels = map.metadata.labels.get_or_insert_default();
    labels.insert(label::BALANCER.to_owned(), label::BALANCER_BUILTIN.to_owned());
    let annotations = map.metadata.annotations.get_or_insert_default();
    annotations.insert(OWNER.to_owned(), key.uid.clone());
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    annotations.insert(ADDRESSES.to_owned(), addresses.join(","));
    map
}
