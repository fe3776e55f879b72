//! How long to wait before the next try.

use std::time::Duration;

use crate::failure::Failure;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
/// A kind that is not there yet comes with joining, and is then wanted at once.
const LONGEST_ABSENT: Duration = Duration::from_millis(400);

/// Pauses that double, from the first to the longest.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Default for Backoff {
    /// From 100 ms to 2 s.
    fn default() -> Self {
        Self::new(FIRST, LONGEST)
    }
}

impl Backoff {
    /// The longest pause of the default.
    pub const LONGEST: Duration = LONGEST;

    /// From `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// The pause before the next try.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }

    /// It has worked: the next failure is a first one.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// The pause after a watch has failed.
    pub(crate) fn after(&mut self, failure: &Failure) -> Duration {
        let pause = self.pause();
        if failure.is_absent() { pause.min(LONGEST_ABSENT) } else { pause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::tests::refused;

    fn millis(backoff: &mut Backoff, failure: &Failure) -> Vec<u128> {
        (0..6).map(|_| backoff.after(failure).as_millis()).collect()
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_success() {
        let mut backoff = Backoff::default();
        assert_eq!(millis(&mut backoff, &refused(503)), [100, 200, 400, 800, 1600, 2000]);
        backoff.reset();
        assert_eq!(backoff.pause(), FIRST);
    }

    #[test]
    fn a_kind_that_is_not_there_yet_is_asked_for_more_often() {
        assert_eq!(millis(&mut Backoff::default(), &refused(404)), [100, 200, 400, 400, 400, 400]);
    }
}
