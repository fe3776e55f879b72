//! One service out of several exports: the union of their ports, the families they share, and for the rest the word of the
//! one that comes first. It depends on no endpoint, and is kept until an export changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use litemap::LiteMap;

use super::exported::{self, Kind};
use super::families::{self, Families};
use super::ports::{self, PortFates, Ports};
use crate::facts::{Locality, Pairs};
use crate::memory::Offer;
use crate::names::ClusterId;
use crate::network::Family;
use crate::plan::ImportSpec;
use crate::reason::reach::MOST_NAMED;
use crate::reason::{Conflict, Disputed, KeyRefused};

/// What the exports come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// What was merged, in order of precedence.
    pub exports: Vec<(ClusterId, Arc<Offer>)>,
    /// The same, as the import shows it.
    pub clusters: Arc<[ClusterId]>,
    /// What every importer gets.
    pub spec: Arc<ImportSpec>,
    /// The service's families.
    pub families: Vec<Family>,
    /// Its locality, if the winner has one.
    pub locality: Option<Locality>,
    /// What becomes of each cluster's ports.
    pub fates: LiteMap<ClusterId, PortFates>,
    /// What the exports disagree on.
    pub conflicts: Arc<[Conflict]>,
    /// By cluster, what does not travel.
    pub refused_keys: BTreeMap<ClusterId, Vec<KeyRefused>>,
}

