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
        assert_eq!(*cached.get(|| 3), 3);
    }
}
