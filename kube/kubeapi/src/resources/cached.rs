//! What is derived from stored objects: made when somebody asks, and again after they changed.

use std::sync::{Arc, PoisonError, RwLock};

/// A value, unless something that it was made of has changed.
#[derive(Debug)]
pub(crate) struct Cached<T>(RwLock<Option<Arc<T>>>);

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T> Cached<T> {
    /// What it was made of has changed.
    pub(crate) fn changed(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The value of this moment. While it is made, whoever says that something changed waits: no change is missed.
    pub(crate) fn now(&self, make: impl FnOnce() -> T) -> Arc<T> {
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
    fn a_value_is_made_once_per_change() {
        let cached = Cached::default();
        assert_eq!((*cached.now(|| 1), *cached.now(|| 2)), (1, 1));
        cached.changed();
        assert_eq!(*cached.now(|| 3), 3);
    }
}
