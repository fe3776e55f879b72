//! What members say of themselves, kept for whoever asks: what a person must do there, and how their API is. Bounded, and forgotten when it
//! is over or is not said again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use atoll_link::{Access, Health, Kind, ObjectName, Problem, Verb, Written};

/// So many problems of one member are kept.
const MOST: usize = 200;
/// A member says every five minutes what still stands in the way of a request.
const REPEATED: Duration = Duration::from_secs(400);
/// What is said of an object and what the object says arrive within this time.
const TOGETHER: Duration = Duration::from_secs(1);

/// What all members say.
#[derive(Debug, Default)]
pub(super) struct Words(BTreeMap<ClusterId, Said>);

#[derive(Debug, Default)]
struct Said {
    health: Option<Health>,
    problems: BTreeMap<Problem, Spell>,
}

#[derive(Debug)]
struct Spell {
    since: Time,
    last: Instant,
}

impl Words {
    /// It has a problem.
    pub(super) fn problem(&mut self, id: &ClusterId, problem: Problem, now: super::Now) {
        let problems = &mut self.0.entry(id.clone()).or_default().problems;
        if problems.len() >= MOST && !problems.contains_key(&problem) {
            problems.retain(|problem, spell| !over(problem, spell, now.instant));
            if problems.len() >= MOST {
                return;
            }
        }
        let spell = problems.entry(problem).or_insert(Spell { since: now.time, last: now.instant });
        spell.last = now.instant;
    }

    /// How its API is.
    pub(super) fn health(&mut self, id: &ClusterId, health: Health) {
        let said = self.0.entry(id.clone()).or_default();
        if matches!(health, Health::Ready { .. }) {
            // It would not be ready if a right were missing.
            said.problems.retain(|problem, _| !matches!(problem, Problem::Forbidden { .. }));
        }
        said.health = Some(health);
    }

    /// It has written something: what stood in the way of that is over.
    pub(super) fn wrote(&mut self, id: &ClusterId, written: &Written) {
        let Some(said) = self.0.get_mut(id).filter(|said| !said.problems.is_empty()) else { return };
        said.problems.retain(|problem, _| match problem {
            Problem::Forbidden { verb, kind, .. } => *kind != written.kind || *verb != access(written.verb),
            Problem::KindAbsent(kind) => *kind != written.kind,
            Problem::Foreign { service, object } => {
                *service != written.service || !is_written(object, written)
            }
            Problem::Refused { object, .. } => !is_written(object, written),
            Problem::Unrepresentable { .. } | Problem::OtherProperty { .. } => true,
        });
    }

    /// It has told a fact: what was wrong with that object is over, unless it was said just now.
    pub(super) fn changed(&mut self, id: &ClusterId, change: &Change, now: Instant) {
        let Some(said) = self.0.get_mut(id).filter(|said| !said.problems.is_empty()) else { return };
        let (kind, key, name) = match change {
            Change::Service(key, _) => (Kind::Service, key, key.name.as_str()),
            Change::Export(key, _) => (Kind::Export, key, key.name.as_str()),
            Change::Slice(key, name, _) => (Kind::Slice, key, name.as_str()),
            Change::Heard(_) => {
                // Every kind has been listed.
                said.problems.retain(|problem, _| !matches!(problem, Problem::KindAbsent(_)));
                return;
            }
            Change::Joined | Change::Left | Change::Contact(_) | Change::Networks(_) | Change::Nodes(_) => {
                return;
            }
            Change::Namespace(..) | Change::Taken(..) | Change::Followed(..) => return,
        };
        said.problems.retain(|problem, spell| match problem {
            Problem::Unrepresentable { object, .. } => {
                let its = object.kind == kind
                    && object.namespace.as_ref() == Some(&key.namespace)
                    && *object.name == *name;
                !its || now.saturating_duration_since(spell.last) < TOGETHER
            }
            Problem::KindAbsent(absent) => *absent != kind,
            Problem::Forbidden { .. }
            | Problem::Foreign { .. }
            | Problem::Refused { .. }
            | Problem::OtherProperty { .. } => true,
        });
    }

    /// It is no member any more, or says everything anew.
    pub(super) fn forget(&mut self, id: &ClusterId) {
        self.0.remove(id);
    }

    /// Its problems, and since when.
    pub(super) fn problems(&self, id: &ClusterId, now: Instant) -> impl Iterator<Item = (&Problem, Time)> {
        let problems = self.0.get(id).into_iter().flat_map(|said| &said.problems);
        problems
            .filter(move |(problem, spell)| !over(problem, spell, now))
            .map(|(problem, spell)| (problem, spell.since))
    }

