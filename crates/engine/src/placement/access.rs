//! Who wrote a policy, and what has to be known of them before it counts: a policy acts with its author's rights.
//!
//! ```text
//!   plan ──▶ Question ──▶ (the hub asks its API) ──▶ Verdict ──▶ what depends on it is planned again
//! ```
//! Until there is a verdict nothing changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::object::{Kind, ObjectKey};
use super::policy::PolicyId;
use crate::names::ClusterId;

/// The group that may do everything, whatever roles say.
const MASTERS: &str = "system:masters";
/// So many contents that were allowed are asked again at once.
const CONTENTS_AT_ONCE: usize = 100;

/// A user of the hub's API, as it was when they wrote a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Author {
    /// Their name.
    pub username: String,
    /// Empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Their groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What else was said of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Author {
    /// The author that a stamp names; none if it names no user.
    pub fn read(stamp: &str) -> Option<Self> {
        serde_json::from_str(stamp).ok().filter(|author: &Self| !author.username.is_empty())
    }

    /// Whether they may do everything: nothing has to be asked.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// What is known of who wrote a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stamp {
    /// They did.
    By(Arc<Author>),
    /// The author is not known, and it counts all the same: by the operator's word.
    Unchecked,
    /// The author is not known: it changes nothing.
    #[default]
    Missing,
}

/// Something that has to be known of an author.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// May they read, create and change objects of a kind in a namespace (in none, if empty)?
    Right(Arc<Author>, Kind, String),
    /// Might they create this very object, as JSON?
    Content(Arc<Author>, ObjectKey, Arc<str>),
    /// May a user of their name create and change objects of a kind in a namespace of this member (in none, if empty)?
    There(Arc<Author>, ClusterId, Kind, String),
}

impl Question {
    /// Whom it is about.
    pub fn author(&self) -> &Arc<Author> {
        match self {
            Self::Right(author, ..) | Self::Content(author, ..) | Self::There(author, ..) => author,
        }
    }
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They may.
    Allowed,
    /// They may not, for this reason.
    Denied(String),
}

/// A policy that does not count for a template, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The policy.
    pub policy: PolicyId,
    /// Whether it is one of overrides.
    pub overrides: bool,
    /// Why.
    pub why: Refused,
}

/// Why a policy does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Its author is not known.
    NoAuthor,
    /// Its author may not do what follows from it.
    NotAllowed {
        /// The author's name.
        author: String,
        /// What they may not do, and why.
        why: String,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAuthor => f.write_str("nobody knows who wrote it"),
            Self::NotAllowed { author, why } => write!(f, "its author {author:?} could not do this: {why}"),
        }
    }
}

/// Whether a policy counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    Yes,
    /// There is no answer yet.
    Unknown,
    No(Refused),
}

impl Counts {
    /// Both must count; what is refused is said before what is unknown.
    pub(super) fn and(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::No(_) => self,
            Self::Yes => other(),
            Self::Unknown => match other() {
                Self::No(why) => Self::No(why),
                Self::Yes | Self::Unknown => Self::Unknown,
            },
        }
    }

    /// One of them is enough.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::No(why), Self::No(_)) => Self::No(why),
        }
    }
}

/// What was asked, what was answered, and which templates depend on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    verdicts: BTreeMap<Question, Verdict>,
    users: BTreeMap<Question, BTreeSet<ObjectKey>>,
    used: BTreeMap<ObjectKey, BTreeSet<Question>>,
    /// Used by the plan that is being made.
    now: BTreeSet<Question>,
    fresh: Vec<Question>,
    refusals: Vec<Refusal>,
    /// The last of the allowed contents that was asked again.
    last: Option<Question>,
}

impl Access {
    /// Whether an author's policy counts for an object of this key: by their right to its kind.
    pub(super) fn right(&mut self, author: Option<&Arc<Author>>, key: &ObjectKey) -> Counts {
        self.ask(author, |author| Question::Right(author, key.kind.clone(), key.namespace.clone()))
    }

