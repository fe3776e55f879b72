//! How it is with the slices that `MultiClusterServices` bring to members, by the members' own word. A word on an older plan does
//! not count.

use std::collections::{BTreeMap, BTreeSet};

use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_link::Dispatched;

/// What members have answered, by service.
#[derive(Debug, Default)]
pub(super) struct Answers {
    number: u64,
    of: BTreeMap<ServiceKey, BTreeMap<ClusterId, Answer>>,
    /// Services about which something may be new.
    news: BTreeSet<ServiceKey>,
}

#[derive(Debug)]
struct Answer {
    number: u64,
    said: Option<Dispatched>,
}

impl Answers {
    /// From here on members are asked about this service, whether or not anything is asked for it.
    pub(super) fn follow(&mut self, key: &ServiceKey) {
        self.of.entry(key.clone()).or_default();
        self.news.insert(key.clone());
    }

    /// The services that members are asked about.
    pub(super) fn followed(&self) -> impl Iterator<Item = &ServiceKey> {
        self.of.keys()
    }

    /// It is not asked about any more.
    pub(super) fn forget(&mut self, key: &ServiceKey) {
        self.of.remove(key);
        self.news.remove(key);
    }

    /// The member is asked anew; with this number.
    pub(super) fn ask(&mut self, key: &ServiceKey, id: &ClusterId) -> Option<u64> {
        let members = self.of.get_mut(key)?;
        self.number += 1;
        members.insert(id.clone(), Answer { number: self.number, said: None });
        self.news.insert(key.clone());
        Some(self.number)
    }

    /// A member has answered.
    pub(super) fn take(&mut self, id: &ClusterId, said: Dispatched) {
        let members = self.of.get_mut(&said.service);
        let Some(answer) = members.and_then(|members| members.get_mut(id)) else { return };
        if answer.number == said.answers {
            self.news.insert(said.service.clone());
            answer.said = Some(said);
        }
    }

    /// It is no member any more, or knows nothing any more.
    pub(super) fn left(&mut self, id: &ClusterId) {
        for (key, members) in &mut self.of {
            if members.remove(id).is_some() {
                self.news.insert(key.clone());
            }
        }
    }

    /// Something about the service is new.
    pub(super) fn touch(&mut self, key: &ServiceKey) {
        if self.of.contains_key(key) {
            self.news.insert(key.clone());
        }
    }

    /// Something about all services is new.
    pub(super) fn touch_all(&mut self) {
        self.news.extend(self.of.keys().cloned());
    }

    /// What a member has said, if it speaks of what it was last asked.
    pub(super) fn said(&self, key: &ServiceKey, id: &ClusterId) -> Option<&Dispatched> {
        self.of.get(key)?.get(id)?.said.as_ref()
    }

    /// The services about which something may be new, once.
    pub(super) fn news(&mut self) -> BTreeSet<ServiceKey> {
        std::mem::take(&mut self.news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_on_an_older_plan_does_not_count() {
        let (key, id) = (ServiceKey::parse("shop", "web").unwrap(), ClusterId::parse("a").unwrap());
        let mut answers = Answers::default();
        assert_eq!(answers.ask(&key, &id), None, "it is not followed");
        answers.follow(&key);
        let first = answers.ask(&key, &id).unwrap();
        let second = answers.ask(&key, &id).unwrap();
        let said = |answers| Dispatched {
            service: key.clone(),
            answers,
            slices: 1,
            pending: false,
            problems: Vec::new(),
        };
        answers.news();
        answers.take(&id, said(first));
        assert!(answers.said(&key, &id).is_none() && answers.news().is_empty());
        answers.take(&id, said(second));
        assert!(answers.said(&key, &id).is_some() && answers.news().contains(&key));
        answers.left(&id);
        assert!(answers.said(&key, &id).is_none());
    }
}
