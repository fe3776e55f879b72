//! What has to be asked about the authors of policies, and what users are told of policies that do not count.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::names::event;
use atoll_engine::placement::access::{Refusal, Refused};
use atoll_engine::placement::policy::PolicyId;

use super::super::implied;
use super::{Command, Propagator};

/// What to do about a policy without an author.
pub(in crate::policies) const HINT: &str = "Apply it again with `kubectl apply --server-side`; on an API server without MutatingAdmissionPolicy start \
                    the hub with --unstamped-policies=allow";
/// Told of one policy at most: it may speak of many namespaces and kinds.
const MOST: usize = 8;

/// What was told of policies that do not count: of overrides (true), or of placement.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<(bool, PolicyId), BTreeSet<String>>);

impl Refusals {
    /// The policy is another one now.
    pub(super) fn forget(&mut self, overrides: bool, id: &PolicyId) {
        self.0.remove(&(overrides, id.clone()));
    }

    /// Why a policy of placement does not count, if it does not for something.
    pub(super) fn of(&self, id: &PolicyId) -> Option<&str> {
        self.0.get(&(false, id.clone()))?.first().map(String::as_str)
    }

    /// Whether this is still to be told.
    fn is_new(&mut self, overrides: bool, id: &PolicyId, message: &str) -> bool {
        let told = self.0.entry((overrides, id.clone())).or_default();
        told.len() < MOST && told.insert(message.to_owned())
    }
}

impl Propagator {
    /// After planning: what has not been asked yet, and what users have not been told.
    pub(super) fn ask_about_authors(&mut self) {
        self.out.extend(self.placer.questions().into_iter().map(Command::Ask));
        for refusal in self.placer.refusals() {
            let of = if refusal.overrides { &self.overrides } else { &self.policies };
            let Some((key, uid)) = of.get(&refusal.policy).cloned() else {
                self.refuse_implied(&refusal);
                continue;
            };
            let message = match &refusal.why {
                Refused::NoAuthor => {
                    format!("{}, so nothing follows from it; copies that are there stay. {HINT}", refusal.why)
                }
                why @ Refused::NotAllowed { .. } => format!("it does not count: {why}"),
            };
            if self.refusals.is_new(refusal.overrides, &refusal.policy, &message) {
                let reason = if refusal.overrides {
                    event::policy::APPLY_OVERRIDE_FAILED
                } else {
                    event::policy::APPLY_FAILED
                };
                self.out.push(Command::Tell { of: key, uid, warning: true, reason, message });
            }
        }
    }

    /// That of a `MultiClusterService` is said on the object itself.
    fn refuse_implied(&mut self, refusal: &Refusal) {
        let its = self.implied.iter().find(|(_, (key, _))| implied::id(key) == refusal.policy);
        let Some(template) = its.map(|(template, _)| template.clone()) else { return };
        let why = match &refusal.why {
            Refused::NoAuthor => format!("{}. {HINT}", refusal.why),
            why @ Refused::NotAllowed { .. } => why.to_string(),
        };
        self.implied_refused.insert(template.clone(), why);
        self.implied_news.insert(template);
    }
}
