//! Who says otherwise, where exports disagree: read off what was merged, for whoever asks.

use super::exported::{self, Kind};
use super::merge::Merged;
use super::ports;
use crate::memory::Offer;
use crate::names::ClusterId;
use crate::reason::Disputed;

/// The clusters whose exports differ from the first one's in this.
pub fn dissenters<'a>(merged: &'a Merged, about: &Disputed) -> Vec<&'a ClusterId> {
    let Some((_, first)) = merged.exports.first() else { return Vec::new() };
    let others = merged.exports.iter().filter(|(_, offer)| differs(merged, first, offer, about));
    others.map(|(id, _)| id).collect()
}

fn differs(merged: &Merged, first: &Offer, offer: &Offer, about: &Disputed) -> bool {
    match about {
        Disputed::Ports => !ports::same_set(&first.ports, &offer.ports),
        Disputed::Type { headless } => offer.headless != *headless,
        Disputed::SessionAffinity(affinity) => offer.session_affinity != *affinity,
        Disputed::SessionAffinityConfig(timeout) => {
            offer.session_affinity == first.session_affinity && offer.client_ip_timeout != *timeout
        }
        Disputed::Labels => {
            exported::sift(&offer.labels, Kind::Label).0 != exported::sift(&first.labels, Kind::Label).0
        }
        Disputed::Annotations => {
            exported::sift(&offer.annotations, Kind::Annotation).0
                != exported::sift(&first.annotations, Kind::Annotation).0
        }
        Disputed::InternalTrafficPolicy(policy) => offer.internal_traffic_policy != *policy,
        Disputed::TrafficDistribution(distribution) => offer.traffic_distribution != *distribution,
        Disputed::IpFamilies(_) => {
            !offer.families.is_empty()
                && merged.families.iter().any(|family| !offer.families.contains(family))
        }
    }
}
