//! What is shown on a `MultiClusterService`: conditions that are True only when members hold what they should, and who does not.

use std::collections::BTreeMap;

use atoll_api::names::{condition::multi_cluster_service as types, reason::multi_cluster_service as reasons};
use atoll_engine::names::ClusterId;
use atoll_engine::plan::StaleMark;
use atoll_engine::reason::{CrossNote, text};
use atoll_engine::time::Time;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::edge::Asked;
use super::view::{Contact, Member, Part, View};
use crate::api::conditions::{condition, dated};
use crate::policies::Copied;

/// What is shown, but for the times of conditions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown {
    pub(super) applied: Verdict,
    pub(super) dispatched: Verdict,
    /// Providers and consumers that are no members.
    pub(super) strangers: Vec<String>,
    /// `status.clusters` and the counts.
    pub(super) clusters: Value,
    /// It has a load balancer, whose condition is another's: nothing is brought anywhere.
    pub(super) balanced: bool,
}

/// Whether something is so.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub(super) is: Is,
    pub(super) message: String,
}

/// How a condition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Is {
    /// It is so.
    So,
    /// It is under way: not so, and no reason to warn users.
    UnderWay,
    /// It is not so, and a user has to do something, or to wait for it.
    NotSo,
}

const APPLIED: &str = "Service is propagated to target clusters.";
const DISPATCHED: &str = "EndpointSlice are dispatched successfully";

/// Puts together what is known. `before` is the status that stands there.
pub(super) fn show(name: &str, asked: &Asked, view: &View, copied: &Copied, before: &Value) -> Shown {
    if let Some(why) = &asked.refused {
        return refused(why, before);
    }
    let Some(crossing) = &view.crossing else {
        let wait = |what: &str| Verdict { is: Is::UnderWay, message: what.to_owned() };
        return Shown {
            applied: wait("not planned yet"),
            dispatched: wait("not planned yet"),
            strangers: Vec::new(),
            clusters: json!({}),
            balanced: asked.intent.balanced,
        };
    };
    let strangers: Vec<String> = crossing
        .notes
        .iter()
        .filter_map(|note| match note {
            CrossNote::NotAMember { cluster } => Some(cluster.to_string()),
            _ => None,
        })
        .collect();
    let mut lacks = Lacks::default();
    let mut said: BTreeMap<&ClusterId, String> = BTreeMap::new();
    for note in &crossing.notes {
        let words = text::cross_note(note);
        match note {
            // Where the Service itself is missing, the other condition says so.
            CrossNote::NoService { .. } => {}
            CrossNote::NotAMember { .. }
            | CrossNote::KubernetesApi
            | CrossNote::ExternalName { .. }
            | CrossNote::NoSuchPort { .. }
            | CrossNote::NoNamespace { .. }
            | CrossNote::Closed(_)
            | CrossNote::Fenced { .. }
            | CrossNote::TooMuch { .. }
            | CrossNote::AddressRefused { .. } => lacks.hard.push(words.clone()),
        }
        if let Some(member) = note.member() {
            said.insert(member, words);
        }
    }
    for id in &crossing.providers {
        if let Some(member) = view.members.get(id).filter(|member| !member.known) {
            match member.contact {
                // Whether it is kept is said as stale.
                Contact::Lost(_) => {}
                Contact::Silent => lacks.hard.push(format!("{id} does not answer")),
                Contact::Unheard | Contact::Fine => {
                    lacks.soft.push(format!("the endpoints of {id} are not known yet"));
                }
            }
        }
    }
    for id in &crossing.consumers {
        if let Some(member) = view.members.get(id) {
            consumer(id, member, &mut lacks);
        }
    }
    let mut remarks = asked.remarks.clone();
    let stale = since_when(&crossing.stale, before);
    remarks.extend(stale.iter().map(|(id, at)| format!("endpoints of {id} are kept, stale since {at}")));
    let dispatched = lacks.verdict(DISPATCHED, &remarks);
    let applied = applied(name, view, copied, &strangers);
    let clusters = clusters(view, &said, &stale);
    Shown { applied, dispatched, strangers, clusters, balanced: asked.intent.balanced }
}

