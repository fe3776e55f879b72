//! Bindings: what is read of those that are there, what is written of ours, and what is done about those that are not ours.

use std::collections::BTreeSet;

use atoll_api::names::{annotation, event};
use atoll_engine::placement::Change;
use atoll_engine::placement::object::ObjectKey;
use serde_json::Value;

use super::super::binding::{self, Held, Recalled};
use super::super::seal::Unbelieved;
use super::{Command, Propagator, Source, is_going, uid};

impl Propagator {
    /// A binding of a former life, or one that a user has deleted, changed or made.
    pub(super) fn bound(&mut self, source: &Source, key: &ObjectKey, object: Option<&Value>) {
        let Some(object) = object else { return self.unbound(key) };
        let recalled = match self.sealer.believe(key, object) {
            Ok(recalled) => recalled,
            Err(why) => return self.disbelieve(key, object, why),
        };
        if self.bindings.contains_key(key) {
            // Ours, as we wrote it.
            if is_going(object) {
                self.deleted.insert(key.clone());
            }
        } else if !(is_going(object) && self.listed.contains(source)) {
            self.recall(key, object, recalled);
        } // else one that we have let go of ourselves
    }

    fn recall(&mut self, key: &ObjectKey, object: &Value, recalled: Recalled) {
        let Recalled { of, decision, holders, required_by } = recalled;
        self.unbelieved.remove(key);
        let item = self.items.entry(of.clone()).or_default();
        item.binding = Some(key.clone());
        item.holders.extend(holders.into_iter().map(|id| (id, Held::Silent)));
        item.status = object["status"].clone();
        self.bindings.insert(key.clone(), of.clone());
        if is_going(object) {
            self.deleted.insert(key.clone());
        }
        if !required_by.is_empty() {
            self.along.push((of.clone(), required_by));
        }
        if let Some(decision) = decision {
            self.placer.apply(Change::Recalled(of, Box::new(decision)));
        } else {
            self.placer.look_again(&of);
        }
    }

    /// One that the hub did not write, or not like this. Nothing follows from it. Ours is written over it where we have one.
    fn disbelieve(&mut self, key: &ObjectKey, object: &Value, why: Unbelieved) {
        let message = format!(
            "{why}: nothing is copied or deleted because of it; delete it, or leave it to the hub to replace"
        );
        self.tell(key, &uid(Some(object)), true, event::binding::NOT_BELIEVED, message);
        if let Some(of) = self.bindings.get(key).cloned() {
            if is_going(object) {
                self.deleted.insert(key.clone());
            }
            let Some(item) = self.items.get_mut(&of).filter(|item| !item.anew) else { return };
            let ours = item.written["metadata"]["annotations"][annotation::SEAL].clone();
            // What is wrong again as soon as it is written is not written for ever.
            if ours.is_null() || item.repaired != ours {
                item.repaired = ours;
                (item.written, item.status, item.anew) = (Value::Null, Value::Null, true);
                self.placer.look_again(&of);
            }
        } else if is_going(object) {
            // It may have our finalizer.
            self.out.push(Command::DeleteBinding(key.clone()));
        } else {
            self.unbelieved.insert(key.clone());
        }
    }

    /// It is gone.
    fn unbound(&mut self, key: &ObjectKey) {
        self.unbelieved.remove(key);
        self.told.remove(&(key.clone(), event::binding::NOT_BELIEVED));
        let Some(of) = self.bindings.get(key).cloned() else { return };
        self.deleted.remove(key);
        if let Some(item) = self.items.get_mut(&of) {
            (item.written, item.status, item.persisted) = (Value::Null, Value::Null, false);
            self.placer.look_again(&of);
        } else {
            self.bindings.remove(key);
        }
    }

    /// Lets go of what was deleted though its template is there: it is made anew. In a namespace that goes the template goes too, and who
    /// holds a copy has to be known until then.
    pub(super) fn let_go(&mut self) {
        let done = self.deleted.extract_if(.., |key| {
            let item = self.bindings.get(key).and_then(|of| self.items.get(of));
            !self.closing.contains(&key.namespace) && item.is_some_and(|item| item.placed.is_some())
        });
        self.out.extend(done.map(Command::DeleteBinding));
    }

    /// Writes the binding, if it differs from what is there.
    pub(super) fn bind(&mut self, key: &ObjectKey) {
        let bindings = &self.bindings;
        let Some(placed) = self.items.get(key).and_then(|item| item.placed.as_ref()) else { return };
        let parents = placed.required_by.iter().filter_map(|parent| self.items.get(parent)?.binding.clone());
        let required_by: Vec<_> = parents.collect();
        let Some(item) = self.items.get_mut(key) else { return };
        let (Some(placed), Some(template)) = (&item.placed, self.placer.template(key)) else { return };
        let taken = |binding: &ObjectKey| bindings.get(binding).is_some_and(|of| of != key);
        let binding = item.binding.get_or_insert_with(|| binding::key_of(key, taken)).clone();
        let mut object = binding::write(&binding, key, template, placed, &item.holders, &required_by);
        self.sealer.seal(&mut object);
        if object != item.written {
            // Fewer holders can be said later; more have to be said before.
            let more = holders_of(&object).difference(&holders_of(&item.written)).next().is_some();
            item.persisted &= !more;
            item.written = object.clone();
            item.anew |= self.unbelieved.contains(&binding);
            let anew = item.anew;
            self.bindings.insert(binding.clone(), key.clone());
            self.out.push(Command::PutBinding { of: key.clone(), binding, object: Box::new(object), anew });
        }
    }
}

fn holders_of(binding: &Value) -> BTreeSet<String> {
    let named = binding["metadata"]["annotations"][annotation::HOLDERS].as_str();
    named.unwrap_or_default().split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
