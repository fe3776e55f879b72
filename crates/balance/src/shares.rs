//! From shares of clusters and weights of backends to one weight for each.

use std::collections::BTreeMap;

use crate::backend::{Backend, Settings};

/// The heaviest gets this; more digits would not show in a table.
const HEAVIEST: u128 = 1 << 20;

/// The weight of each of `backends`, in their order. Those that share nothing share alike.
pub(crate) fn weights(settings: &Settings, backends: &[&Backend]) -> Vec<u32> {
    let by_cluster = settings.clusters.values().any(|share| share.weight.is_some());
    let mut sums: BTreeMap<&str, u128> = BTreeMap::new();
    for backend in backends {
        *sums.entry(&backend.cluster).or_default() += u128::from(backend.weight);
    }
    let raw: Vec<u128> = backends
        .iter()
        .map(|backend| {
            let own = u128::from(backend.weight);
            if !by_cluster || own == 0 {
                return own << 32;
            }
            // Shifted, so that a small part of a crowded cluster is still something.
            ((own * u128::from(cluster_weight(settings, &backend.cluster))) << 32) / sums[&*backend.cluster]
        })
        .collect();
    let heaviest = raw.iter().copied().max().unwrap_or(0);
    if heaviest == 0 {
        return vec![1; backends.len()];
    }
    raw.into_iter()
        .map(|weight| match weight {
            0 => 0,
            _ => u32::try_from(weight * HEAVIEST / heaviest).unwrap_or(u32::MAX).max(1),
        })
        .collect()
}

/// The share of a cluster beside others.
pub(crate) fn cluster_weight(settings: &Settings, cluster: &str) -> u32 {
    settings.clusters.get(cluster).and_then(|share| share.weight).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClusterShare;

    fn shares(clusters: &[(&str, Option<u32>)], backends: &[(&str, u32)]) -> Vec<f64> {
        let clusters =
            clusters.iter().map(|(name, weight)| ((*name).into(), ClusterShare { weight: *weight, tier: 0 }));
        let settings = Settings { clusters: clusters.collect(), ..Settings::default() };
        let backends: Vec<Backend> = backends
            .iter()
            .map(|(cluster, weight)| Backend {
                weight: *weight,
                ..Backend::new("10.0.0.1:80".parse().unwrap(), cluster)
            })
            .collect();
        let weights = weights(&settings, &backends.iter().collect::<Vec<_>>());
        let sum: f64 = weights.iter().copied().map(f64::from).sum();
        weights.into_iter().map(|weight| (f64::from(weight) / sum * 100.0).round()).collect()
    }

    #[test]
    fn a_cluster_gets_its_share_however_many_it_has() {
        let three = [("paris", 1), ("paris", 1), ("tokyo", 1)];
        assert_eq!(shares(&[], &[("paris", 1), ("paris", 1), ("tokyo", 2)]), [25.0, 25.0, 50.0]);
        assert_eq!(shares(&[("paris", Some(1)), ("tokyo", Some(1))], &three), [25.0, 25.0, 50.0]);
        assert_eq!(shares(&[("paris", Some(4))], &three), [40.0, 40.0, 20.0]);
        assert_eq!(
            shares(&[("paris", Some(3)), ("tokyo", Some(1))], &[("paris", 2), ("paris", 1), ("tokyo", 9)]),
            [50.0, 25.0, 25.0]
        );
        assert_eq!(shares(&[("paris", Some(0)), ("tokyo", Some(7))], &three), [0.0, 0.0, 100.0]);
        assert_eq!(shares(&[("paris", Some(0))], &[("paris", 1), ("paris", 1)]), [50.0, 50.0]);
    }
}
