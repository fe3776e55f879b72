//! The sync gate: has every kind been listed? Until then nothing is deleted.
//!
//! Nodes are awaited once, so that what they let pass is known before anything is planned. A member that may not list them works
//! without, and a new list of them holds nothing up: nothing of ours hangs on it.

use super::object::Kind;

/// How far each kind is listed.
#[derive(Debug, Default)]
pub struct Gate {
    kinds: [Listing; Kind::ALL.len()],
}

/// Counts the lists of a kind: what was last seen in an older one is gone when the newer is complete.
pub type Epoch = u32;

#[derive(Debug, Default, Clone, Copy)]
struct Listing {
    epoch: Epoch,
    once: bool,
    complete: bool,
}

impl Gate {
    /// A list has begun.
    pub fn start(&mut self, kind: Kind) {
        let listing = &mut self.kinds[kind as usize];
        listing.epoch += 1;
        listing.complete = false;
    }

    /// A list is complete. Says whether that opens the gate.
    pub fn complete(&mut self, kind: Kind) -> bool {
        let before = self.may_delete();
        let listing = &mut self.kinds[kind as usize];
        (listing.complete, listing.once) = (true, true);
        !before && self.may_delete()
    }

    /// A list will not come. Says whether that opens the gate; only nodes can be done without.
    pub fn give_up(&mut self, kind: Kind) -> bool {
        let before = self.may_delete();
        if kind == Kind::Node {
            self.kinds[kind as usize].once = true;
        }
        !before && self.may_delete()
    }

    /// The list that is going on, or the last one.
    pub fn epoch(&self, kind: Kind) -> Epoch {
        self.kinds[kind as usize].epoch
    }

    /// Whether every kind has been listed at least once: what is not known is not there, or was not there lately.
    pub fn may_write(&self) -> bool {
        self.kinds.iter().all(|listing| listing.once)
    }

    /// Whether no list is missing or under way.
    pub fn may_delete(&self) -> bool {
        let complete = |kind: Kind| kind == Kind::Node || self.kinds[kind as usize].complete;
        self.may_write() && Kind::ALL.into_iter().all(complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_opens_with_the_last_kind_and_closes_with_every_new_list() {
        let mut gate = Gate::default();
        for kind in Kind::ALL {
            assert!(!gate.may_write() && !gate.may_delete());
            gate.start(kind);
            assert_eq!(gate.complete(kind), kind == Kind::Property, "{kind:?}");
        }
        assert!(gate.may_write() && gate.may_delete());
        gate.start(Kind::Slice);
        assert!(gate.may_write() && !gate.may_delete());
        gate.start(Kind::Slice); // The list broke off and began anew.
        assert!(!gate.may_delete());
        assert!(gate.complete(Kind::Slice) && gate.may_delete());
    }

    #[test]
    fn only_the_nodes_can_be_done_without() {
        let mut gate = Gate::default();
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Node) {
            assert!(!gate.give_up(kind) && !gate.may_write(), "{kind:?}");
            gate.start(kind);
            gate.complete(kind);
        }
        gate.start(Kind::Node);
        assert!(!gate.may_write(), "the nodes may still come");
        assert!(gate.give_up(Kind::Node) && gate.may_write() && gate.may_delete());
        gate.start(Kind::Node);
        assert!(gate.may_delete(), "they are not awaited twice");
    }
}
