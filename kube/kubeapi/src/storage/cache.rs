//! What is derived from stored objects: computed when it is first needed, and again after they have changed.

use std::sync::{Arc, PoisonError, RwLock};

/// A value, until one of the objects that it was computed from changes.
#[derive(Debug)]
pub(crate) struct Cache<T>(RwLock<Option<Arc<T>>>);

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Clone> Cache<T> {
    /// A part of what it was computed from has changed: `change` brings the value up to date. It reads what is there now, so that
    /// of two changes the later one is not lost, whichever is told first.
    pub(crate) fn update(&self, change: impl FnOnce(&mut T)) {
        if let Some(known) = &mut *self.0.write().unwrap_or_else(PoisonError::into_inner) {
            change(Arc::make_mut(known));
        }
    }
}

impl<T> Cache<T> {
    /// What it was computed from has changed.
    pub(crate) fn invalidate(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The current value. While it is computed, [`Self::invalidate`] waits: no change is missed.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(known) = &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            return Arc::clone(known);
        }
        let mut slot = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slot.get_or_insert_with(|| Arc::new(make())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_computed_once_per_change() {
        let cached = Cache::default();
        assert_eq!((*cached.get(|| 1), *cached.get(|| 2)), (1, 1));
        cached.invalidate();
        cached.update(|_| unreachable!("there is nothing to bring up to date"));
        assert_eq!(*cached.get(|| 3), 3);
        let before = cached.get(|| 4);
        cached.update(|value| *value += 1);
        assert_eq!((*before, *cached.get(|| 5)), (3, 4), "who has the old value keeps it");
    }
}
