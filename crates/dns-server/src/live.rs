//! What answers are made from right now: read by every thread, replaced by one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use atoll_dns::{Catalog, Lookup, Name, Settings, Snapshot, Summary, Transport};

use crate::metrics::{Metrics, Tally};
use crate::options::Options;
use crate::watch::Watched;

/// The snapshot that answers are made from, and how well it is kept.
pub(crate) struct Live {
    snapshot: ArcSwap<Snapshot>,
    /// Of the cluster's own zone, if that is answered.
    cluster: Option<ArcSwap<Snapshot>>,
    /// Since when each watch has been silent; none while it is up.
    lost: Mutex<[Option<Instant>; Watched::ALL.len()]>,
}

impl Live {
    pub(crate) fn new(options: &Options) -> Self {
        let nothing =
            |settings: &Settings| ArcSwap::from_pointee(Catalog::new(settings.clone(), 0).snapshot().clone());
        let cluster = options.cluster_zone.as_ref().map(nothing);
        let now = Instant::now();
        let lost = Watched::ALL.map(|kind| (cluster.is_some() || !kind.of_cluster_zone()).then_some(now));
        Self { snapshot: nothing(&options.settings), cluster, lost: Mutex::new(lost) }
    }

    pub(crate) fn replace(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
    }

    pub(crate) fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.snapshot.load()
    }

    pub(crate) fn replace_cluster(&self, snapshot: Snapshot) {
        if let Some(cluster) = &self.cluster {
            cluster.store(Arc::new(snapshot));
        }
    }

    /// The name of the cluster's own zone, if that is answered.
    pub(crate) fn cluster_zone(&self) -> Option<String> {
        Some(self.cluster.as_ref()?.load().zone().to_string())
    }

    /// Was everything of every zone listed at least once?
    pub(crate) fn complete(&self) -> bool {
        self.snapshot().complete() && self.cluster.as_ref().is_none_or(|cluster| cluster.load().complete())
    }

    /// Answers a packet into `out`; none: it deserves no answer.
    pub(crate) fn respond(
        &self,
        packet: &[u8],
        transport: Transport,
        turn: u32,
        out: &mut Vec<u8>,
    ) -> Option<Summary> {
        let snapshot = self.snapshot.load();
        match self.cluster.as_ref().map(ArcSwap::load) {
            None => atoll_dns::respond(&snapshot, packet, transport, turn, out),
            Some(cluster) => atoll_dns::respond_from(&[&snapshot, &cluster], packet, transport, turn, out),
        }
    }

    /// The addresses of a name.
    pub(crate) fn lookup(&self, name: &Name, turn: u32) -> Lookup {
        let snapshot = self.snapshot.load();
        match self.cluster.as_ref().map(ArcSwap::load) {
            None => atoll_dns::lookup(&[&snapshot], name, turn),
            Some(cluster) => atoll_dns::lookup(&[&snapshot, &cluster], name, turn),
        }
    }

    /// The watch sees changes as they come.
    pub(crate) fn follows(&self, kind: Watched) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)[kind as usize] = None;
    }

    /// The watch sees nothing. True if that is news.
    pub(crate) fn lost(&self, kind: Watched) -> bool {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let news = lost[kind as usize].is_none();
        lost[kind as usize].get_or_insert_with(Instant::now);
        news
    }

    /// How old the snapshot may be: zero while everything it is made of is watched.
    pub(crate) fn age(&self) -> Duration {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let needed = Watched::ALL.into_iter().filter(|kind| kind.answers_need_it());
        needed.filter_map(|kind| lost[kind as usize]).min().map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// What threads need to answer. When it is dropped, they end.
pub(crate) struct Answering {
    live: Arc<Live>,
    over: Arc<AtomicBool>,
}

impl Answering {
    pub(crate) fn new(live: &Arc<Live>) -> Self {
        Self { live: Arc::clone(live), over: Arc::default() }
    }

    /// For the thread of this number.
    pub(crate) fn thread(&self, number: usize, metrics: &Metrics) -> Answerer {
        Answerer {
            live: Arc::clone(&self.live),
            over: Arc::clone(&self.over),
            tally: metrics.tally(number),
            // Threads begin at different places, so that they don't say the same at the same time.
            turn: u32::try_from(number).unwrap_or_default(),
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// One thread's own.
pub(crate) struct Answerer {
    live: Arc<Live>,
    over: Arc<AtomicBool>,
    tally: Arc<Tally>,
    turn: u32,
}

impl Answerer {
    pub(crate) fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Answers a packet into `out`; none: it deserves no answer.
    pub(crate) fn answer(
        &mut self,
        packet: &[u8],
        transport: Transport,
        out: &mut Vec<u8>,
    ) -> Option<Summary> {
        self.turn = self.turn.wrapping_add(1);
        let answered = self.live.respond(packet, transport, self.turn, out);
        if answered.is_none() {
            self.tally.dropped();
        }
        answered
    }

    /// Answers a stranger who asks too often that he should come by TCP; none: the packet deserves no answer.
    pub(crate) fn send_to_tcp(&mut self, packet: &[u8], out: &mut Vec<u8>) -> Option<Summary> {
        self.tally.limited(true);
        atoll_dns::truncate(packet, out)
    }

    /// A stranger who asks too often gets nothing.
    pub(crate) fn refuse(&self) {
        self.tally.limited(false);
    }

    /// The answer is on its way.
    pub(crate) fn count(&self, summary: Summary, transport: Transport, since: Instant) {
        self.tally.answered(summary, transport, since.elapsed());
    }
}
