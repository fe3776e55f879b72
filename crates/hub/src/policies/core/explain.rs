//! What policies do with an object of the hub, for whoever asks: which policy has it and beat which, which clusters it chose, and what
//! became of each copy.

use atoll_api::explain::{Placement, PolicyPart, Remark, Template};
use atoll_api::names::code::Code;
use atoll_api::names::kind::policy;
use atoll_engine::placement::object::ObjectKey;
use atoll_engine::placement::policy::PolicyId;
use atoll_engine::placement::why::{Before, Selecting};
use atoll_link::{CopyState, WhyNot};

use super::super::binding::Held;
use super::super::implied;
use super::{Item, Propagator};

/// Policies that are listed, at most.
const MOST: usize = 50;

impl Propagator {
    /// What policies do with an object; nothing if the hub is not known to have one, and none of its copies is anywhere.
    pub(in crate::policies) fn explain(&self, key: &ObjectKey) -> Option<Template> {
        let item = self.items.get(key);
        if self.placer.template(key).is_none() && item.is_none() {
            return None;
        }
        let selecting = self.placer.selecting(key);
        let object = match key.namespace.as_str() {
            "" => format!("{} {}", key.kind.kind, key.name),
            namespace => format!("{} {namespace}/{}", key.kind.kind, key.name),
        };
        Some(Template {
            object,
            remarks: self.whole(key, item, &selecting),
            policies: self.policies(key, &selecting),
            placements: self.placements(key, item),
        })
    }