/// Nothing follows from it, and what it brought before stays: the counts too.
fn refused(why: &str, before: &Value) -> Shown {
    let verdict = |what: &str| Verdict { is: Is::NotSo, message: format!("{why}. {what}") };
    let counts = ["providers", "consumers", "endpoints", "clusters"];
    let counts = counts.into_iter().filter_map(|count| Some((count.to_owned(), before.get(count)?.clone())));
    Shown {
        applied: verdict("Services that are there stay as they are"),
        dispatched: verdict("No endpoints are dispatched; those that are there stay as they are"),
        strangers: Vec::new(),
        clusters: Value::Object(counts.collect()),
        balanced: false,
    }
}

/// Since when whose endpoints may be out of date. A hub that was restarted meanwhile knows of a later silence only, or of none yet: the
/// older time, which stands in the status, is the truer one.
fn since_when<'a>(
    stale: &'a BTreeMap<ClusterId, StaleMark>,
    before: &Value,
) -> BTreeMap<&'a ClusterId, Timestamp> {
    let standing = |id: &ClusterId| {
        let mut clusters = before["clusters"].as_array().into_iter().flatten();
        let one = clusters.find(|one| one["name"] == id.as_str())?;
        one["staleSince"].as_str()?.parse::<Timestamp>().ok()
    };
    let since = |(id, mark): (&'a ClusterId, &StaleMark)| {
        let ours = match mark {
            StaleMark::Since(at) => Some(timestamp(*at)),
            StaleMark::AsItWas => None,
        };
        Some((id, ours.into_iter().chain(standing(id)).min()?))
    };
    stale.iter().filter_map(since).collect()
}

#[derive(Default)]
struct Lacks {
    hard: Vec<String>,
    soft: Vec<String>,
}

impl Lacks {
    fn verdict(self, fine: &str, remarks: &[String]) -> Verdict {
        let is = match (self.hard.is_empty(), self.soft.is_empty()) {
            (false, _) => Is::NotSo,
            (true, false) => Is::UnderWay,
            (true, true) => Is::So,
        };
        let mut parts = self.hard;
        parts.extend(self.soft);
        if parts.is_empty() {
            parts.push(fine.to_owned());
        }
        parts.extend(remarks.iter().cloned());
        Verdict { is, message: parts.join("; ") }
    }
}

fn consumer(id: &ClusterId, member: &Member, lacks: &mut Lacks) {
    match (member.contact, member.part, &member.said) {
        (Contact::Lost(since), ..) => {
            lacks.hard.push(format!("{id} can't be reached since {}", time(since)));
        }
        (Contact::Silent, ..) => lacks.hard.push(format!("{id} does not answer")),
        (Contact::Unheard, ..) => lacks.soft.push(format!("{id} has not reported yet")),
        (Contact::Fine, Part::Nothing, _) => {} // a note says why
        (Contact::Fine, Part::Untouched, _) => {
            lacks.hard.push(format!("the namespace is being deleted in {id}"));
        }
        (Contact::Fine, Part::Slices, None) => lacks.soft.push(format!("{id} has not answered yet")),
        (Contact::Fine, Part::Slices, Some(said)) => {
            lacks.hard.extend(said.problems.iter().map(|problem| format!("{id}: {problem}")));
            if said.pending {
                lacks.soft.push(format!("{id} does not have all endpoints yet"));
            }
        }
    }
}

fn applied(name: &str, view: &View, copied: &Copied, strangers: &[String]) -> Verdict {
    let mut lacks = Lacks::default();
    let Some(crossing) = &view.crossing else { return lacks.verdict(APPLIED, &[]) };
    lacks.hard.extend(strangers.iter().map(|name| format!("cluster \"{name}\" is not a member")));
    match copied {
        Copied::Unknown => lacks.soft.push("not known yet".to_owned()),
        Copied::Refused(why) => lacks.hard.push(why.clone()),
        Copied::NoTemplate => lacks.hard.push(format!("there is no Service {name} in the hub")),
        Copied::Each(each) => {
            for id in crossing.providers.union(&crossing.consumers) {
                match each.get(id) {
                    Some(Ok(())) => {}
                    Some(Err(why)) => lacks.hard.push(format!("{id}: {why}")),
                    None => lacks.soft.push(format!("{id} does not have it yet")),
                }
            }
        }
    }
    lacks.verdict(APPLIED, &[])
}

