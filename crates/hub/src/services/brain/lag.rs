//! How long the last changes took to arrive in each member: the median of a few, for whoever asks.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_engine::names::ClusterId;

/// So many are kept.
const LAST: usize = 31;

/// The last times of each member.
#[derive(Debug, Default)]
pub(super) struct Lag(BTreeMap<ClusterId, Ring>);

#[derive(Debug, Default)]
struct Ring {
    took: Vec<Duration>,
    next: usize,
}

impl Lag {
    /// A change has arrived.
    pub(super) fn took(&mut self, id: &ClusterId, took: Duration) {
        if !self.0.contains_key(id) {
            self.0.insert(id.clone(), Ring::default());
        }
        let Some(ring) = self.0.get_mut(id) else { return };
        match ring.took.get_mut(ring.next) {
            Some(slot) => *slot = took,
            None => ring.took.push(took),
        }
        ring.next = (ring.next + 1) % LAST;
    }

    /// The median.
    pub(super) fn of(&self, id: &ClusterId) -> Option<Duration> {
        let mut took = self.0.get(id)?.took.clone();
        took.sort();
        took.get(took.len() / 2).copied()
    }

    /// It is no member any more.
    pub(super) fn forget(&mut self, id: &ClusterId) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_the_last_ones() {
        let (id, mut lag) = (ClusterId::parse("paris").unwrap(), Lag::default());
        assert_eq!(lag.of(&id), None);
        (0..LAST).for_each(|_| lag.took(&id, Duration::from_secs(9)));
        (0..LAST as u64).for_each(|n| lag.took(&id, Duration::from_millis(n)));
        assert_eq!(lag.of(&id), Some(Duration::from_millis(15)));
    }
}
