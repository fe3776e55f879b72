//! Whose word counts when exports disagree.
//!
//! The KEP says: the oldest ServiceExport's. Its `creationTimestamp` is the member's word, though, and a member that lies could
//! always win. So the hub *credits* each export with an age once, when it first sees it, and remembers it; and an export
//! that has won stays the winner (the incumbent) for as long as it lives.

use crate::memory::{Incumbent, RememberedExport};
use crate::names::ClusterId;
use crate::time::Time;
use crate::world::Sight;

/// The age that an export first seen `now` is credited with. A timestamp is believed as far as the hub can't know better.
pub fn credit(created: Time, sight: Sight, now: Time) -> Time {
    match sight {
        Sight::Listed => created.min(now),
        Sight::AfterLoss { since } => created.max(since).min(now),
        Sight::Live => now,
    }
}

/// Puts exports in order of precedence: the incumbent, then by credited age, by timestamp, by cluster id.
pub fn order<T>(
    exports: &mut [T],
    incumbent: Option<&Incumbent>,
    view: impl Fn(&T) -> (&ClusterId, &RememberedExport),
) {
    exports.sort_by(|a, b| {
        let rank = |export| {
            let (cluster, export): (&ClusterId, &RememberedExport) = view(export);
            let holds = incumbent.is_some_and(|i| i.cluster == *cluster && i.uid == export.uid);
            (!holds, export.credited, export.created)
        };
        rank(a).cmp(&rank(b)).then_with(|| view(a).0.cmp(view(b).0))
    });
}

/// By which rule an export comes before others; the later, the less it depends on age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The hub has known it for longest.
    Older,
    /// Known for as long as others, it says that it was created before them.
    Created,
    /// As old as others, its cluster's name comes first.
    Name,
    /// It won before, and keeps precedence for as long as it lives.
    Incumbent,
}

/// By which rule the first of some exports, in order of precedence, comes before the others; none if it is alone.
pub fn rule<'a>(mut exports: impl Iterator<Item = (&'a ClusterId, &'a RememberedExport)>) -> Option<Rule> {
    let (id, first) = exports.next()?;
    let before = |(other_id, other): (&ClusterId, &RememberedExport)| {
        let age = (first.credited, first.created).cmp(&(other.credited, other.created));
        match (first.credited < other.credited, age) {
            (true, _) => Rule::Older,
            (false, std::cmp::Ordering::Less) => Rule::Created,
            (false, std::cmp::Ordering::Equal) if id < other_id => Rule::Name,
            (false, std::cmp::Ordering::Equal | std::cmp::Ordering::Greater) => Rule::Incumbent,
        }
    };
    exports.map(before).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Uid;

    const NOW: Time = Time(100);

    fn winner(exports: &[(&str, i64, i64)], incumbent: Option<(&str, &str)>) -> String {
        let mut exports: Vec<_> = exports
            .iter()
            .map(|&(cluster, credited, created)| {
                let uid = Uid::parse(format!("uid-{cluster}")).unwrap();
                let (created, credited) = (Time(created), Time(credited));
                let export = RememberedExport { uid, created, first_seen: NOW, credited, offer: None };
                (ClusterId::parse(cluster).unwrap(), export)
            })
            .collect();
        let incumbent = incumbent.map(|(cluster, uid)| Incumbent {
            cluster: ClusterId::parse(cluster).unwrap(),
            uid: Uid::parse(uid).unwrap(),
        });
        order(&mut exports, incumbent.as_ref(), |(cluster, export)| (cluster, export));
        exports[0].0.to_string()
    }

    #[test]
    fn a_timestamp_is_believed_as_far_as_the_hub_cannot_know_better() {
        for (created, sight, want) in [
            (7, Sight::Listed, 7),
            (700, Sight::Listed, 100),
            (7, Sight::Live, 100),
            (700, Sight::Live, 100),
            (7, Sight::AfterLoss { since: Time(50) }, 50),
            (70, Sight::AfterLoss { since: Time(50) }, 70),
        ] {
            assert_eq!(credit(Time(created), sight, NOW), Time(want), "{created} {sight:?}");
        }
    }

    #[test]
    fn the_oldest_wins_unless_another_has_won_before() {
        for (exports, incumbent, want) in [
            (&[("b", 5, 5), ("a", 7, 7)][..], None, "b"),
            (&[("b", 5, 5), ("a", 7, 7)], Some(("a", "uid-a")), "a"),
            (&[("b", 5, 5), ("a", 7, 7)], Some(("a", "uid-of-a-deleted-export")), "b"),
            (&[("b", 5, 5), ("a", 5, 5)], None, "a"),
            (&[("b", 5, 4), ("a", 5, 5)], None, "b"),
        ] {
            assert_eq!(winner(exports, incumbent), want, "{exports:?} {incumbent:?}");
        }
    }

    #[test]
    fn who_comes_first_does_so_by_a_rule_that_can_be_told() {
        let of = |cluster: &str, credited: i64, created: i64| {
            let uid = Uid::parse(format!("uid-{cluster}")).unwrap();
            let (created, credited) = (Time(created), Time(credited));
            let export = RememberedExport { uid, created, first_seen: NOW, credited, offer: None };
            (ClusterId::parse(cluster).unwrap(), export)
        };
        for (exports, want) in [
            (vec![of("a", 5, 5)], None),
            (vec![of("b", 5, 5), of("a", 7, 7)], Some(Rule::Older)),
            (vec![of("b", 5, 4), of("a", 5, 5)], Some(Rule::Created)),
            (vec![of("a", 5, 5), of("b", 5, 5), of("c", 9, 9)], Some(Rule::Name)),
            (vec![of("a", 7, 7), of("b", 5, 5)], Some(Rule::Incumbent)),
            (vec![of("b", 5, 5), of("a", 5, 5)], Some(Rule::Incumbent)),
        ] {
            assert_eq!(rule(exports.iter().map(|(id, export)| (id, export))), want, "{exports:?}");
        }
    }
}
