//! The loop, on a lease in memory and under tokio's paused clock.

use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct InMemory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    record: Option<Record>,
    version: u64,
    down: bool,
}

impl InMemory {
    fn down(&self, down: bool) {
        self.0.lock().unwrap().down = down;
    }
    fn holder(&self) -> Option<String> {
        self.0.lock().unwrap().record.as_ref()?.holder.clone()
    }
}

impl Slot for InMemory {
    async fn read(&self) -> Result<Option<Record>, SlotError> {
        let state = self.0.lock().unwrap();
        if state.down { Err(SlotError::NoAnswer) } else { Ok(state.record.clone()) }
    }
    async fn write(&self, record: &Record) -> Result<Record, SlotError> {
        let mut state = self.0.lock().unwrap();
        if state.down {
            return Err(SlotError::NoAnswer);
        }
        let there = state.record.as_ref().map(|record| record.version.clone()).unwrap_or_default();
        if record.version != there {
            return Err(SlotError::Conflict);
        }
        state.version += 1;
        let written = Record { version: state.version.to_string(), ..record.clone() };
        state.record = Some(written.clone());
        Ok(written)
    }
}

const LEASE: Duration = Duration::from_secs(10);

fn election(slot: &InMemory, identity: &str, incarnation: &str) -> Election<InMemory> {
    Election::new(slot.clone(), identity.to_owned(), incarnation.to_owned(), LEASE)
}

#[tokio::test(start_paused = true)]
async fn a_leader_cut_off_stops_before_the_next_one_starts() {
    let slot = InMemory::default();
    let (mut first, mut second) = (election(&slot, "first", "1"), election(&slot, "second", "2"));
    first.acquire(|_| {}).await;
    let start = Instant::now();
    let cut = Cut(slot.clone(), Mutex::new(false));
    let mut first = Election { slot: cut, ..rebuilt(first) };
    first.slot.cut();
    let (lost, took) = tokio::join!(
        async {
            let lost = first.keep().await;
            (lost, Instant::now() - start)
        },
        async {
            second.acquire(|_| {}).await;
            Instant::now() - start
        }
    );
    assert_eq!(lost.0, Lost::Expired);
    assert!(lost.1 < took, "{:?} {took:?}", lost.1);
    assert!(took >= LEASE && took < LEASE + Duration::from_secs(3), "{took:?}");
    assert_eq!(slot.holder().as_deref(), Some("second"));
}

/// A slot that one candidate can't reach any more.
struct Cut(InMemory, Mutex<bool>);

impl Cut {
    fn cut(&self) {
        *self.1.lock().unwrap() = true;
    }
    fn is_cut(&self) -> bool {
        *self.1.lock().unwrap()
    }
}

impl Slot for Cut {
    async fn read(&self) -> Result<Option<Record>, SlotError> {
        if self.is_cut() { Err(SlotError::NoAnswer) } else { self.0.read().await }
    }
    async fn write(&self, record: &Record) -> Result<Record, SlotError> {
        if self.is_cut() { Err(SlotError::NoAnswer) } else { self.0.write(record).await }
    }
}

fn rebuilt(of: Election<InMemory>) -> Election<Cut> {
    let Election { rules, slot, permit, held, deadline, complaint } = of;
    Election { rules, slot: Cut(slot, Mutex::new(false)), permit, held, deadline, complaint }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_of_the_api_costs_nothing() {
    let slot = InMemory::default();
    let mut leader = election(&slot, "first", "1");
    leader.acquire(|_| {}).await;
    slot.down(true);
    let kept = tokio::time::timeout(Duration::from_secs(60), async {
        tokio::join!(leader.keep(), async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            slot.down(false);
        })
    });
    assert!(kept.await.is_err(), "it leads on");
}

#[tokio::test(start_paused = true)]
async fn a_restart_takes_the_lease_up_at_once_and_its_twin_goes() {
    let slot = InMemory::default();
    let (mut old, mut new) = (election(&slot, "hub-0", "1"), election(&slot, "hub-0", "2"));
    old.acquire(|_| {}).await;
    let start = Instant::now();
    new.acquire(|_| {}).await;
    assert_eq!(Instant::now(), start);
    assert_eq!(old.keep().await, Lost::Twin);
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_free() {
    let slot = InMemory::default();
    let (mut first, mut second) = (election(&slot, "first", "1"), election(&slot, "second", "2"));
    first.acquire(|_| {}).await;
    first.release().await;
    assert_eq!(slot.holder(), None);
    let start = Instant::now();
    second.acquire(|_| {}).await;
    assert_eq!(Instant::now(), start);
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_sees_no_lease_says_so_and_takes_it_when_it_can() {
    let slot = InMemory::default();
    slot.down(true);
    let mut candidate = election(&slot, "first", "1");
    let mut blind = 0;
    let seen = |view: View<'_>| {
        assert_eq!(view, View::Blind);
        blind += 1;
        if blind == 3 {
            slot.down(false);
        }
    };
    candidate.acquire(seen).await;
    assert_eq!((blind, slot.holder().as_deref()), (3, Some("first")));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_can_be_read_but_not_taken_is_no_standby() {
    let slot = Refusing(InMemory::default(), Mutex::new(2));
    let mut candidate = Election::new(slot, "first".to_owned(), "1".to_owned(), LEASE);
    let mut views = Vec::new();
    candidate.acquire(|view| views.push(view == View::Blind)).await;
    assert_eq!(views, [true, true]);
}

/// Refuses the first writes, as an API does whose namespace is being deleted.
struct Refusing(InMemory, Mutex<u8>);

impl Slot for Refusing {
    async fn read(&self) -> Result<Option<Record>, SlotError> {
        self.0.read().await
    }
    async fn write(&self, record: &Record) -> Result<Record, SlotError> {
        {
            let mut left = self.1.lock().unwrap();
            if *left > 0 {
                *left -= 1;
                return Err(SlotError::Api("the namespace is being terminated (403)".to_owned()));
            }
        }
        self.0.write(record).await
    }
}