    /// Whether an author might make this very object.
    pub(super) fn content(
        &mut self,
        author: Option<&Arc<Author>>,
        key: &ObjectKey,
        object: &Arc<str>,
    ) -> Counts {
        self.ask(author, |author| Question::Content(author, key.clone(), Arc::clone(object)))
    }

    /// Whether an author might make objects of this kind in a member too.
    pub(super) fn there(&mut self, author: Option<&Arc<Author>>, id: &ClusterId, key: &ObjectKey) -> Counts {
        self.ask(author, |author| {
            Question::There(author, id.clone(), key.kind.clone(), key.namespace.clone())
        })
    }

    /// Whether the policy of a stamp counts for an object of this key.
    pub(super) fn stamped(&mut self, stamp: &Stamp, key: &ObjectKey) -> Counts {
        match stamp {
            Stamp::Missing => Counts::No(Refused::NoAuthor),
            Stamp::Unchecked => Counts::Yes,
            Stamp::By(author) => self.right(Some(author), key),
        }
    }

    fn ask(
        &mut self,
        author: Option<&Arc<Author>>,
        question: impl FnOnce(Arc<Author>) -> Question,
    ) -> Counts {
        let Some(author) = author.filter(|author| !author.is_master()) else { return Counts::Yes };
        let question = question(Arc::clone(author));
        let counts = match self.verdicts.get(&question) {
            Some(Verdict::Allowed) => Counts::Yes,
            Some(Verdict::Denied(why)) => {
                Counts::No(Refused::NotAllowed { author: author.username.clone(), why: why.clone() })
            }
            None => Counts::Unknown,
        };
        self.now.insert(question);
        counts
    }

    /// A policy does not count: users are told.
    pub(super) fn refuse(&mut self, policy: &PolicyId, overrides: bool, why: &Refused) {
        self.refusals.push(Refusal { policy: policy.clone(), overrides, why: why.clone() });
    }

