//! Rights that a member's task found missing: an API that answers is not ready if we may not look at it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atoll_api::names::kind::{about, mcs};
use atoll_link::{Access, Kind};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

const DEADLINE: Duration = Duration::from_secs(5);

/// What may not be done, and to which kind.
pub(crate) type Right = (Access, Kind);

/// What is missing, with the API's words.
#[derive(Debug, Clone, Default)]
pub(super) struct Lacking(Arc<Mutex<BTreeMap<Right, String>>>);

impl Lacking {
    pub(super) fn note(&self, right: Right, why: String) {
        // Nodes are only looked at for endpoints on host networks; a member does without.
        if right.1 != Kind::Node {
            self.rights().insert(right, why);
        }
    }

    /// What to show, if anything is missing.
    pub(super) fn first(&self) -> Option<String> {
        let rights = self.rights();
        let more = rights.len().saturating_sub(1);
        let first = rights.values().next()?;
        Some(if more == 0 { first.clone() } else { format!("{first} (and {more} more)") })
    }

    /// Asks the member's API whether what was missing is there by now. What it does not say stays as it is.
    pub(super) async fn look_again(&self, member: &Client) {
        let rights: Vec<Right> = self.rights().keys().copied().collect();
        let api: Api<SelfSubjectAccessReview> = Api::all(member.clone());
        for right in rights {
            let mut allowed = true;
            for question in questions(right) {
                let params = PostParams::default();
                let answer = tokio::time::timeout(DEADLINE, api.create(&params, &question)).await;
                let status = answer.ok().and_then(Result::ok).and_then(|answer| answer.status);
                allowed &= status.is_some_and(|status| status.allowed);
            }
            if allowed {
                self.rights().remove(&right);
            }
        }
    }

    fn rights(&self) -> std::sync::MutexGuard<'_, BTreeMap<Right, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn questions((access, kind): Right) -> Vec<SelfSubjectAccessReview> {
    let group = match kind {
        Kind::Namespace | Kind::Service | Kind::Node => "",
        Kind::Slice => "discovery.k8s.io",
        Kind::Export | Kind::Import => mcs::GROUP,
        Kind::Property => about::GROUP,
    };
    let ask = |verb: &&str| {
        let attributes = ResourceAttributes {
            verb: Some((*verb).to_owned()),
            group: Some(group.to_owned()),
            resource: Some(kind.plural().to_owned()),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() }
    };
    access.verbs().iter().map(ask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_shown_and_asked_for_by_its_verbs() {
        let lacking = Lacking::default();
        lacking.note((Access::ListAndWatch, Kind::Node), "may not list and watch nodes".to_owned());
        assert_eq!(lacking.first(), None);
        lacking.note((Access::ListAndWatch, Kind::Slice), "may not list and watch endpointslices".to_owned());
        assert_eq!(lacking.first().as_deref(), Some("may not list and watch endpointslices"));
        lacking.note((Access::Create, Kind::Service), "may not create services".to_owned());
        assert!(lacking.first().unwrap().ends_with("(and 1 more)"));
        let verbs = |right| -> Vec<String> {
            let asked = questions(right).into_iter().filter_map(|one| one.spec.resource_attributes);
            asked.filter_map(|attributes| attributes.verb).collect()
        };
        assert_eq!(verbs((Access::ListAndWatch, Kind::Slice)), ["list", "watch"]);
        assert_eq!(verbs((Access::Create, Kind::Service)), ["create"]);
    }
}
