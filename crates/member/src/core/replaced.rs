//! Slices that go wait until those that take over from them are there: no endpoint is missing in between.
//!
//! A slice waits for what was under way when it was to go, and for nothing later: a service that never rests would keep it for ever.

use std::collections::{BTreeMap, BTreeSet};

use atoll_engine::names::{ServiceKey, SliceName};

use super::object::Target;

/// Who waits for whom.
#[derive(Debug, Default)]
pub struct Replaced {
    waiting: BTreeMap<ServiceKey, BTreeMap<SliceName, BTreeSet<Target>>>,
}

impl Replaced {
    /// What the slice waits for; empty if it has waited, none if it was never told to.
    pub fn awaited(&self, key: &ServiceKey, name: &SliceName) -> Option<&BTreeSet<Target>> {
        self.waiting.get(key)?.get(name)
    }

    /// The slice has to wait for these.
    pub fn wait(&mut self, key: &ServiceKey, name: &SliceName, awaited: BTreeSet<Target>) {
        self.waiting.entry(key.clone()).or_default().insert(name.clone(), awaited);
    }

    /// A target is what it can be for now. Says which slices are to be looked at again.
    pub fn made(&mut self, target: &Target) -> Vec<Target> {
        let Some(key) = target.service() else { return Vec::new() };
        let Some(waiting) = self.waiting.get_mut(key) else { return Vec::new() };
        let mut again = Vec::new();
        waiting.retain(|name, awaited| {
            if !awaited.remove(target) {
                return true;
            }
            let service = matches!(target, Target::Service(..));
            if service || awaited.is_empty() {
                again.push(Target::Slice(key.clone(), name.clone()));
            }
            !service // Slices could not be written before their Service: now they are under way.
        });
        if waiting.is_empty() {
            let key = key.clone();
            self.waiting.remove(&key);
        }
        again
    }

    /// The slice is gone, or stays.
    pub fn forget(&mut self, key: &ServiceKey, name: &SliceName) {
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.remove(name);
            if waiting.is_empty() {
                self.waiting.remove(key);
            }
        }
    }
}
