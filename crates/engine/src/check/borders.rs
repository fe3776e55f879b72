//! Whose an address is, by going through all members: what the planner's table must agree with.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::names::ClusterId;
use crate::network::{AddressRefused, Networks, Ranges, Use};
use crate::world::World;

/// May the member announce it? Said of what is in an address's own form; what is written inside others is the judge's alone.
pub(super) fn judge(world: &World, source: &ClusterId, address: IpAddr) -> Result<(), AddressRefused> {
    let address = address.to_canonical();
    let within = |ranges: &[IpNet]| longest(ranges, address).is_some();
    let none = Networks::default();
    let own = world.clusters.get(source).map_or(&none, |cluster| &*cluster.networks);
    if address.is_loopback() && !within(&own.endpoints) {
        return Err(AddressRefused::Loopback);
    }
    if address.is_unspecified() || address.is_multicast() {
        return Err(AddressRefused::Unspecified);
    }
    if within(&world.reserved.pool) {
        return Err(AddressRefused::OfABalancer);
    }
    let declared = [&own.declared.pods, &own.declared.nodes, &own.endpoints];
    let declared = declared.into_iter().filter_map(|ranges| longest(ranges, address)).max();
    let observed = [&own.observed.pods, &own.observed.nodes].into_iter().any(|ranges| within(ranges));
    if within(&world.reserved.hub)
        && declared.is_none_or(|bits| longest(&world.reserved.hub, address) > Some(bits))
    {
        return Err(AddressRefused::OfTheHub);
    }
    for (other, cluster) in world.clusters.iter().filter(|(other, _)| *other != source) {
        let theirs = &cluster.networks;
        let all =
            |of: &Ranges| [&of.pods, &of.nodes, &of.services, &of.api].map(|ranges| longest(ranges, address));
        let named = all(&theirs.declared).into_iter().chain([longest(&theirs.endpoints, address)]);
        let seen = all(&theirs.observed).into_iter().flatten().next().is_some();
        let elder = (theirs.since, other) < (own.since, source);
        let denied = match (named.flatten().max(), declared) {
            (Some(theirs), Some(ours)) => theirs > ours,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => seen && (elder || !observed),
        };
        if denied {
            return Err(AddressRefused::OfAnotherMember(Use::Pods));
        }
    }
    let learnt = [&own.learnt.pods, &own.learnt.nodes].into_iter().any(|ranges| within(ranges));
    if own.knows_pods() && declared.is_none() && !observed && !learnt {
        return Err(AddressRefused::OutsideDeclaredNetworks);
    }
    Ok(())
}

/// The length of the narrowest range that has the address.
fn longest(ranges: &[IpNet], address: IpAddr) -> Option<u8> {
    ranges.iter().filter(|range| range.contains(&address)).map(IpNet::prefix_len).max()
}
