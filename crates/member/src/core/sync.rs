//! The sync gate: has every kind been listed? Until then nothing is deleted.

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
        self.kinds.iter().all(|listing| listing.complete)
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
}