    /// The plan of a template is made: what it no longer depends on is forgotten, what is new is asked.
    pub(super) fn planned(&mut self, key: &ObjectKey) {
        let now = std::mem::take(&mut self.now);
        let before = if now.is_empty() {
            self.used.remove(key).unwrap_or_default()
        } else {
            self.used.insert(key.clone(), now.clone()).unwrap_or_default()
        };
        for gone in before.difference(&now) {
            if let Some(users) = self.users.get_mut(gone) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(gone);
                    self.verdicts.remove(gone);
                }
            }
        }
        for new in now.difference(&before) {
            let users = self.users.entry(new.clone()).or_default();
            if users.is_empty() {
                self.fresh.push(new.clone());
            }
            users.insert(key.clone());
        }
    }

    /// Takes in an answer; the templates that have to be planned again.
    pub(super) fn answered(&mut self, question: Question, verdict: Verdict) -> BTreeSet<ObjectKey> {
        let Some(users) = self.users.get(&question) else { return BTreeSet::new() };
        let same = self.verdicts.get(&question) == Some(&verdict);
        let touched = if same { BTreeSet::new() } else { users.clone() };
        self.verdicts.insert(question, verdict);
        touched
    }

    pub(super) fn take_questions(&mut self) -> Vec<Question> {
        let fresh = std::mem::take(&mut self.fresh);
        fresh.into_iter().filter(|question| self.users.contains_key(question)).collect()
    }

    pub(super) fn take_refusals(&mut self) -> Vec<Refusal> {
        std::mem::take(&mut self.refusals)
    }

    /// What has to be asked again from time to time: rights come and go. Of contents that were allowed only a few: each is an
    /// object. They take turns.
    pub(super) fn stale(&mut self) -> Vec<Question> {
        let (mut stale, mut allowed) = (Vec::new(), Vec::new());
        for (question, verdict) in &self.verdicts {
            match (question, verdict) {
                (Question::Right(..) | Question::There(..), _)
                | (Question::Content(..), Verdict::Denied(_)) => stale.push(question),
                (Question::Content(..), Verdict::Allowed) => allowed.push(question),
            }
        }
        let had =
            allowed.partition_point(|question| self.last.as_ref().is_some_and(|last| **question <= *last));
        allowed.rotate_left(had);
        allowed.truncate(CONTENTS_AT_ONCE);
        let last = allowed.last().copied().cloned();
        let stale = stale.into_iter().chain(allowed).cloned().collect();
        self.last = last;
        stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { kind: Kind::new("v1", "Secret"), namespace: "shop".to_owned(), name: name.to_owned() }
    }

    fn author(name: &str, groups: &[&str]) -> Arc<Author> {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Arc::new(Author { username: name.to_owned(), groups, ..Author::default() })
    }

    #[test]
    fn a_right_is_asked_once_for_all_objects_of_a_kind_and_forgotten_with_the_last() {
        let (mut access, bob) = (Access::default(), author("bob", &[]));
        for name in ["a", "b"] {
            assert_eq!(access.right(Some(&bob), &key(name)), Counts::Unknown);
            access.planned(&key(name));
        }
        let asked = access.take_questions();
        assert_eq!(asked.len(), 1);
        let touched = access.answered(asked[0].clone(), Verdict::Allowed);
        assert_eq!(touched, BTreeSet::from([key("a"), key("b")]));
        assert_eq!(access.answered(asked[0].clone(), Verdict::Allowed), BTreeSet::new(), "nothing new");
        assert_eq!(access.right(Some(&bob), &key("a")), Counts::Yes);
        access.planned(&key("a"));
        for name in ["a", "b"] {
            access.planned(&key(name)); // it asks nothing any more
        }
        assert!(access.verdicts.is_empty() && access.users.is_empty() && access.used.is_empty());
    }

    #[test]
    fn contents_that_were_allowed_are_asked_again_in_turns_and_what_was_denied_each_time() {
        let (mut access, bob) = (Access::default(), author("bob", &[]));
        let object: Arc<str> = "{}".into();
        for number in 0..250 {
            let of = key(&format!("s{number:03}"));
            access.content(Some(&bob), &of, &object);
            access.planned(&of);
        }
        for (number, question) in access.take_questions().into_iter().enumerate() {
            let verdict = if number == 0 { Verdict::Denied("no".to_owned()) } else { Verdict::Allowed };
            access.answered(question, verdict);
        }
        let denied = access.stale().into_iter().next().unwrap();
        access.last = None;
        let mut seen = BTreeMap::new();
        for _ in 0..5 {
            let stale = access.stale();
            assert_eq!(stale.len(), 1 + CONTENTS_AT_ONCE);
            stale.into_iter().for_each(|question| *seen.entry(question).or_insert(0) += 1);
        }
        assert_eq!((seen.len(), seen[&denied]), (250, 5));
        assert!(seen.iter().all(|(question, times)| *question == denied || [2, 3].contains(times)), "turns");
    }

    #[test]
    fn who_may_do_everything_is_not_asked_about() {
        let mut access = Access::default();
        assert_eq!(access.right(Some(&author("root", &[MASTERS])), &key("a")), Counts::Yes);
        access.planned(&key("a"));
        assert!(access.take_questions().is_empty());
    }

    #[test]
    fn a_stamp_is_read_as_it_was_written_and_one_without_a_name_is_no_author() {
        let bob = Author::read(r#"{"username":"bob","groups":["dev"],"extra":{"k":["v"]}}"#).unwrap();
        assert_eq!(Author::read(&serde_json::to_string(&bob).unwrap()), Some(bob));
        for unnamed in ["", "{}", "bob", r#"{"username":""}"#, r#"{"username":"bob","groups":"dev"}"#] {
            assert_eq!(Author::read(unnamed), None, "{unnamed}");
        }
    }
}