fn clusters(
    view: &View,
    said: &BTreeMap<&ClusterId, String>,
    stale: &BTreeMap<&ClusterId, Timestamp>,
) -> Value {
    let Some(crossing) = &view.crossing else { return json!({}) };
    let mut total = 0;
    let mut each = Vec::new();
    for id in crossing.providers.union(&crossing.consumers) {
        let Some(member) = view.members.get(id) else { continue };
        let (provides, consumes) = (crossing.providers.contains(id), crossing.consumers.contains(id));
        let role = match (provides, consumes) {
            (true, true) => "Both",
            (true, false) => "Provider",
            (false, _) => "Consumer",
        };
        let mut one = json!({ "name": id.as_str(), "role": role });
        if provides && member.known {
            total += member.endpoints;
            one["endpoints"] = member.endpoints.into();
        }
        if let Some(said) = member.said.as_ref().filter(|_| consumes) {
            one["slices"] = said.slices.into();
        }
        if let Some(at) = stale.get(id) {
            one["staleSince"] = at.to_string().into();
        }
        let problem = member.said.as_ref().and_then(|said| said.problems.first());
        if let Some(message) = problem.or_else(|| said.get(id)) {
            one["message"] = message.as_str().into();
        }
        each.push(one);
    }
    json!({
        "providers": crossing.providers.len(),
        "consumers": crossing.consumers.len(),
        "endpoints": total,
        "clusters": each,
    })
}

impl Shown {
    /// Whether it will soon be otherwise, and nothing is wrong.
    pub(super) fn is_under_way(&self) -> bool {
        let both = [self.applied.is, self.dispatched.is];
        both.contains(&Is::UnderWay) && !both.contains(&Is::NotSo)
    }

    /// The status as it is written; conditions keep their times while they stay.
    pub(super) fn status(&self, before: &Value, generation: i64, now: &str) -> Value {
        let one = |kind: &str, verdict: &Verdict, good: &str, bad: &str| {
            let is = verdict.is == Is::So;
            let reason = if is { good } else { bad };
            let mut one = dated(condition(kind, is, reason, &verdict.message), before, now);
            one["observedGeneration"] = generation.into();
            one
        };
        let mut status = self.clusters.clone();
        if self.balanced {
            return status;
        }
        status["conditions"] = json!([
            one(
                types::SERVICE_APPLIED,
                &self.applied,
                reasons::SERVICE_APPLIED_SUCCEED,
                reasons::SERVICE_APPLIED_FAILED
            ),
            one(types::DISPATCHED, &self.dispatched, reasons::DISPATCHED_SUCCEED, reasons::DISPATCHED_FAILED),
        ]);
        status
    }
}

/// A time as Kubernetes writes it, to the second.
pub(super) fn time(at: Time) -> String {
    timestamp(at).to_string()
}

