//! May this user ask that? Another API server is asked, and what it says holds for a few seconds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use atoll_kubeapi::authn::User;
use atoll_kubeapi::extension::{Review, ReviewTarget, Reviewer, Reviewing, Verdict};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::membership::connect::why;

/// How long an answer holds: a right that was taken away is gone after this.
const HOLDS: Duration = Duration::from_secs(5);
/// Answers that are kept.
const MOST: usize = 1024;
/// A question of more bytes is not kept.
const LONGEST: usize = 2048;

/// Asks the hub's API.
pub(crate) struct Access {
    api: Api<SubjectAccessReview>,
    known: Mutex<Known>,
}

impl Access {
    pub(crate) fn new(client: Client) -> Self {
        Self { api: Api::all(client), known: Mutex::default() }
    }
}

impl Reviewer for Access {
    fn review<'a>(&'a self, user: &'a User, review: Review) -> Reviewing<'a> {
        Box::pin(async move {
            let key = Key::new(user, review);
            let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(verdict) = known().get(&key, Instant::now()) {
                return verdict;
            }
            let verdict = match self.api.create(&PostParams::default(), &key.question()).await {
                Ok(answer) => match answer.status.unwrap_or_default() {
                    status if status.allowed => Verdict::Allowed,
                    status => Verdict::Denied(status.reason.unwrap_or_default()),
                },
                Err(error) => Verdict::Unknown(format!("the hub's API says: {}", why(&error))),
            };
            known().put(key, &verdict, Instant::now());
            verdict
        })
    }
}

/// A user and what they want.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
    review: Review,
}

impl Key {
    fn new(user: &User, review: Review) -> Self {
        let User { name, uid, groups, extra } = user.clone();
        Self { name, uid, groups, extra, review }
    }

    fn bytes(&self) -> usize {
        let own = self.name.len() + self.uid.len() + self.groups.iter().map(String::len).sum::<usize>();
        let extra = |(key, values): (&String, &Vec<String>)| {
            key.len() + values.iter().map(String::len).sum::<usize>()
        };
        let asked = match &self.review.target {
            ReviewTarget::Path(path) => path.len(),
            ReviewTarget::Resource { group, version, resource, subresource, namespace, name } => {
                [group, version, resource, subresource, namespace, name].map(String::len).iter().sum()
            }
        };
        own + self.extra.iter().map(extra).sum::<usize>() + asked
    }

    fn question(&self) -> SubjectAccessReview {
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let verb = Some(self.review.verb.clone());
        let (resource_attributes, non_resource_attributes) = match &self.review.target {
            ReviewTarget::Path(path) => {
                (None, Some(NonResourceAttributes { path: Some(path.clone()), verb }))
            }
            ReviewTarget::Resource { group, version, resource, subresource, namespace, name } => {
                let attributes = ResourceAttributes {
                    group: some(group),
                    version: some(version),
                    resource: some(resource),
                    subresource: some(subresource),
                    namespace: some(namespace),
                    name: some(name),
                    verb,
                    ..ResourceAttributes::default()
                };
                (Some(attributes), None)
            }
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(self.name.clone()),
            uid: some(&self.uid),
            groups: Some(self.groups.clone()),
            extra: Some(self.extra.clone()).filter(|extra| !extra.is_empty()),
            resource_attributes,
            non_resource_attributes,
        };
        SubjectAccessReview { spec, ..SubjectAccessReview::default() }
    }
}

/// What was said lately.
#[derive(Default)]
struct Known(HashMap<Key, (Instant, Verdict)>);

impl Known {
    fn get(&self, key: &Key, now: Instant) -> Option<Verdict> {
        let (until, verdict) = self.0.get(key)?;
        (*until > now).then(|| verdict.clone())
    }

    fn put(&mut self, key: Key, verdict: &Verdict, now: Instant) {
        match verdict {
            Verdict::Allowed | Verdict::Denied(_) if key.bytes() <= LONGEST => {}
            Verdict::Allowed | Verdict::Denied(_) | Verdict::Unknown(_) => return,
        }
        if self.0.len() >= MOST {
            self.0.retain(|_, (until, _)| *until > now);
        }
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(key, (now + HOLDS, verdict.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(user: &str, group: &str, name: &str) -> Key {
        let target = ReviewTarget::Resource {
            group: "explain.atoll.dev".to_owned(),
            version: "v1alpha1".to_owned(),
            resource: "services".to_owned(),
            subresource: String::new(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let user = User { name: user.to_owned(), groups: vec![group.to_owned()], ..User::default() };
        Key::new(&user, Review { verb: "get".to_owned(), target })
    }

    #[test]
    fn an_answer_holds_for_its_user_its_groups_and_a_few_seconds() {
        let (mut known, now) = (Known::default(), Instant::now());
        known.put(key("joe", "a", "web"), &Verdict::Allowed, now);
        assert_eq!(known.get(&key("joe", "a", "web"), now), Some(Verdict::Allowed));
        for other in [key("ann", "a", "web"), key("joe", "b", "web"), key("joe", "a", "db")] {
            assert_eq!(known.get(&other, now), None, "{other:?}");
        }
        assert_eq!(known.get(&key("joe", "a", "web"), now + HOLDS), None);
        known.put(key("ann", "a", "web"), &Verdict::Unknown("down".to_owned()), now);
        assert_eq!(known.get(&key("ann", "a", "web"), now), None, "what is not known is asked again");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut known, now) = (Known::default(), Instant::now());
        for at in 0..3 * MOST {
            known.put(key("joe", "a", &at.to_string()), &Verdict::Denied(String::new()), now);
            assert!(known.0.len() <= MOST);
        }
        known.put(key("joe", "a", &"x".repeat(LONGEST)), &Verdict::Allowed, now);
        assert_eq!(known.get(&key("joe", "a", &"x".repeat(LONGEST)), now), None);
    }

    #[test]
    fn the_question_says_all_that_is_known_of_the_user() {
        let mut one = key("joe", "a", "web");
        one.uid = "7".to_owned();
        one.extra.insert("scope".to_owned(), vec!["x".to_owned()]);
        let spec = serde_json::to_value(one.question().spec).unwrap();
        let want = serde_json::json!({"user": "joe", "uid": "7", "groups": ["a"], "extra": {"scope": ["x"]},
            "resourceAttributes": {"group": "explain.atoll.dev", "version": "v1alpha1", "resource": "services",
                "namespace": "shop", "name": "web", "verb": "get"}});
        assert_eq!(spec, want);
    }
}
