//! How much the hub asks in an author's name: few questions at once, so many per second, and a bounded number that wait. Whoever writes
//! many policies waits for their own answers, and no other author does. Pure: time is an argument, from any beginning on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use atoll_engine::placement::access::{Author, Question};

/// Asked at once for one author.
const AT_ONCE: usize = 4;
/// One author's questions may wait up to this number.
const WAITING: usize = 4096;
/// One question of an author in this time, in the long run.
const EACH: Duration = Duration::from_millis(10);
/// So much earlier than that, if few were asked before.
const AHEAD: Duration = Duration::from_secs(5);

/// The questions of all authors.
#[derive(Debug, Default)]
pub(super) struct Turns {
    authors: BTreeMap<Arc<Author>, Line>,
}

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Question>,
    under_way: usize,
    /// Until when this author's share is used up.
    paid: Duration,
}

/// What is asked next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Ask(Question),
    /// Nothing before this moment, unless there is news.
    Later(Duration),
    Nothing,
}

impl Turns {
    /// A question comes. It is given back if too many of its author wait.
    pub(super) fn come(&mut self, question: Question) -> Result<(), Question> {
        let line = self.authors.entry(Arc::clone(question.author())).or_default();
        if line.waiting.len() >= WAITING {
            return Err(question);
        }
        line.waiting.push_back(question);
        Ok(())
    }

    /// The next question that may be asked now.
    pub(super) fn next(&mut self, now: Duration) -> Next {
        self.authors.retain(|_, line| !line.waiting.is_empty() || line.under_way > 0 || line.paid > now);
        let mut soonest: Option<Duration> = None;
        for line in self.authors.values_mut() {
            if line.waiting.is_empty() || line.under_way >= AT_ONCE {
                continue;
            }
            let from = line.paid.max(now);
            if from > now + AHEAD {
                let at = from.saturating_sub(AHEAD);
                soonest = Some(soonest.map_or(at, |soonest| soonest.min(at)));
                continue;
            }
            if let Some(question) = line.waiting.pop_front() {
                line.paid = from + EACH;
                line.under_way += 1;
                return Next::Ask(question);
            }
        }
        soonest.map_or(Next::Nothing, Next::Later)
    }

    /// A question of this author was answered.
    pub(super) fn answered(&mut self, author: &Author) {
        if let Some(line) = self.authors.get_mut(author) {
            line.under_way = line.under_way.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_engine::placement::object::Kind;

    fn question(author: &str, number: usize) -> Question {
        let author = Author { username: author.to_owned(), ..Author::default() };
        Question::Right(Arc::new(author), Kind::new("v1", "Secret"), format!("namespace-{number}"))
    }

    /// Asks all that may be asked now; gives the authors.
    fn asked(turns: &mut Turns, now: Duration) -> Vec<String> {
        let next = || match turns.next(now) {
            Next::Ask(question) => Some(question.author().username.clone()),
            Next::Later(_) | Next::Nothing => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn an_author_of_very_many_policies_holds_up_no_other_and_asks_only_so_much() {
        let mut turns = Turns::default();
        for number in 0..WAITING {
            assert_eq!(turns.come(question("greedy", number)), Ok(()));
        }
        assert!(turns.come(question("greedy", WAITING)).is_err(), "what waits is bounded");
        assert_eq!(turns.come(question("honest", 0)), Ok(()));
        let first = asked(&mut turns, Duration::ZERO);
        assert_eq!(first.iter().filter(|author| *author == "greedy").count(), AT_ONCE);
        assert!(first.contains(&"honest".to_owned()), "{first:?}");
        // Answered at once, for ten seconds.
        let mut count = first.len() - 1;
        for step in 0..1000 {
            (0..AT_ONCE).for_each(|_| turns.answered(&question("greedy", 0).author().clone()));
            count += asked(&mut turns, Duration::from_millis(step * 10)).len();
        }
        let most = (Duration::from_secs(10) + AHEAD).as_millis() / EACH.as_millis() + 1;
        assert!(count as u128 <= most, "{count} in ten seconds, at most {most}");
        assert!(count as u128 > most / 2, "{count}: an honest author of many policies goes on");
    }

    #[test]
    fn who_has_used_up_his_share_is_asked_about_later_and_not_forgotten() {
        let mut turns = Turns::default();
        let now = Duration::from_secs(100);
        for number in 0..1000 {
            turns.come(question("bob", number)).unwrap();
        }
        while let Next::Ask(question) = turns.next(now) {
            turns.answered(question.author());
        }
        let Next::Later(at) = turns.next(now) else { panic!("{turns:?}") };
        assert!(at > now && at <= now + EACH, "{at:?}");
        assert!(matches!(turns.next(at), Next::Ask(_)));
        assert_eq!(Turns::default().next(now), Next::Nothing);
    }

    #[test]
    fn an_author_without_questions_costs_nothing() {
        let mut turns = Turns::default();
        turns.come(question("bob", 0)).unwrap();
        assert_eq!(asked(&mut turns, Duration::ZERO).len(), 1);
        turns.answered(question("bob", 0).author());
        assert_eq!(turns.next(Duration::from_secs(1)), Next::Nothing);
        assert!(turns.authors.is_empty());
    }
}
