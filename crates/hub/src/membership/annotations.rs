//! What an operator says of a member's networks, read off its `Cluster`.

use std::collections::BTreeMap;

use atoll_api::names::annotation::network;
use atoll_engine::network::Networks;

use crate::membership::networks::{BadRange, Ranges};

/// The ranges in one annotation; none if it is absent.
pub(crate) fn ranges(of: &BTreeMap<String, String>, key: &str) -> Result<Ranges, BadRange> {
    of.get(key).map_or_else(|| Ok(Ranges::default()), |text| text.parse())
}

/// Where the member's endpoints may be, by the operator's word.
pub(crate) fn declared(of: &BTreeMap<String, String>) -> Result<Networks, BadRange> {
    Ok(Networks {
        declared: ranges(of, network::ENDPOINTS)?.cidrs(),
        pods: ranges(of, network::PODS)?.cidrs(),
        ..Networks::default()
    })
}
