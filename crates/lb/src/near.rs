//! Clusters that a balancer prefers because it is near them.

use atoll_balance::ClusterShare;

use crate::desired::Desired;

impl Desired {
    /// Prefers clusters in this order; those that are not named come last. A listener that has tiers of its own keeps them.
    pub fn prefer(&mut self, near: &[String]) {
        if near.is_empty() {
            return;
        }
        for listener in &mut self.listeners {
            let shares = &mut listener.settings.clusters;
            if shares.values().any(|share| share.tier > 0) {
                continue;
            }
            for backend in &listener.backends {
                let place = near.iter().position(|name| **name == *backend.cluster);
                let tier = u32::try_from(place.unwrap_or(near.len())).unwrap_or(u32::MAX);
                let same = ClusterShare { weight: None, tier: 0 };
                shares.entry(backend.cluster.clone()).or_insert(same).tier = tier;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use atoll_balance::{Backend, Level, Pool};
    use std::time::Duration;

    use super::*;
    use crate::desired::{Listener, Protocol};

    fn wanted() -> Desired {
        let backend = |number: u8, cluster| Backend::new(([10, 0, 0, number], 80).into(), cluster);
        let backends =
            vec![backend(1, "paris"), backend(2, "tokyo"), backend(3, "tokyo"), backend(4, "lima")];
        let listener = Listener::new("web", Protocol::Tcp, ([192, 0, 2, 1], 80).into(), backends);
        Desired { listeners: vec![listener] }
    }

    fn near(clusters: &[&str]) -> Vec<String> {
        clusters.iter().map(ToString::to_string).collect()
    }

    fn picked(wanted: &Desired, gone: &[&str]) -> (Level, Vec<String>) {
        let listener = &wanted.listeners[0];
        let there = listener.backends.iter().filter(|backend| !gone.contains(&&*backend.cluster));
        let mut pool = Pool::default();
        pool.configure(listener.settings.clone(), there.cloned().collect(), Duration::ZERO);
        let picture = pool.picture();
        (picture.level(), picture.candidates().iter().map(|one| one.address.to_string()).collect())
    }

    #[test]
    fn the_nearest_that_has_somebody_answers() {
        let mut wanted = wanted();
        assert_eq!(picked(&wanted, &[]).1.len(), 4);
        wanted.prefer(&near(&["tokyo", "paris"]));
        for (gone, level, want) in [
            (&[][..], 0, vec!["10.0.0.2:80", "10.0.0.3:80"]),
            (&["tokyo"][..], 1, vec!["10.0.0.1:80"]),
            (&["tokyo", "paris"][..], 2, vec!["10.0.0.4:80"]),
        ] {
            assert_eq!(
                picked(&wanted, gone),
                (Level::Tier(level), want.iter().map(ToString::to_string).collect())
            );
        }
    }

    #[test]
    fn tiers_and_weights_of_the_service_stay() {
        let mut plain = wanted();
        let share = ClusterShare { weight: Some(3), tier: 0 };
        plain.listeners[0].settings.clusters.insert("tokyo".into(), share);
        plain.prefer(&near(&["paris"]));
        assert_eq!(plain.listeners[0].settings.clusters["tokyo"], ClusterShare { weight: Some(3), tier: 1 });

        let mut tiered = wanted();
        tiered.listeners[0].settings.clusters.insert("paris".into(), ClusterShare { weight: None, tier: 5 });
        let before = tiered.clone();
        tiered.prefer(&near(&["paris"]));
        assert_eq!(tiered, before);
        tiered.prefer(&[]);
        assert_eq!(tiered, before);
    }
}