/// Merges exports given in order of precedence; nothing comes of nothing.
pub fn merge(exports: Vec<(ClusterId, Arc<Offer>)>) -> Option<Merged> {
    let (winner, first) = exports.first()?;
    let mut refused_keys = BTreeMap::new();
    let mut sifted: Vec<(Pairs, Pairs)> = Vec::new();
    for (cluster, offer) in &exports {
        let (labels, mut refused) = exported::sift(&offer.labels, Kind::Label);
        let (annotations, more) = exported::sift(&offer.annotations, Kind::Annotation);
        refused.extend(more);
        if !refused.is_empty() {
            refused_keys.insert(cluster.clone(), refused);
        }
        sifted.push((labels, annotations));
    }

    let mut conflicts = Vec::new();
    let mut dispute = |about: Disputed, those: Vec<usize>| {
        if !those.is_empty() {
            let who = those.iter().take(MOST_NAMED).filter_map(|at| exports.get(*at));
            let who = who.map(|(cluster, _)| cluster.clone()).collect();
            let (winner, disagree) = (winner.clone(), those.len());
            conflicts.push(Conflict { about, winner, disagree, of: exports.len(), who });
        }
    };
    let others = |differs: &dyn Fn(&Offer) -> bool| -> Vec<usize> {
        let those = exports.iter().enumerate().filter(|(_, (_, offer))| differs(offer));
        those.map(|(at, _)| at).collect()
    };

    let Ports { union, fates, disagree } = ports::merge(&exports);
    dispute(Disputed::Ports, disagree);
    let headless = first.headless;
    dispute(Disputed::Type { headless }, others(&|o| o.headless != headless));
    let affinity = first.session_affinity;
    dispute(Disputed::SessionAffinity(affinity), others(&|o| o.session_affinity != affinity));
    // Only among those who agree on the affinity: for the others the timeout is not the point.
    let timeout = first.client_ip_timeout;
    let differs = |o: &Offer| o.session_affinity == affinity && o.client_ip_timeout != timeout;
    dispute(Disputed::SessionAffinityConfig(timeout), others(&differs));
    let differing = |differs: &dyn Fn(&(Pairs, Pairs)) -> bool| -> Vec<usize> {
        sifted.iter().enumerate().filter(|(_, pairs)| differs(pairs)).map(|(at, _)| at).collect()
    };
    dispute(Disputed::Labels, differing(&|(labels, _)| *labels != sifted[0].0));
    dispute(Disputed::Annotations, differing(&|(_, annotations)| *annotations != sifted[0].1));
    let policy = first.internal_traffic_policy;
    dispute(Disputed::InternalTrafficPolicy(policy), others(&|o| o.internal_traffic_policy != policy));
    let distribution = first.traffic_distribution;
    dispute(Disputed::TrafficDistribution(distribution), others(&|o| o.traffic_distribution != distribution));
    let Families { used, disagree } =
        families::merge(exports.iter().map(|(_, offer)| offer.families.as_slice()));
    dispute(Disputed::IpFamilies(used.clone()), disagree);

    let locality = first.locality;
    let (labels, annotations) = sifted.swap_remove(0);
    Some(Merged {
        clusters: exports.iter().map(|(cluster, _)| cluster.clone()).collect(),
        spec: Arc::new(ImportSpec {
            headless,
            ports: union,
            session_affinity: affinity,
            client_ip_timeout: timeout,
            internal_traffic_policy: policy,
            traffic_distribution: distribution,
            labels,
            annotations,
        }),
        families: used,
        locality,
        fates,
        conflicts: conflicts.into(),
        refused_keys,
        exports,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{InternalTrafficPolicy, SessionAffinity, TrafficDistribution};
    use crate::fixture::{id, ports};

    fn conflicts(offers: Vec<Offer>) -> Vec<(&'static str, usize, usize)> {
        let name = |n: usize| id(&format!("c{n}"));
        let exports = offers.into_iter().enumerate().map(|(n, offer)| (name(n), Arc::new(offer))).collect();
        let merged = merge(exports).unwrap();
        assert!(merged.conflicts.iter().all(|c| c.winner == id("c0")));
        merged.conflicts.iter().map(|c| (c.about.as_str(), c.disagree, c.of)).collect()
    }

    fn base() -> Offer {
        Offer { ports: ports("http:80"), families: vec![Family::V4], ..Offer::default() }
    }

    #[test]
    fn each_field_has_its_own_conflict() {
        let pairs = || Pairs::from([("team".into(), "shop".into())]);
        let sticky = |timeout| Offer {
            session_affinity: SessionAffinity::ClientIp,
            client_ip_timeout: Some(timeout),
            ..base()
        };
        for (offers, want) in [
            (vec![base(), base()], None),
            (vec![base(), Offer { ports: ports("http:81"), ..base() }], Some("PortConflict")),
            (vec![base(), Offer { headless: true, ..base() }], Some("TypeConflict")),
            (vec![base(), sticky(10)], Some("SessionAffinityConflict")),
            (vec![sticky(10), sticky(20)], Some("SessionAffinityConfigConflict")),
            (vec![base(), Offer { labels: pairs(), ..base() }], Some("LabelsConflict")),
            (vec![base(), Offer { annotations: pairs(), ..base() }], Some("AnnotationsConflict")),
            (
                vec![base(), Offer { internal_traffic_policy: InternalTrafficPolicy::Local, ..base() }],
                Some("InternalTrafficPolicyConflict"),
            ),
            (
                vec![
                    base(),
                    Offer { traffic_distribution: Some(TrafficDistribution::PreferClose), ..base() },
                ],
                Some("TrafficDistributionConflict"),
            ),
            (vec![base(), Offer { families: vec![Family::V6], ..base() }], Some("IPFamilyConflict")),
        ] {
            let want: Vec<_> = want.into_iter().map(|reason| (reason, 1, 2)).collect();
            assert_eq!(conflicts(offers.clone()), want, "{offers:?}");
        }
    }

    #[test]
    fn several_conflicts_stand_side_by_side_and_count_who_disagrees() {
        let other = Offer { headless: true, ports: ports("http:81"), ..base() };
        let got = conflicts(vec![base(), other.clone(), base(), other, base()]);
        assert_eq!(got, [("PortConflict", 2, 5), ("TypeConflict", 2, 5)]);
    }

    #[test]
    fn a_reserved_key_makes_no_conflict() {
        let reserved = Pairs::from([("k8s.io/x".into(), "y".into())]);
        assert_eq!(conflicts(vec![base(), Offer { labels: reserved, ..base() }]), []);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(merge(Vec::new()), None);
    }
}