fn timestamp(at: Time) -> Timestamp {
    Timestamp::from_second(at.0.div_euclid(1000)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atoll_engine::intent::CrossCluster;
    use atoll_engine::names::ServiceKey;
    use atoll_engine::plan::Crossing;
    use atoll_link::Dispatched;

    use super::*;

    fn id(name: &str) -> ClusterId {
        ClusterId::parse(name).unwrap()
    }

    fn member(contact: Contact, pending: bool, problems: &[&str]) -> Member {
        let said = Dispatched {
            service: ServiceKey::parse("shop", "web").unwrap(),
            answers: 1,
            slices: 2,
            pending,
            problems: problems.iter().map(ToString::to_string).collect(),
        };
        Member { contact, part: Part::Slices, known: true, endpoints: 3, said: Some(said) }
    }

    fn asked() -> Asked {
        Asked {
            intent: CrossCluster::default(),
            remarks: Vec::new(),
            outdated: Vec::new(),
            author: None,
            refused: None,
        }
    }

    #[test]
    fn a_condition_is_true_only_when_every_consumer_holds_it_and_says_who_does_not() {
        let asked = asked();
        let copied = Copied::Each([(id("a"), Ok(())), (id("b"), Ok(()))].into());
        for (b, is, words) in [
            (member(Contact::Fine, false, &[]), Is::So, DISPATCHED),
            (member(Contact::Fine, true, &[]), Is::UnderWay, "b does not have all endpoints yet"),
            (member(Contact::Fine, false, &["taken"]), Is::NotSo, "b: taken"),
            (member(Contact::Silent, false, &[]), Is::NotSo, "b does not answer"),
            (member(Contact::Unheard, false, &[]), Is::UnderWay, "b has not reported yet"),
            (
                member(Contact::Lost(Time::from_secs(0)), false, &[]),
                Is::NotSo,
                "b can't be reached since 1970-01-01T00:00:00Z",
            ),
            (
                Member { said: None, ..member(Contact::Fine, false, &[]) },
                Is::UnderWay,
                "b has not answered yet",
            ),
        ] {
            let crossing =
                Crossing { providers: [id("a")].into(), consumers: [id("b")].into(), ..Crossing::default() };
            let a = member(Contact::Fine, false, &[]);
            let view =
                View { crossing: Some(Arc::new(crossing)), members: [(id("a"), a), (id("b"), b)].into() };
            let shown = show("web", &asked, &view, &copied, &json!({}));
            assert_eq!((shown.dispatched.is, shown.dispatched.message.as_str()), (is, words));
            assert_eq!(shown.applied.is, Is::So);
            assert_eq!(
                (&shown.clusters["endpoints"], &shown.clusters["clusters"][0]["role"]),
                (&json!(3), &json!("Provider"))
            );
        }
    }

    #[test]
    fn a_restart_of_the_hub_does_not_make_what_is_stale_look_younger() {
        let stood = json!({ "clusters": [{ "name": "a", "staleSince": "1970-01-01T00:01:00Z" }] });
        for (mark, before, want) in [
            (StaleMark::Since(Time::from_secs(90)), &json!({}), Some("1970-01-01T00:01:30Z")),
            (StaleMark::Since(Time::from_secs(90)), &stood, Some("1970-01-01T00:01:00Z")),
            (StaleMark::Since(Time::from_secs(30)), &stood, Some("1970-01-01T00:00:30Z")),
            (StaleMark::AsItWas, &stood, Some("1970-01-01T00:01:00Z")),
            (StaleMark::AsItWas, &json!({}), None),
        ] {
            let stale = BTreeMap::from([(id("a"), mark)]);
            let crossing = Crossing { providers: [id("a")].into(), stale, ..Crossing::default() };
            let a = member(Contact::Unheard, false, &[]);
            let view = View { crossing: Some(Arc::new(crossing)), members: [(id("a"), a)].into() };
            let asked = asked();
            let copied = Copied::Each([(id("a"), Ok(()))].into());
            let shown = show("web", &asked, &view, &copied, before);
            assert_eq!(shown.clusters["clusters"][0]["staleSince"].as_str(), want, "{mark:?}");
            let said = want.map(|at| format!("endpoints of a are kept, stale since {at}"));
            assert!(said.is_none_or(|said| shown.dispatched.message.contains(&said)), "{shown:?}");
        }
    }

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let verdict = |is| Verdict { is, message: "m".to_owned() };
        let shown = |is| Shown {
            applied: verdict(is),
            dispatched: verdict(Is::So),
            strangers: Vec::new(),
            clusters: json!({}),
            balanced: false,
        };
        let first = shown(Is::UnderWay).status(&json!({}), 1, "t1");
        let same = shown(Is::NotSo).status(&first, 1, "t2");
        assert_eq!(same["conditions"][0]["lastTransitionTime"], "t1");
        let other = shown(Is::So).status(&same, 1, "t3");
        assert_eq!(other["conditions"][0]["lastTransitionTime"], "t3");
        assert_eq!(other["conditions"][1]["lastTransitionTime"], "t1");
    }
}