    /// How its API is, by its last word.
    pub(super) fn health_of(&self, id: &ClusterId) -> Option<&Health> {
        self.0.get(id)?.health.as_ref()
    }
}

/// Whether it would have been said again by now.
fn over(problem: &Problem, spell: &Spell, now: Instant) -> bool {
    match problem {
        Problem::Forbidden { .. } | Problem::KindAbsent(_) | Problem::Refused { .. } => {
            now.saturating_duration_since(spell.last) > REPEATED
        }
        // Said once for each state of the object.
        Problem::Foreign { .. } | Problem::Unrepresentable { .. } | Problem::OtherProperty { .. } => false,
    }
}

fn access(verb: Verb) -> Access {
    match verb {
        Verb::Create => Access::Create,
        Verb::Update => Access::Update,
        Verb::Delete => Access::Delete,
        Verb::Status => Access::Patch,
    }
}

fn is_written(object: &ObjectName, written: &Written) -> bool {
    object.kind == written.kind
        && object.namespace.as_ref() == Some(&written.service.namespace)
        && match &written.slice {
            Some((_, original)) => object.name.contains(original.as_str()),
            None => true,
        }
}

/// Whether a problem is one of this service; `slices` says of names of slices whether they are the service's.
pub(crate) fn is_of(problem: &Problem, key: &ServiceKey, slice: impl Fn(&str) -> bool) -> bool {
    match problem {
        Problem::Foreign { service, .. } => service == key,
        Problem::Refused { object, .. } | Problem::Unrepresentable { object, .. } => {
            object.namespace.as_ref() == Some(&key.namespace)
                && match object.kind {
                    Kind::Slice => slice(&object.name),
                    Kind::Service | Kind::Export | Kind::Import => {
                        object.name.strip_prefix(atoll_api::names::prefix::DERIVED) == Some(key.name.as_str())
                            || *object.name == *key.name.as_str()
                    }
                    Kind::Namespace | Kind::Node | Kind::Property => false,
                }
        }
        Problem::Forbidden { .. } | Problem::KindAbsent(_) | Problem::OtherProperty { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use atoll_link::Field;

    use super::super::Now;
    use super::*;

    #[test]
    fn a_problem_lasts_until_it_is_over_or_is_not_said_again() {
        let (start, id) = (Instant::now(), ClusterId::parse("paris").unwrap());
        let at = |seconds| Now { instant: start + Duration::from_secs(seconds), time: Time(0) };
        let key = ServiceKey::parse("shop", "web").unwrap();
        let object =
            |kind, name: &str| ObjectName { kind, namespace: Some(key.namespace.clone()), name: name.into() };
        let forbidden = Problem::Forbidden { verb: Access::Create, kind: Kind::Service, why: String::new() };
        let foreign = Problem::Foreign { service: key.clone(), object: object(Kind::Import, "web") };
        let (field, why) = (Field::Port, String::new());
        let odd = Problem::Unrepresentable { object: object(Kind::Export, "web"), field, why };
        let all = [forbidden, Problem::KindAbsent(Kind::Import), foreign, odd];
        let told = || {
            let mut words = Words::default();
            all.iter().for_each(|problem| words.problem(&id, problem.clone(), at(0)));
            words
        };
        let left = |words: &Words, seconds| words.problems(&id, at(seconds).instant).count();
        assert_eq!((left(&told(), 1), left(&told(), 500)), (4, 2), "two would have been repeated");
        let mut words = told();
        words.health(&id, Health::Ready { version: "v1.36.0".to_owned() });
        assert_eq!(left(&words, 1), 3, "it has all rights");
        let written = Written { service: key.clone(), kind: Kind::Import, verb: Verb::Create, slice: None };
        words.wrote(&id, &written);
        assert_eq!(left(&words, 1), 1, "the import could be written");
        words.changed(&id, &Change::Export(key.clone(), None), at(0).instant);
        assert_eq!(left(&words, 1), 1, "said together with the object");
        words.changed(&id, &Change::Export(key.clone(), None), at(2).instant);
        assert_eq!(left(&words, 2), 0);
        let mut many = Words::default();
        for number in 0..2 * MOST {
            let object = object(Kind::Slice, &format!("web-{number}"));
            many.problem(&id, Problem::Foreign { service: key.clone(), object }, at(0));
        }
        assert_eq!(left(&many, 0), MOST);
    }
}
