//! What happens when: the gaps between changes, who goes first in a round, and the order of the scenarios. No clock,
//! no chance: the same seed gives the same run.

use std::time::Duration;

use crate::options::{Options, Scenario, Who};

/// Pauses between changes, long enough for everything to come to rest and without a beat of their own.
#[derive(Debug, Clone)]
pub struct Gaps {
    state: u64,
}

impl Gaps {
    /// The gaps of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }
}

impl Iterator for Gaps {
    type Item = Duration;

    /// 100 to 300 ms, by `SplitMix64`.
    fn next(&mut self) -> Option<Duration> {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        Some(Duration::from_millis(100 + mixed % 201))
    }
}

/// The order of a round: each goes first equally often.
pub fn order(subjects: &[Who], round: usize) -> Vec<Who> {
    let mut order = subjects.to_vec();
    if !order.is_empty() {
        order.rotate_left(round % subjects.len());
    }
    order
}

/// A part of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Single changes, with so many services of ours there.
    Sequential {
        /// How many.
        services: usize,
        /// Which scenario it is.
        scenario: Scenario,
    },
    /// So many services from nothing.
    Cold(usize),
    /// So many slices changed at once.
    Burst(usize),
    /// The hub is restarted, with so many services there.
    Restart(usize),
}

/// The services that single changes go round in.
pub const ROUND: usize = 8;

/// The run's parts: small before large, so that what is there grows and little has to be deleted.
pub fn steps(options: &Options) -> Vec<Step> {
    let wanted = |scenario| options.scenarios.contains(&scenario);
    let mut steps = Vec::new();
    if wanted(Scenario::Idle) {
        steps.push(Step::Sequential { services: ROUND, scenario: Scenario::Idle });
    }
    let sorted = |sizes: &[usize]| {
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        sizes
    };
    if wanted(Scenario::Cold) {
        steps.extend(sorted(&options.colds).into_iter().map(Step::Cold));
    }
    if wanted(Scenario::Burst) {
        steps.extend(sorted(&options.bursts).into_iter().map(Step::Burst));
    }
    if wanted(Scenario::Loaded) {
        steps.push(Step::Sequential { services: options.loaded.max(ROUND), scenario: Scenario::Loaded });
    }
    if wanted(Scenario::Asked) {
        steps.push(Step::Sequential { services: options.loaded.max(ROUND), scenario: Scenario::Asked });
    }
    if wanted(Scenario::Restart) {
        steps.push(Step::Restart(options.restart_services.max(ROUND)));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repeat_with_their_seed_and_stay_in_range() {
        let [a, b, other]: [Vec<_>; 3] = [7, 7, 8].map(|seed| Gaps::new(seed).take(500).collect());
        assert_eq!(a, b);
        assert_ne!(a, other);
        let (low, high) = (Duration::from_millis(100), Duration::from_millis(300));
        assert!(a.iter().all(|gap| (low..=high).contains(gap)));
        let sum: Duration = a.iter().sum();
        assert!((190..=210).contains(&(sum.as_millis() / 500)), "{sum:?}");
    }

    #[test]
    fn everybody_goes_first_equally_often() {
        let subjects = [Who::Ours, Who::Floor, Who::Copier];
        let first: Vec<_> = (0..6).map(|round| order(&subjects, round)[0]).collect();
        assert_eq!(first, [subjects, subjects].concat());
        assert!(order(&[], 3).is_empty());
    }

    #[test]
    fn a_run_goes_from_small_to_large() {
        let options = Options { bursts: vec![1000, 200], colds: vec![1000, 200], ..Options::default() };
        assert_eq!(
            steps(&options),
            [
                Step::Sequential { services: ROUND, scenario: Scenario::Idle },
                Step::Cold(200),
                Step::Cold(1000),
                Step::Burst(200),
                Step::Burst(1000),
                Step::Sequential { services: 1400, scenario: Scenario::Loaded },
                Step::Restart(200),
            ]
        );
        let only = Options { scenarios: vec![Scenario::Burst], bursts: vec![5], ..Options::default() };
        assert_eq!(steps(&only), [Step::Burst(5)]);
    }
}
