//! The rules of the lease. Pure.

use std::time::{Duration, Instant};

use super::Lost;
use super::slot::Record;
use crate::options::LONGEST_LEASE;

/// What a candidate does.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Write ourselves in.
    Take,
    /// Another replica leads.
    Wait { holder: String, until: Instant },
}

/// Who we are, and what we have seen of the lease.
#[derive(Debug)]
pub(super) struct Rules {
    identity: String,
    incarnation: String,
    duration: Duration,
    /// The version last seen, and when *we* saw it first: the holder's clock is never compared with ours.
    seen: Option<(String, Instant)>,
}

impl Rules {
    pub(super) fn new(identity: String, incarnation: String, duration: Duration) -> Self {
        Self { identity, incarnation, duration, seen: None }
    }

    /// How often the lease is renewed or looked at.
    pub(super) fn period(&self) -> Duration {
        self.duration / 5
    }

    /// For how long after a renewal was sent we may write. The rest of the lease is for what is on its way then.
    pub(super) fn valid(&self) -> Duration {
        self.duration - self.duration / 5
    }

    /// May we take the lease?
    pub(super) fn candidate(&mut self, record: Option<&Record>, now: Instant) -> Step {
        let Some(record) = record else { return Step::Take };
        let Some(holder) = record.holder.clone().filter(|holder| !holder.is_empty()) else {
            return Step::Take;
        };
        if holder == self.identity {
            return Step::Take; // ourselves, before a restart
        }
        if self.seen.as_ref().is_none_or(|(version, _)| *version != record.version) {
            self.seen = Some((record.version.clone(), now));
        }
        let since = self.seen.as_ref().map_or(now, |(_, since)| *since);
        // Whatever is written there: no hub leads for longer without a sign.
        let until = since + record.duration.min(LONGEST_LEASE);
        if now >= until { Step::Take } else { Step::Wait { holder, until } }
    }

    /// Do we still lead, by what is found after a conflict?
    pub(super) fn leader(&self, record: Option<&Record>) -> Option<Lost> {
        let record = record?; // deleted by a user: it is made anew
        match record.holder.as_deref().unwrap_or_default() {
            "" => None,
            holder if holder != self.identity => Some(Lost::TakenBy(holder.to_owned())),
            _ if record.incarnation.as_deref() != Some(&self.incarnation) => Some(Lost::Twin),
            _ => None,
        }
    }

    /// What we write.
    pub(super) fn ours(&self, over: Option<&Record>) -> Record {
        let same = over.is_some_and(|old| old.holder.as_deref() == Some(&self.identity));
        Record {
            holder: Some(self.identity.clone()),
            incarnation: Some(self.incarnation.clone()),
            duration: self.duration,
            transitions: over
                .map_or(0, |old| if same { old.transitions } else { old.transitions.saturating_add(1) }),
            version: over.map(|old| old.version.clone()).unwrap_or_default(),
        }
    }

    /// What we leave behind.
    pub(super) fn freed(&self, held: &Record) -> Record {
        Record { holder: None, incarnation: None, duration: Duration::from_secs(1), ..held.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str, version: &str) -> Record {
        Record {
            holder: Some(holder.to_owned()),
            incarnation: Some("theirs".to_owned()),
            duration: Duration::from_secs(10),
            transitions: 3,
            version: version.to_owned(),
        }
    }

    fn rules() -> Rules {
        Rules::new("me".to_owned(), "mine".to_owned(), Duration::from_secs(10))
    }

    #[test]
    fn a_free_lease_or_our_own_is_taken_at_once() {
        let now = Instant::now();
        for free in [None, Some(record("", "1")), Some(record("me", "1"))] {
            assert_eq!(rules().candidate(free.as_ref(), now), Step::Take, "{free:?}");
        }
    }

    #[test]
    fn anothers_lease_is_taken_when_it_stood_still_for_its_duration() {
        let (mut rules, start) = (rules(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let wait = |until| Step::Wait { holder: "you".to_owned(), until };
        assert_eq!(rules.candidate(Some(&record("you", "1")), start), wait(at(10)));
        assert_eq!(rules.candidate(Some(&record("you", "1")), at(9)), wait(at(10)));
        assert_eq!(rules.candidate(Some(&record("you", "2")), at(9)), wait(at(19)), "renewed");
        assert_eq!(rules.candidate(Some(&record("you", "2")), at(19)), Step::Take);
    }

    #[test]
    fn a_lease_of_years_is_not_waited_for() {
        let (mut rules, start) = (rules(), Instant::now());
        for seconds in [u64::from(u32::MAX), u64::MAX] {
            let absurd = Record { duration: Duration::from_secs(seconds), ..record("you", "1") };
            let until = start + LONGEST_LEASE;
            assert_eq!(rules.candidate(Some(&absurd), start), Step::Wait { holder: "you".to_owned(), until });
            assert_eq!(rules.candidate(Some(&absurd), until), Step::Take);
        }
        let worn = Record { transitions: i32::MAX, ..record("you", "1") };
        assert_eq!(rules.ours(Some(&worn)).transitions, i32::MAX);
    }

    #[test]
    fn a_leader_notices_who_took_its_place() {
        let mine = Record { incarnation: Some("mine".to_owned()), ..record("me", "1") };
        for (found, want) in [
            (None, None),
            (Some(mine), None),
            (Some(record("", "1")), None),
            (Some(record("you", "1")), Some(Lost::TakenBy("you".to_owned()))),
            (Some(record("me", "1")), Some(Lost::Twin)),
        ] {
            assert_eq!(rules().leader(found.as_ref()), want, "{found:?}");
        }
    }

    #[test]
    fn we_stop_writing_before_another_replica_may_start() {
        assert!(rules().valid() + rules().period() <= Duration::from_secs(10));
        assert_eq!(rules().ours(Some(&record("you", "7"))).transitions, 4);
        assert_eq!(rules().ours(Some(&record("me", "7"))).transitions, 3);
    }
}
