//! Objects that the server itself deletes or changes.

use crate::api::ApiState;
use crate::http::request::{DeleteOptions, Propagation};
use crate::resources::resource::Resource;
use crate::resources::strategy::take_out;
use crate::resources::view;
use crate::storage::store::{Key, WriteError};
use crate::verbs::{Step, next_step};
use serde_json::Value;

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is gone.
    Gone,
    /// It waits for a finalizer, or for its time.
    Waits,
}

impl ApiState {
    /// Deletes an object as a client would, without authorisation.
    pub(super) async fn discard(
        &self,
        resource: &Resource,
        key: &Key,
        propagation: Option<Propagation>,
    ) -> Result<Fate, WriteError> {
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        loop {
            let Some(existing) = self.store.get(key) else { return Ok(Fate::Gone) };
            let old = view::shown(resource, &existing);
            let outcome = match next_step(resource, &old, &options, self.environment.now()) {
                Step::Nothing => return Ok(Fate::Waits),
                Step::Mark(new) => {
                    let written = self.write(resource, key.clone(), &new, Some(existing.revision)).await;
                    written.map(|_| Fate::Waits)
                }
                Step::Remove => self.remove(resource, &existing, &old).await.map(|_| Fate::Gone),
            };
            match outcome {
                Err(WriteError::Conflict(_)) => {}
                Err(WriteError::Missing) => return Ok(Fate::Gone),
                other => return other,
            }
        }
    }

    /// Changes an object; `change` says whether there is anything to change. An object whose last finalizer goes is gone.
    pub(super) async fn amend(
        &self,
        resource: &Resource,
        key: &Key,
        change: impl Fn(&mut Value) -> bool,
    ) -> Result<(), WriteError> {
        loop {
            let Some(existing) = self.store.get(key) else { return Ok(()) };
            let old = view::shown(resource, &existing);
            let mut new = old.clone();
            if !change(&mut new) {
                return Ok(());
            }
            let outcome = if crate::verbs::is_finished(&new, &old) {
                self.remove(resource, &existing, &old).await.map(|_| ())
            } else {
                self.write(resource, key.clone(), &new, Some(existing.revision)).await.map(|_| ())
            };
            match outcome {
                Err(WriteError::Conflict(_)) => {}
                Err(WriteError::Missing) => return Ok(()),
                other => return other,
            }
        }
    }
}

/// Removes a finalizer. False if it was not there.
pub(super) fn drop_finalizer(object: &mut Value, name: &str) -> bool {
    take_out(&mut object["metadata"], "finalizers", |one| one == name)
}
