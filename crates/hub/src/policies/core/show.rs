//! What became of a template, shown in its binding and in itself: once, when those that will soon speak have spoken.

use std::collections::BTreeMap;

use atoll_engine::names::ClusterId;
use atoll_engine::placement::aggregate;
use atoll_engine::placement::object::ObjectKey;
use atoll_link::CopyState;
use serde_json::{Value, json};

use super::super::binding::{self, Held};
use super::{Command, Propagator};

impl Propagator {
    /// Whether something is not shown yet, or not let go of: then [`super::Event::Waited`] is wanted after a while.
    pub(in crate::policies) fn waits(&self) -> bool {
        !self.unshown.is_empty() || !self.deleted.is_empty()
    }

    /// Shows what has waited for a whole while: a member that runs may still have nothing to say.
    pub(super) fn show_waiting(&mut self, now: &str) {
        for key in self.unshown.overdue() {
            self.show_binding(&key, now);
        }
    }

    /// Shows what became of it: in the binding, and in the template itself.
    pub(super) fn show(&mut self, key: &ObjectKey, now: &str) {
        let Some(item) = self.items.get(key) else { return };
        if item.written.is_null() || item.placed.is_none() || item.binding.is_none() {
            return;
        }
        if item.holders.iter().any(|(id, held)| self.is_awaited(id, held)) {
            self.unshown.wait(key);
        } else {
            self.unshown.done(key);
            self.show_binding(key, now);
        }
        self.tell_imported(key);
        self.show_template(key);
    }

    /// Whether a cluster has not spoken, and will: it runs.
    pub(super) fn is_awaited(&self, id: &ClusterId, held: &Held) -> bool {
        *held == Held::Silent && self.members.contains(id)
    }

    fn show_binding(&mut self, key: &ObjectKey, now: &str) {
        let Some(item) = self.items.get_mut(key).filter(|item| !item.written.is_null()) else { return };
        let (Some(placed), Some(binding)) = (&item.placed, &item.binding) else { return };
        let status = binding::status(placed, &item.holders, &item.status, now);
        if status != item.status {
            item.status = status.clone();
            self.out.push(Command::PutStatus(binding.clone(), Box::new(status)));
        }
    }

    fn show_template(&mut self, key: &ObjectKey) {
        let (Some(item), Some(template)) = (self.items.get_mut(key), self.placer.template(key)) else {
            return;
        };
        let said: BTreeMap<ClusterId, Value> = item
            .holders
            .iter()
            .filter_map(|(id, held)| match held {
                Held::Said(CopyState::Applied { status, .. }) => Some((id.clone(), status.clone())),
                Held::Said(CopyState::NotApplied(_) | CopyState::Gone)
                | Held::Silent
                | Held::Unordered(_) => None,
            })
            .collect();
        // What no member has said anything of is not zero.
        if said.values().all(Value::is_null) {
            return;
        }
        let Some(status) = aggregate::aggregate(template, &said) else { return };
        let nothing_to_say = item.template_status.is_null() && status == json!({ "loadBalancer": {} });
        if status != item.template_status && !nothing_to_say {
            item.template_status = status.clone();
            self.out.push(Command::PutStatus(key.clone(), Box::new(status)));
        }
    }
}
