//! Tells the hub how it is with dispatched slices, when that has changed. A changed slice alone is no news.

use std::collections::{BTreeMap, BTreeSet};

use atoll_engine::intent::Intent;
use atoll_engine::names::ServiceKey;

use super::object::{Kind, Target};
use super::see::named;
use super::{Command, Core, wanted};
use atoll_link::{Dispatched as Said, Problem, Up};

/// The services that the hub asks about.
#[derive(Debug, Default)]
pub(super) struct Dispatched {
    asked: BTreeMap<ServiceKey, Asked>,
    /// Those that may have changed since they were looked at.
    touched: BTreeSet<ServiceKey>,
}

#[derive(Debug)]
struct Asked {
    number: u64,
    told: Option<Said>,
}

impl Dispatched {
    /// The hub wants to know, from here on.
    pub(super) fn asked(&mut self, key: &ServiceKey, number: u64) {
        self.asked.insert(key.clone(), Asked { number, told: None });
        self.touched.insert(key.clone());
    }

    /// Something of the service was looked at, written or answered.
    pub(super) fn touch(&mut self, target: &Target) {
        if let Some(key) = target.service().filter(|key| self.asked.contains_key(*key)) {
            self.touched.insert(key.clone());
        }
    }
}

impl Core {
    /// Answers what has changed since the last time.
    pub(super) fn answer_dispatched(&mut self) {
        if !self.gate.may_write() {
            return;
        }
        for key in std::mem::take(&mut self.dispatched.touched) {
            let Some(mut asked) = self.dispatched.asked.remove(&key) else { continue };
            let state = self.dispatched_state(&key, asked.number);
            let over = self.part(&key).is_none() && state.slices == 0 && !state.pending;
            if asked.told.as_ref() != Some(&state) {
                asked.told = Some(state.clone());
                self.out.push(Command::Report(Up::Dispatched(state)));
            }
            if !over {
                self.dispatched.asked.insert(key, asked);
            }
        }
    }

    fn dispatched_state(&self, key: &ServiceKey, number: u64) -> Said {
        let held = self.cache.held.get(key).into_iter().flat_map(|held| &held.slices);
        let held = held.filter(|(_, slice)| slice.intent == Intent::CrossCluster);
        let (mut slices, mut pending, mut problems) = (0, false, Vec::new());
        for (name, _) in held {
            slices += 1;
            pending |= self.queue.awaits(&Target::Slice(key.clone(), name.clone()));
        }
        let wanted =
            self.part(key).into_iter().flat_map(|part| wanted::slices_of(part, Intent::CrossCluster));
        for slice in wanted {
            let target = Target::Slice(key.clone(), slice.name.clone());
            let object = named(Kind::Slice, &key.namespace, slice.name.as_str());
            if self.cache.foreign.contains_key(&object) {
                problems.push(Problem::Foreign { service: key.clone(), object }.to_string());
            } else if let Some(why) = self.refused.get(&target) {
                problems.push(Problem::Refused { object, why: why.to_string() }.to_string());
            } else {
                let there =
                    self.cache.held.get(key).is_some_and(|held| held.slices.contains_key(&slice.name));
                pending |= !there || self.queue.awaits(&target);
            }
        }
        problems.sort();
        Said { service: key.clone(), answers: number, slices, pending, problems }
    }
}
