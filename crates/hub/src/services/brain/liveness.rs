//! Which members are silent, and whose lease has ended. No clock of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use atoll_engine::names::ClusterId;

/// The members that can't be reached.
#[derive(Debug)]
pub(super) struct Liveness {
    lease: Duration,
    silent: BTreeMap<ClusterId, Silent>,
}

#[derive(Debug)]
struct Silent {
    since: Instant,
    lost: bool,
    /// It is not asked any more: what it said before says nothing of now.
    unasked: bool,
}

impl Liveness {
    pub(super) fn new(lease: Duration) -> Self {
        Self { lease, silent: BTreeMap::new() }
    }

    /// It does not answer; true if that is news.
    pub(super) fn unreachable(&mut self, id: &ClusterId, since: Instant) -> bool {
        let news = !self.silent.contains_key(id);
        self.silent.entry(id.clone()).or_insert(Silent { since, lost: false, unasked: false });
        news
    }

    /// It can't be asked any more, until it is forgotten.
    pub(super) fn unasked(&mut self, id: &ClusterId, since: Instant) {
        self.silent.entry(id.clone()).or_insert(Silent { since, lost: false, unasked: true }).unasked = true;
    }

    /// It answers; says whether that is news, and whether it had been lost.
    pub(super) fn alive(&mut self, id: &ClusterId) -> (bool, bool) {
        if self.silent.get(id).is_some_and(|silent| silent.unasked) {
            return (false, false);
        }
        match self.silent.remove(id) {
            Some(silent) => (true, silent.lost),
            None => (false, false),
        }
    }

    /// Those whose lease has ended since the last call, and since when they are silent.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(ClusterId, Instant)> {
        let lease = self.lease;
        let ended = self.silent.iter_mut().filter(|(_, silent)| !silent.lost && now >= silent.since + lease);
        ended
            .map(|(id, silent)| {
                silent.lost = true;
                (id.clone(), silent.since)
            })
            .collect()
    }

    /// When the next lease ends.
    pub(super) fn next(&self) -> Option<Instant> {
        self.silent.values().filter(|silent| !silent.lost).map(|silent| silent.since + self.lease).min()
    }

    /// Whether it is known not to answer.
    pub(super) fn silent(&self, id: &ClusterId) -> bool {
        self.silent.contains_key(id)
    }

    /// Since when it does not answer.
    pub(super) fn since(&self, id: &ClusterId) -> Option<Instant> {
        self.silent.get(id).map(|silent| silent.since)
    }

    pub(super) fn forget(&mut self, id: &ClusterId) {
        self.silent.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_lost_once_it_was_silent_for_a_lease() {
        let (lease, start) = (Duration::from_secs(10), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let paris = ClusterId::parse("paris").unwrap();
        let mut liveness = Liveness::new(lease);
        assert!(liveness.unreachable(&paris, at(1)));
        assert!(!liveness.unreachable(&paris, at(5)), "the first silence counts");
        assert_eq!(liveness.next(), Some(at(11)));
        assert_eq!(liveness.due(at(10)), []);
        assert_eq!(liveness.due(at(11)), [(paris.clone(), at(1))]);
        assert_eq!(liveness.due(at(12)), [], "said once");
        assert_eq!(liveness.next(), None);
        assert_eq!(liveness.alive(&paris), (true, true));
        assert_eq!(liveness.alive(&paris), (false, false));
    }

    #[test]
    fn a_member_that_is_not_asked_is_lost_whatever_it_said_last() {
        let start = Instant::now();
        let paris = ClusterId::parse("paris").unwrap();
        let mut liveness = Liveness::new(Duration::from_secs(10));
        liveness.unasked(&paris, start);
        assert_eq!(liveness.alive(&paris), (false, false), "from before its task had stopped");
        assert_eq!(liveness.due(start + Duration::from_secs(10)), [(paris.clone(), start)]);
        liveness.forget(&paris);
        assert_eq!(liveness.next(), None);
    }

    #[test]
    fn a_member_that_answers_in_time_was_never_lost() {
        let start = Instant::now();
        let paris = ClusterId::parse("paris").unwrap();
        let mut liveness = Liveness::new(Duration::from_secs(10));
        liveness.unreachable(&paris, start);
        assert_eq!(liveness.alive(&paris), (true, false));
        assert_eq!(liveness.due(start + Duration::from_secs(60)), []);
    }
}
