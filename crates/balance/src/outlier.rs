//! A backend to which connections fail gets none for a while, longer each time.

use crate::Time;

/// When a backend is ejected, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ejection {
    /// So many failed connections in a row.
    pub failures: u32,
    /// For how long, the first time; twice as long each time after.
    pub shortest: Time,
    /// At most so long.
    pub longest: Time,
    /// At most this part of a pool at once, in percent: if most fail, the fault is elsewhere.
    pub most_percent: u8,
}

impl Default for Ejection {
    fn default() -> Self {
        Self { failures: 3, shortest: Time::from_secs(5), longest: Time::from_secs(60), most_percent: 50 }
    }
}

impl Ejection {
    /// How many of `backends` may be ejected at once.
    pub(crate) fn most(&self, backends: usize) -> usize {
        let most = backends * usize::from(self.most_percent.min(100)) / 100;
        most.max(usize::from(backends > 1))
    }
}

/// What is known of one backend from using it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Record {
    failures: u32,
    times: u32,
    /// When the last ejection ends or ended.
    end: Time,
    ejected: bool,
}

impl Record {
    /// Until when it is ejected.
    pub(crate) fn until(&self) -> Option<Time> {
        self.ejected.then_some(self.end)
    }

    pub(crate) fn passed(&mut self) {
        self.failures = 0;
    }

    /// Whether it fails at present, so that a connection that does not is news.
    pub(crate) fn doubted(&self) -> bool {
        self.failures > 0
    }

    /// A connection failed. True if that ejects the backend; `room` says whether one more may be.
    pub(crate) fn failed(&mut self, ejection: &Ejection, room: bool, now: Time) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.ejected || self.failures < ejection.failures || !room {
            return false;
        }
        // Whoever behaved for long starts anew.
        let times = if now > self.end + ejection.longest { 0 } else { self.times };
        let span = ejection.shortest.saturating_mul(1 << times.min(16)).min(ejection.longest);
        *self = Self { failures: 0, times: times + 1, end: now + span, ejected: true };
        true
    }

    /// True if its time is over now.
    pub(crate) fn readmit(&mut self, now: Time) -> bool {
        let over = self.ejected && self.end <= now;
        if over {
            self.ejected = false;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ejection_is_longer_until_it_behaves() {
        let (ejection, second) = (Ejection::default(), Time::from_secs);
        let mut record = Record::default();
        let mut now = second(100);
        for want in [5, 10, 20, 40, 60, 60] {
            assert!(!record.failed(&ejection, true, now) && !record.failed(&ejection, true, now));
            assert!(record.failed(&ejection, true, now));
            assert_eq!(record.until(), Some(now + second(want)));
            assert!(!record.readmit(now + second(want - 1)));
            now += second(want);
            assert!(record.readmit(now) && record.until().is_none());
        }
        now += second(61);
        for _ in 0..3 {
            record.failed(&ejection, true, now);
        }
        assert_eq!(record.until(), Some(now + second(5)));
    }

    #[test]
    fn one_good_connection_wipes_the_slate() {
        let (ejection, mut record) = (Ejection::default(), Record::default());
        for good in [false, false, true, false, false] {
            if good { record.passed() } else { assert!(!record.failed(&ejection, true, Time::ZERO)) }
        }
        assert!(record.doubted() && record.until().is_none());
    }

    #[test]
    fn at_least_one_of_several_can_go() {
        let ejection = Ejection { most_percent: 20, ..Ejection::default() };
        for (backends, want) in [(0, 0), (1, 0), (2, 1), (5, 1), (10, 2)] {
            assert_eq!(ejection.most(backends), want, "{backends}");
        }
    }
}