    fn whole(&self, key: &ObjectKey, item: Option<&Item>, selecting: &[Selecting<'_>]) -> Vec<Remark> {
        let placed = item.and_then(|item| item.placed.as_ref());
        let mut remarks = Vec::new();
        if let Some(why) = self.implied_refused.get(key) {
            remarks.push(Remark::new(
                Code::PolicyRefused,
                format!("The MultiClusterService does not count: {why}."),
            ));
        }
        if self.undecided.contains(key) {
            remarks
                .push(Remark::new(Code::CopyPending, "The rights of a policy's author are being checked."));
        }
        match placed {
            Some(placed) => {
                let has = placed.decision.as_ref().map(|decision| decision.policy.as_ref());
                let by = match has {
                    Some(Some(id)) => format!("{} propagates it.", self.named(id)),
                    Some(None) => {
                        "The policy that propagated it is gone; copies stay where they are.".to_owned()
                    }
                    None => {
                        let whom: Vec<&str> =
                            placed.required_by.iter().take(3).map(|one| one.name.as_str()).collect();
                        format!("It goes along with {}.", whom.join(", "))
                    }
                };
                remarks.push(Remark::new(Code::Propagated, by));
                if let Some(nowhere) = &placed.nowhere {
                    remarks.push(Remark::new(
                        Code::Unschedulable,
                        format!("No cluster is chosen: {}.", nowhere.text()),
                    ));
                }
                let unknown = placed.unknown.iter().take(MOST);
                remarks.extend(unknown.map(|name| {
                    let message = format!("The policy names {name}, which is not a member.");
                    Remark::new(Code::NotAMember, message)
                }));
            }
            None if selecting.is_empty() => remarks.push(Remark::of(Code::NoPolicy)),
            None => {}
        }
        remarks
    }

    fn policies(&self, key: &ObjectKey, selecting: &[Selecting<'_>]) -> Vec<PolicyPart> {
        let owner = self.placer.decision(key).and_then(|decision| decision.policy.as_ref());
        let first = selecting.first().filter(|first| Some(first.id) == owner);
        let part = |one: &Selecting<'_>| {
            let counts = Some(one.id) == owner;
            let remark = match (self.refusals.of(one.id), counts, first) {
                (Some(why), false, _) => {
                    Remark::new(Code::PolicyRefused, format!("The policy does not count: {why}."))
                }
                (_, true, _) => Remark::new(Code::Propagated, "The policy has the object."),
                (None, false, Some(first)) => {
                    let why = match first.before(one) {
                        Before::Namespace => "is of the namespace, and so comes before it",
                        Before::Priority => "has a higher priority",
                        Before::Closeness => "selects the object more closely",
                        Before::Name => "has a name that comes first",
                        Before::HadIt => "had the object before, and this one does not preempt it",
                    };
                    Remark::new(Code::PolicyBeaten, format!("{} {why}.", self.named(first.id)))
                }
                (None, false, None) => {
                    Remark::new(Code::CopyPending, "Whether the policy counts is not decided yet.")
                }
            };
            PolicyPart { policy: self.named(one.id), counts, remark }
        };
        selecting.iter().take(MOST).map(part).collect()
    }

    fn placements(&self, key: &ObjectKey, item: Option<&Item>) -> Vec<Placement> {
        let decision = self.placer.decision(key);
        let mut placements = Vec::new();
        for (id, fits) in self.placer.fitting(key) {
            let given = decision.and_then(|decision| decision.clusters.get(id));
            let mut remarks = Vec::new();
            match (given, fits) {
                (Some(replicas), _) => remarks.push(match replicas {
                    Some(replicas) => Remark::new(Code::Chosen, format!("The policy chooses the cluster, with {replicas} replicas.")),
                    None => Remark::of(Code::Chosen),
                }),
                (None, Err(why)) => remarks.push(Remark::new(Code::NotChosen, format!("The cluster {}.", why.text()))),
                (None, Ok(())) => remarks.push(Remark::new(
                    Code::NotChosen,
                    "The cluster fits, and others were chosen: by spreadConstraints, or because no replicas are left for it.",
                )),
            }
            if given.is_some() {
                remarks.extend(self.placer.overriding(key, id).into_iter().take(MOST).map(|policy| {
                    Remark::new(Code::Overridden, format!("{} changes the copy.", overriding(policy)))
                }));
            }
            let copy = item.and_then(|item| item.placed.as_ref()).and_then(|placed| placed.copies.get(id));
            if let Some(Err(why)) = copy.map(|copy| copy.object.as_ref()) {
                remarks.push(Remark::new(Code::CopyFailed, format!("The copy is not written: {why}.")));
            }
            remarks.extend(item.and_then(|item| item.holders.get(id)).map(copied));
            let replicas = given.copied().flatten();
            placements.push(Placement {
                cluster: id.to_string(),
                chosen: given.is_some(),
                replicas,
                remarks,
            });
        }
        placements
    }

    /// A policy, by kind and name.
    fn named(&self, id: &PolicyId) -> String {
        let implied = self.implied.values().find(|(key, _)| implied::id(key) == *id);
        match (implied, &id.namespace) {
            (Some((key, _)), _) => {
                format!("{} {key}", atoll_api::names::kind::networking::MULTI_CLUSTER_SERVICE)
            }
            (None, Some(_)) => format!("{} {id}", policy::PROPAGATION_POLICY),
            (None, None) => format!("{} {id}", policy::CLUSTER_PROPAGATION_POLICY),
        }
    }
}

fn overriding(id: &PolicyId) -> String {
    match id.namespace {
        Some(_) => format!("{} {id}", policy::OVERRIDE_POLICY),
        None => format!("{} {id}", policy::CLUSTER_OVERRIDE_POLICY),
    }
}

/// What became of a copy.
fn copied(held: &Held) -> Remark {
    match held {
        Held::Said(CopyState::Applied { healthy: Some(false), .. }) => {
            Remark::new(Code::CopyPending, "The copy is applied, and is not healthy yet.")
        }
        Held::Said(CopyState::Applied { healthy: Some(true) | None, .. }) => Remark::of(Code::Copied),
        Held::Said(CopyState::NotApplied(WhyNot::NotYet)) | Held::Silent => Remark::of(Code::CopyPending),
        Held::Said(CopyState::NotApplied(why)) => {
            Remark::new(Code::CopyFailed, format!("The copy is not applied: {why}."))
        }
        Held::Said(CopyState::Gone) => Remark::new(Code::CopyPending, "The cluster holds no copy."),
        Held::Unordered(why) => Remark::new(Code::CopyFailed, format!("The copy is not written: {why}.")),
    }
}
