//! Which notices become events: not what was told a moment ago, and no more than an API server should have to take. Time is an argument.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use super::Notice;

/// How many may be told at once.
const BURST: u32 = 50;
/// How soon there is room for one more: five in a second.
const EACH: Duration = Duration::from_millis(200);
/// For how long the same is not told again: two of our own programs may fight over an object.
const AGAIN: Duration = Duration::from_secs(30);
/// How many are remembered.
const MOST: usize = 256;

/// What was told lately, and how much more may be.
#[derive(Debug)]
pub(super) struct Budget {
    hasher: RandomState,
    told: BTreeMap<u64, Instant>,
    left: u32,
    counted: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Self {
        Self { hasher: RandomState::new(), told: BTreeMap::new(), left: BURST, counted: now }
    }

    /// Whether it may be told now.
    pub(super) fn lets(&mut self, notice: &Notice, now: Instant) -> bool {
        let new = now.saturating_duration_since(self.counted).as_millis() / EACH.as_millis();
        if new > 0 {
            self.left = self.left.saturating_add(u32::try_from(new).unwrap_or(BURST)).min(BURST);
            self.counted = now;
        }
        let print = self.hasher.hash_one((&notice.about, notice.reason, &notice.message));
        let old = |at: &Instant| now.saturating_duration_since(*at) >= AGAIN;
        if self.left == 0 || self.told.get(&print).is_some_and(|at| !old(at)) {
            return false;
        }
        if self.told.len() >= MOST {
            self.told.retain(|_, at| !old(at));
        }
        if self.told.len() < MOST {
            self.told.insert(print, now);
        }
        self.left -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::About;
    use super::*;

    fn notice(name: &str, message: &str) -> Notice {
        let about = About {
            api_version: "v1".into(),
            kind: "Service".into(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: None,
        };
        Notice { about, warning: true, reason: "Test", message: message.to_owned() }
    }

    #[test]
    fn the_same_is_not_told_twice_in_a_moment() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.lets(&notice("web", "a"), start));
        assert!(!budget.lets(&notice("web", "a"), start + Duration::from_secs(29)));
        assert!(budget.lets(&notice("web", "b"), start), "another message is another event");
        assert!(budget.lets(&notice("api", "a"), start), "another object is another event");
        assert!(budget.lets(&notice("web", "a"), start + Duration::from_secs(31)));
    }

    #[test]
    fn a_storm_becomes_a_burst_and_then_five_in_a_second() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        let told = |budget: &mut Budget, at: Instant| {
            (0..1000).filter(|n| budget.lets(&notice("web", &format!("{n} {at:?}")), at)).count()
        };
        assert_eq!(told(&mut budget, start), 50);
        assert_eq!(told(&mut budget, start), 0);
        assert_eq!(told(&mut budget, start + Duration::from_secs(1)), 5);
        assert_eq!(
            told(&mut budget, start + Duration::from_secs(3600)),
            50,
            "no more than a burst is saved up"
        );
        assert!(budget.told.len() <= MOST);
    }
}
