//! How a write moves ownership between managers.
//!
//! ```text
//!   written   what changed goes to the writer, what vanished is removed from all managers
//!   applied   the applier has what it applies; what it gave up and no other manager has is removed
//! ```

use super::Manager;
use super::compare::{Comparison, compare};
use super::field_set::field_set;
use super::managed::{Managed, Owned, Owner};
use super::merge::merge;
use super::reconcile::reconcile;
use super::remove::remove;
use super::set::Set;
use super::shape::Type;
use serde_json::Value;

/// The type of the object, and the fields that this way of writing never changes.
pub(super) struct Rules<'s> {
    pub(super) of: Type<'s>,
    pub(super) ignored: Set,
}

/// Fields that others own and that the write would change.
pub(super) type Taken = Vec<(Owner, Set)>;

/// Fields that no manager ever owns.
const UNOWNED: [&str; 11] = [
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
];

impl Rules<'_> {
    /// Ownership after an ordinary write.
    pub(super) fn written(
        &self,
        before: &Value,
        after: &Value,
        managed: &mut Managed,
        by: &Manager,
        now: &str,
    ) {
        self.renew(managed);
        let changed = self.changed(before, after);
        let others = managed.keys().cloned().collect::<Vec<_>>();
        self.take(&changed, managed, &others);
        let gained = changed.modified.union(&changed.added).difference(&Set::of(UNOWNED));
        if gained.is_empty() {
            return;
        }
        let writer = Owner::of(by);
        let last = managed.remove(&writer);
        // An API server forgets the time of a write through `scale`.
        let time = match by.subresource.as_deref() {
            Some("scale") => last.as_ref().and_then(|last| last.time.clone()),
            _ => Some(now.to_owned()),
        };
        let set = last.map(|last| last.set.union(&gained)).unwrap_or(gained);
        managed.insert(writer, Owned { set, api_version: by.api_version.clone(), time });
    }

    /// The object after `applier` applied `applied`, and its ownership in `managed`; none when nothing changed in it.
    ///
    /// # Errors
    /// What others own, unless `force` is set; or why the two can't be merged.
    pub(super) fn applied(
        &self,
        live: &Value,
        applied: &Value,
        managed: &mut Managed,
        applier: &Owner,
        api_version: &str,
        force: bool,
    ) -> Result<Option<Value>, MergeError> {
        self.renew(managed);
        let merged = merge(live, applied, self.of)
            .map_err(|problem| MergeError::Unmergeable(format!("failed to merge config: {problem}")))?;
        let set = field_set(applied, self.of).without(&self.ignored);
        let last = managed.get(applier).cloned();
        let time = last.as_ref().and_then(|last| last.time.clone());
        managed.insert(applier.clone(), Owned { set, api_version: api_version.to_owned(), time });
        let merged = self.prune(&merged, managed, last.as_ref().map(|last| &last.set));
        let changed = self.changed(live, &merged);
        let others: Vec<_> = managed.keys().filter(|owner| *owner != applier).cloned().collect();
        if !force {
            let taken = self.taken(&changed, managed, &others);
            if !taken.is_empty() {
                return Err(MergeError::Taken(taken));
            }
        }
        self.take(&changed, managed, &others);
        if let Some(owned) = managed.get_mut(applier) {
            owned.set = owned.set.difference(&Set::of(UNOWNED));
        }
        managed.retain(|_, owned| !owned.set.is_empty());
        Ok(Some(merged).filter(|merged| !super::element::same(live, merged)))
    }

    /// What changed, but for what this way of writing never changes.
    pub(super) fn changed(&self, before: &Value, after: &Value) -> Comparison {
        compare(before, after, self.of).without(&self.ignored)
    }

    fn renew(&self, managed: &mut Managed) {
        for owned in managed.values_mut() {
            owned.set = reconcile(&owned.set, self.of);
        }
    }

    fn taken(&self, changed: &Comparison, managed: &Managed, others: &[Owner]) -> Taken {
        let touched = changed.modified.union(&changed.added);
        let owned = others.iter().filter_map(|owner| Some((owner, managed.get(owner)?)));
        let taken = owned.map(|(owner, owned)| (owner.clone(), owned.set.intersection(&touched)));
        taken.filter(|(_, set)| !set.is_empty()).collect()
    }

    /// Takes what changed or vanished from `others`; who has nothing left is gone.
    fn take(&self, changed: &Comparison, managed: &mut Managed, others: &[Owner]) {
        for (owner, set) in self.taken(changed, managed, others) {
            if let Some(owned) = managed.get_mut(&owner) {
                owned.set = owned.set.difference(&set);
            }
        }
        for owner in others {
            if let Some(owned) = managed.get_mut(owner) {
                owned.set = owned.set.difference(&changed.removed);
            }
        }
        managed.retain(|_, owned| !owned.set.is_empty());
    }

    /// Removes what the applier had applied and no longer does, unless another manager has it.
    fn prune(&self, merged: &Value, managed: &Managed, last: Option<&Set>) -> Value {
        let Some(last) = last.filter(|last| !last.is_empty()) else { return merged.clone() };
        let named = |set: &Set| set.with_named_fields(Some(self.of));
        let last = named(last);
        let pruned = remove(merged, &last, self.of);
        // Back comes what any manager has, the applier's new configuration included,
        let all = managed.values().fold(Set::default(), |all, owned| all.union(&owned.set));
        let has = named(&field_set(merged, self.of));
        let kept = named(&field_set(&pruned, self.of)).union(&named(&all));
        let pruned = remove(merged, &has.difference(&kept), self.of);
        // and what only went with something that the applier had.
        let left = named(&field_set(&pruned, self.of));
        remove(merged, &has.difference(&left).intersection(&last), self.of)
    }
}

/// Why an apply is refused.
pub(super) enum MergeError {
    Taken(Taken),
    Unmergeable(String),
}
