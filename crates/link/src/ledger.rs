//! From when a span counts that the other side has named.
//!
//! A lease says how long it is held, counted from when it was sent. Over a stream the receiver does not know that moment, and
//! must not take a later one: then it would write when another hub may already lead. But every frame says which of the
//! receiver's own frames its sender had, and those were sent earlier still. So a span counts from the moment at which the
//! newest frame that the sender had heard was sent: never too late, and too early by no more than one way there and one back.

use std::collections::VecDeque;

/// The frames that we have sent, and when. `M` is a moment.
#[derive(Debug)]
pub struct Ledger<M> {
    last: u64,
    sent: VecDeque<(u64, M)>,
    /// When the newest frame that the other side has heard was sent.
    heard: Option<M>,
}

/// So many frames are noted; of those that come after, until the other side speaks, the moment is not kept.
const MOST: usize = 4096;

impl<M> Default for Ledger<M> {
    fn default() -> Self {
        Self { last: 0, sent: VecDeque::new(), heard: None }
    }
}

impl<M: Copy> Ledger<M> {
    /// A frame is sent at this moment; it gets this number.
    pub fn send(&mut self, now: M) -> u64 {
        self.last += 1;
        if self.sent.len() < MOST {
            self.sent.push_back((self.last, now));
        }
        self.last
    }

    /// A frame has come whose sender had heard ours up to this number: it was sent at this moment or later. None if its sender
    /// had heard nothing of us, or says that it heard what we never sent.
    pub fn sent_after(&mut self, heard: u64) -> Option<M> {
        if heard > self.last {
            return None;
        }
        while let Some((_, at)) = self.sent.pop_front_if(|(number, _)| *number <= heard) {
            self.heard = Some(at);
        }
        self.heard
    }
}
