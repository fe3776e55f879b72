//! Whose an address is: an endpoint of a service, in a range of a member, the hub's, a load balancer's, or of no use to any client.

use std::net::IpAddr;

use atoll_api::explain::{AddressExplanation, EndpointOf, Header, RangeOf, Remark};
use atoll_api::names::code::Code;
use atoll_api::names::kind::explain as names;
use atoll_engine::network::always_refused;
use atoll_engine::network::territory::{Held, Holder};
use atoll_engine::reason::text;

use super::known::{Known, sentence};

/// Endpoints that are listed, at most.
const MOST: usize = 50;
/// Addresses that are compared, at most: the hub knows no index of them, since it would cost something with every change.
const COMPARED: usize = 1_000_000;

/// Whose an address is.
pub(super) fn explain(known: &Known<'_>, address: IpAddr) -> AddressExplanation {
    let address = address.to_canonical();
    let held: Vec<Held> = known.world().territory.holders(address).collect();
    let (endpoints, more) = endpoints(known, address);
    let verdict = verdict(known, address, &held, &endpoints);
    AddressExplanation {
        header: Header::new(names::ADDRESS_EXPLANATION, None, &address.to_string()),
        verdict,
        ranges: held.iter().map(range).collect(),
        endpoints,
        more,
    }
}

fn endpoints(known: &Known<'_>, address: IpAddr) -> (Vec<EndpointOf>, bool) {
    let (mut found, mut compared) = (Vec::new(), 0);
    for (key, holdings) in &known.world().services {
        for (cluster, holding) in holdings {
            for (name, slice) in &holding.slices {
                for endpoint in &slice.endpoints {
                    compared += endpoint.addresses.len();
                    if compared > COMPARED || found.len() >= MOST {
                        return (found, true);
                    }
                    if endpoint.addresses.iter().any(|its| its.to_canonical() == address) {
                        found.push(EndpointOf {
                            service: key.to_string(),
                            cluster: cluster.to_string(),
                            slice: name.to_string(),
                            ready: endpoint.conditions.is_ready(),
                        });
                    }
                }
            }
        }
    }
    (found, false)
}

fn range(held: &Held) -> RangeOf {
    let (cluster, used_for) = match &held.holder {
        Holder::Member(id, used_for) => (Some(id.to_string()), used_for.as_str()),
        Holder::Hub => (None, "hub"),
        Holder::Pool => (None, "pool"),
    };
    RangeOf {
        range: held.range.to_string(),
        cluster,
        used_for: used_for.to_owned(),
        known: held.known.to_owned(),
    }
}

fn verdict(known: &Known<'_>, address: IpAddr, held: &[Held], endpoints: &[EndpointOf]) -> Remark {
    // A range that the operator declares is taken at their word.
    let declared = held.iter().any(|held| held.known == "declared");
    if let Some(why) = always_refused(address).filter(|_| !declared) {
        let message = format!("{address} is {}; no cluster may announce it", text::address_refused(why));
        return Remark::new(Code::AlwaysRefused, sentence(&message));
    }
    if let Some(service) = known.balancers.at(address) {
        return Remark::new(
            Code::OwnedByPool,
            format!("{address} is the address of the load balancer of {service}."),
        );
    }
    if let Some(first) = endpoints.first() {
        let ready = if first.ready { "ready" } else { "not ready" };
        let others = endpoints.len().saturating_sub(1);
        let others =
            if others > 0 { format!(", and {others} more endpoints have it") } else { String::new() };
        let message = format!(
            "{address} is an endpoint of {} in {}, {ready}; EndpointSlice {}{others}.",
            first.service, first.cluster, first.slice
        );
        return Remark::new(Code::EndpointAddress, message);
    }
    // The narrowest range says most.
    let narrowest = held.iter().max_by_key(|held| (held.holder == Holder::Pool, held.range.prefix_len()));
    match narrowest {
        Some(Held { holder: Holder::Member(id, used_for), range, known }) => {
            let used_for = match used_for {
                atoll_engine::network::Use::Pods | atoll_engine::network::Use::Endpoints => "pods",
                atoll_engine::network::Use::Nodes => "nodes",
                atoll_engine::network::Use::Services => "Services (ClusterIPs)",
                atoll_engine::network::Use::Api => "the API",
            };
            let message = format!(
                "{address} is in {range}, the range of {used_for} of {id} ({known}). No endpoint of a shared service has it."
            );
            Remark::new(Code::OwnedByMember, message)
        }
        Some(Held { holder: Holder::Hub, .. }) => {
            Remark::new(Code::OwnedByHub, format!("{address} is an address of the hub's host."))
        }
        Some(Held { holder: Holder::Pool, range, .. }) => {
            let message =
                format!("{address} is in {range}, the pool of load balancers. None has it at present.");
            Remark::new(Code::OwnedByPool, message)
        }
        None => Remark::new(Code::NotKnown, format!("No member is known to have {address}.")),
    }
}
