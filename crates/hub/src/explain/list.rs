//! The services that the hub knows, briefly.

use std::collections::BTreeSet;
use std::ops::Bound;

use atoll_api::explain::{Metadata, ServiceLine, ServiceList};
use atoll_engine::names::{Namespace, ServiceKey};
use atoll_engine::plan::ImportPlan;

use super::known::Known;
use super::service::{self, Scope};

/// Services in one answer, at most: a longer list goes on where it ended.
pub(super) const MOST: usize = 100;
/// Names that are compared with one that is not known, at most.
const COMPARED: usize = 1000;

/// Some services, after the one that the last list ended with.
pub(super) fn list(
    known: &Known<'_>,
    namespace: Option<&Namespace>,
    after: Option<&ServiceKey>,
    limit: usize,
) -> ServiceList {
    let limit = limit.clamp(1, MOST);
    let mut keys: Vec<&ServiceKey> = services(known, namespace, after, limit + 1);
    let more = keys.len() > limit;
    keys.truncate(limit);
    let next = keys.last().filter(|_| more).map(ToString::to_string);
    let line = |key: &&ServiceKey| {
        let verdict = service::explain(known, key, &Scope::default()).verdict;
        let metadata = Metadata { name: key.name.to_string(), namespace: Some(key.namespace.to_string()) };
        ServiceLine { metadata, code: verdict.code, severity: verdict.severity, message: verdict.message }
    };
    ServiceList::new(keys.iter().map(line).collect(), next)
}

/// The services that are known: those with facts, those that are remembered, and those that are asked for.
fn services<'a>(
    known: &Known<'a>,
    namespace: Option<&Namespace>,
    after: Option<&ServiceKey>,
    most: usize,
) -> Vec<&'a ServiceKey> {
    let world = known.world();
    let first = namespace.map(ServiceKey::before_all_of);
    let from = match (after, &first) {
        (Some(after), Some(first)) if after < first => Bound::Included(first),
        (Some(after), _) => Bound::Excluded(after),
        (None, Some(first)) => Bound::Included(first),
        (None, None) => Bound::Unbounded,
    };
    let range = (from, Bound::Unbounded);
    let of = |key: &&ServiceKey| namespace.is_none_or(|namespace| key.namespace == *namespace);
    // So many of each are enough for so many of all.
    let facts = world.services.range::<ServiceKey, _>(range).map(|(key, _)| key).take_while(of).take(most);
    let memory = world.memory.range::<ServiceKey, _>(range).map(|(key, _)| key).take_while(of).take(most);
    let asked = world.intents.iter().flat_map(|intents| intents.range::<ServiceKey, _>(range));
    let asked = asked.map(|(key, _)| key).take_while(of).take(most);
    let all: BTreeSet<&ServiceKey> = facts.chain(memory).chain(asked).collect();
    all.into_iter().take(most).collect()
}

/// Services of the same namespace with a name that is nearly this one.
pub(super) fn alike(known: &Known<'_>, key: &ServiceKey) -> Vec<String> {
    let near = services(known, Some(&key.namespace), None, COMPARED);
    let near =
        near.into_iter().filter(|other| *other != key && is_near(other.name.as_str(), key.name.as_str()));
    near.take(3).map(ToString::to_string).collect()
}

/// The service whose derived Service has this name in a cluster.
pub(super) fn derived_from<'a>(known: &Known<'a>, key: &ServiceKey) -> Option<&'a ServiceKey> {
    let is_its = |other: &&ServiceKey| {
        known.plan(other).is_some_and(|plan| {
            plan.clusters.values().any(|part| match &part.import {
                ImportPlan::Present { import, .. } => {
                    import.derived.as_ref().is_some_and(|derived| derived.name == key.name)
                }
                ImportPlan::Absent(_) | ImportPlan::Untouched(_) => false,
            })
        })
    };
    services(known, Some(&key.namespace), None, COMPARED).into_iter().find(is_its)
}

/// Whether two names differ by a letter or two, or one begins with the other.
fn is_near(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    if short.len() >= 3 && long.starts_with(short) {
        return true;
    }
    if swapped(one.as_bytes(), other.as_bytes()) {
        return true;
    }
    let allowed = if short.len() < 4 { 1 } else { 2 };
    long.len() - short.len() <= allowed && distance(short.as_bytes(), long.as_bytes()) <= allowed
}

/// Whether two neighbors have changed places, and nothing else differs.
fn swapped(one: &[u8], other: &[u8]) -> bool {
    let differ: Vec<usize> = (0..one.len()).filter(|at| one.get(*at) != other.get(*at)).take(3).collect();
    match differ[..] {
        [first, second] => {
            one.len() == other.len()
                && second == first + 1
                && one.get(first) == other.get(second)
                && one.get(second) == other.get(first)
        }
        _ => false,
    }
}

/// How many letters have to be put in, taken out or changed. Names are short: at most 63 letters.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, its) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != its);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_near_another_that_was_mistyped() {
        for (one, other, near) in [
            ("web", "wbe", true),
            ("web", "wen", true),
            ("web", "webs", true),
            ("checkout", "chekout", true),
            ("checkout", "chceckotu", false),
            ("checkout", "checkuot", true),
            ("api", "web", false),
            ("frontend", "frontend-v2", true),
        ] {
            assert_eq!(is_near(one, other), near, "{one} {other}");
        }
    }
}
