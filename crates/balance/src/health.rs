//! Active checks: how many in a row it takes to change one's mind, and when the next is due.

use crate::Time;

/// How backends are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// From one check to the next.
    pub interval: Time,
    /// A check that takes longer has failed.
    pub timeout: Time,
    /// So many good ones in a row make an unhealthy backend healthy.
    pub rise: u32,
    /// So many bad ones in a row make a healthy backend unhealthy.
    pub fall: u32,
}

impl Default for Checks {
    /// A lost backend is noticed within a second and a half.
    fn default() -> Self {
        Self { interval: Time::from_millis(500), timeout: Time::from_millis(500), rise: 2, fall: 2 }
    }
}

/// What the checks say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Not checked yet: used, because whoever listed it thought it ready.
    #[default]
    Unknown,
    /// It answers.
    Healthy,
    /// It does not.
    Unhealthy,
}

/// What is known of one backend from checking it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Health {
    pub(crate) verdict: Verdict,
    against: u32,
    /// When the next check begins; none while one is under way.
    next: Option<Time>,
}

impl Health {
    /// To be checked for the first time at `at`.
    pub(crate) fn new(at: Time) -> Self {
        Self { next: Some(at), ..Self::default() }
    }

    /// When the next check begins.
    pub(crate) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Begins a check, if it is time.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        let due = self.next.is_some_and(|at| at <= now);
        if due {
            self.next = None;
        }
        due
    }

    /// A check has ended that says nothing.
    pub(crate) fn put_off(&mut self, checks: Checks, now: Time) {
        self.next = Some(now + checks.interval);
    }

    /// A check has ended. True if that changed the verdict.
    pub(crate) fn observe(&mut self, good: bool, checks: Checks, now: Time) -> bool {
        self.next = Some(now + checks.interval);
        let (agrees, needed, other) = match self.verdict {
            // The first good check settles it; a bad one counts like for a healthy backend.
            Verdict::Unknown if good => (false, 1, Verdict::Healthy),
            Verdict::Unknown => (false, checks.fall, Verdict::Unhealthy),
            Verdict::Healthy => (good, checks.fall, Verdict::Unhealthy),
            Verdict::Unhealthy => (!good, checks.rise, Verdict::Healthy),
        };
        if agrees {
            self.against = 0;
            return false;
        }
        self.against += 1;
        if self.against < needed {
            return false;
        }
        *self = Self { verdict: other, against: 0, next: self.next };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Healthy, Unhealthy, Unknown};
    use super::*;

    #[test]
    fn it_takes_several_in_a_row_to_change_the_verdict() {
        let checks = Checks { rise: 2, fall: 3, ..Checks::default() };
        for (story, want) in [
            ("", Unknown),
            ("+", Healthy),
            ("--", Unknown),
            ("---", Unhealthy),
            ("--+", Healthy),
            ("+--+--", Healthy),
            ("+---", Unhealthy),
            ("+---+-+", Unhealthy),
            ("+---++", Healthy),
        ] {
            let mut health = Health::default();
            for check in story.chars() {
                health.observe(check == '+', checks, Time::ZERO);
            }
            assert_eq!(health.verdict, want, "{story}");
        }
    }

    #[test]
    fn one_check_at_a_time_and_the_next_an_interval_later() {
        let (checks, at) = (Checks::default(), Time::from_millis);
        let mut health = Health::new(at(100));
        assert!(!health.begin(at(99)));
        assert!(health.begin(at(100)) && !health.begin(at(5000)));
        health.observe(true, checks, at(5000));
        assert_eq!(health.next(), Some(at(5500)));
        assert!(health.begin(at(5500)));
        health.put_off(checks, at(5600));
        assert_eq!((health.next(), health.verdict), (Some(at(6100)), Healthy));
    }
}
