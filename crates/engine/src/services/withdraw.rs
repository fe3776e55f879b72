//! Does a lost source's endpoint stay? Two signals, one policy, no clock.

use crate::facts::Liveness;
use crate::reason::{Kept, Withdrawn};
use crate::time::Time;

/// What is to be done with the endpoints of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// They stay.
    Keep(Kept),
    /// They go.
    Withdraw(Withdrawn),
}

/// What a probe from the consumer's side said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// No probe has run.
    NotRun,
    /// An endpoint answered.
    Answered,
    /// None answered.
    Failed,
}

/// Judges a source by its export's policy. `alive_elsewhere`: how many endpoints the service has in clusters not lost.
pub fn judge(policy: Liveness, lost: Option<Time>, probe: Probe, alive_elsewhere: usize) -> Verdict {
    use Verdict::{Keep, Withdraw};
    let Some(at) = lost else { return Keep(Kept::Alive) };
    match (policy, probe) {
        (Liveness::Retain, _) => Keep(Kept::PolicyRetains { since: at }),
        (Liveness::Withdraw, _) => Withdraw(Withdrawn::LeaseEnded { at }),
        (Liveness::Probe, Probe::Answered) => Keep(Kept::Answers),
        (Liveness::Probe, Probe::NotRun) => Keep(Kept::NotProbed),
        (Liveness::Probe, Probe::Failed) if alive_elsewhere == 0 => Keep(Kept::LastOfService),
        (Liveness::Probe, Probe::Failed) => Withdraw(Withdrawn::ProbeFailed { lost: at }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Keep, Withdraw};

    const T1: Time = Time(1);

    #[test]
    fn lost_source_goes_only_when_the_policy_says_so() {
        for (policy, probe, elsewhere, want) in [
            (Liveness::Retain, Probe::Failed, 3, Keep(Kept::PolicyRetains { since: T1 })),
            (Liveness::Withdraw, Probe::NotRun, 0, Withdraw(Withdrawn::LeaseEnded { at: T1 })),
            (Liveness::Probe, Probe::NotRun, 3, Keep(Kept::NotProbed)),
            (Liveness::Probe, Probe::Answered, 3, Keep(Kept::Answers)),
            (Liveness::Probe, Probe::Failed, 3, Withdraw(Withdrawn::ProbeFailed { lost: T1 })),
            (Liveness::Probe, Probe::Failed, 0, Keep(Kept::LastOfService)),
        ] {
            assert_eq!(judge(policy, Some(T1), probe, elsewhere), want, "{policy:?} {probe:?} {elsewhere}");
        }
    }

    #[test]
    fn a_source_that_is_there_stays_whatever_the_policy() {
        for policy in [Liveness::Retain, Liveness::Probe, Liveness::Withdraw] {
            assert_eq!(judge(policy, None, Probe::Failed, 0), Keep(Kept::Alive), "{policy:?}");
        }
    }
}
