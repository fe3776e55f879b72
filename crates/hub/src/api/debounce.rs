//! What is not shown yet because it will soon be otherwise: shown when it has waited for a whole while. Who ticks says how long that is.

use std::collections::BTreeSet;

/// What waits since this while, and since the one before.
#[derive(Debug)]
pub(crate) struct Unshown<K> {
    now: BTreeSet<K>,
    before: BTreeSet<K>,
}

impl<K> Default for Unshown<K> {
    fn default() -> Self {
        Self { now: BTreeSet::new(), before: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Unshown<K> {
    /// It waits.
    pub(crate) fn wait(&mut self, key: &K) {
        if !self.before.contains(key) {
            self.now.insert(key.clone());
        }
    }

    /// It does not.
    pub(crate) fn done(&mut self, key: &K) {
        self.now.remove(key);
        self.before.remove(key);
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty() && self.before.is_empty()
    }

    /// A while has passed: what has waited for all of it.
    pub(crate) fn overdue(&mut self) -> BTreeSet<K> {
        let before = std::mem::take(&mut self.now);
        std::mem::replace(&mut self.before, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_overdue_after_a_whole_while_and_only_then() {
        let mut unshown = Unshown::default();
        unshown.wait(&"a");
        assert_eq!(unshown.overdue(), BTreeSet::new(), "a moment perhaps");
        unshown.wait(&"a");
        unshown.wait(&"b");
        assert_eq!(unshown.overdue(), BTreeSet::from(["a"]));
        unshown.done(&"b");
        assert!(unshown.is_empty());
        assert_eq!(unshown.overdue(), BTreeSet::new());
    }
}
