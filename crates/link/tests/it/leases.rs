//! From when a lease counts over a stream: never from later than when it was sent.

use atoll_link::Ledger;
use proptest::prelude::*;

#[test]
fn a_span_counts_from_when_the_last_frame_that_its_sender_had_was_sent() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.sent_after(0), None, "its sender has heard nothing of us");
    assert_eq!((ledger.send(10), ledger.send(20), ledger.send(30)), (1, 2, 3));
    assert_eq!(ledger.sent_after(2), Some(20));
    assert_eq!(ledger.sent_after(2), Some(20), "frames that follow it were sent no earlier");
    assert_eq!(ledger.sent_after(99), None, "a lie");
    assert_eq!(ledger.sent_after(3), Some(30));
}

proptest! {
    /// A member sends frames, a hub answers with leases, and both ways take any time: the member's right never outlasts the hub's.
    #[test]
    fn a_right_to_write_never_outlasts_the_hubs(steps in prop::collection::vec((any::<bool>(), 0..50_u64, 0..50_u64), 1..200)) {
        let mut ledger = Ledger::default();
        let (mut now, mut arrives) = (0_u64, 0_u64);
        // Frames on their way to the hub: when they arrive, and their number.
        let mut underway: Vec<(u64, u64)> = Vec::new();
        let mut heard = 0;
        for (sends, passes, takes) in steps {
            now += passes;
            if sends {
                let number = ledger.send(now);
                arrives = arrives.max(now + takes); // in order
                underway.push((arrives, number));
                continue;
            }
            // The hub lends what it has left: its lease ends 100 after this moment.
            heard = underway.iter().filter(|(at, _)| *at <= now).map(|(_, number)| *number).max().unwrap_or(heard);
            let (lent_at, left) = (now, 100);
            now += takes; // on its way to the member
            if let Some(from) = ledger.sent_after(heard) {
                prop_assert!(from + left <= lent_at + left);
            }
        }
    }
}
