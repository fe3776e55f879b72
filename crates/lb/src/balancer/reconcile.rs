//! The one task that owns the pools: what is desired, what was noticed, and time go in; views for the threads come out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use atoll_balance::{Pool, Standing};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::active::Active;
use super::{LOOK, Request, Unbound};
use crate::check;
use crate::desired::{Desired, Listener, Protocol, Source};
use crate::error::LbError;
use crate::kernel::{self, Kernel, plan};
use crate::metrics::{ListenerStatus, Monitor};
use crate::path::{DataPath, forwards, may_use_kernel, why_not_kernel};
use crate::userspace::live::{Live, Report, Reports, View};
use crate::userspace::threads::Threads;
use crate::vips::{self, Vips};

/// For so long a listener that closes takes whoever waits at its door.
const DOOR: Duration = Duration::from_millis(500);
/// How often it is looked whether addresses are still on their interfaces.
const HOLD: Duration = Duration::from_secs(5);
const NOT_FORWARDED: &str =
    "IP forwarding is off: set net.ipv4.ip_forward and net.ipv6.conf.all.forwarding to 1";
/// How often the kernel's counters are read.
const COUNT: Duration = Duration::from_secs(10);
/// How often an address that can't be listened on is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The task.
pub(super) struct Reconciler {
    started: Instant,
    path: DataPath,
    threads: Threads,
    /// None if it is not to be used, or not ours to use.
    kernel: Option<Kernel>,
    /// Whether it is known what is wanted.
    begun: bool,
    vips: Vips,
    reports: Reports,
    monitor: Arc<Monitor>,
    next_number: u64,
    listeners: BTreeMap<(Protocol, SocketAddr), Active>,
    /// Those that take no more clients and have some left.
    closing: Vec<Active>,
}

impl Reconciler {
    /// With nothing to do yet.
    pub(super) fn new(
        path: DataPath,
        threads: usize,
        monitor: Arc<Monitor>,
        reports: Reports,
    ) -> Result<Self, LbError> {
        Ok(Self {
            started: Instant::now(),
            path,
            threads: Threads::start(threads)?,
            kernel: match path {
                DataPath::UserSpace => None,
                DataPath::Auto => may_use_kernel().then(Kernel::default),
                DataPath::Kernel => Some(Kernel::default()),
            },
            reports,
            monitor,
            begun: false,
            vips: Vips::default(),
            next_number: 0,
            listeners: BTreeMap::new(),
            closing: Vec::new(),
        })
    }

    /// Until the handle is dropped.
    pub(super) async fn run(
        mut self,
        mut requests: mpsc::UnboundedReceiver<Request>,
        mut reported: mpsc::UnboundedReceiver<(u64, SocketAddr, Report)>,
    ) {
        let (checks, mut checked) = mpsc::unbounded_channel();
        let mut retry = Instant::now() + RETRY;
        let mut count = Instant::now() + COUNT;
        let mut hold = Instant::now() + HOLD;
        loop {
            let wait = self.wait();
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.obey(request).await,
                    None => return,
                },
                Some((number, address, report)) = reported.recv() => self.hear(number, address, report),
                Some((number, address, good)) = checked.recv() => self.checked(number, address, good),
                () = sleep(wait) => {}
            }
            // All that has come meanwhile is one turn.
            while let Ok((number, address, report)) = reported.try_recv() {
                self.hear(number, address, report);
            }
            while let Ok((number, address, good)) = checked.try_recv() {
                self.checked(number, address, good);
            }
            if Instant::now() >= retry {
                retry = Instant::now() + RETRY;
                self.bind_again();
            }
            let cut = self.tick();
            self.begin_checks(&checks);
            self.tell_kernel(cut).await;
            if Instant::now() >= count {
                count = Instant::now() + COUNT;
                self.count().await;
            }
            if Instant::now() >= hold {
                hold = Instant::now() + HOLD;
                self.vips.hold().await;
            }
            // Before it is known what is wanted, it is not known what is not.
            if self.begun {
                self.vips.release(&addresses(&self.closing)).await;
            }
        }
    }

    /// Counts what the kernel carries.
    async fn count(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            kernel.count().await;
        }
        self.take_counts();
    }

    fn take_counts(&mut self) {
        for (listener, backend, count) in self.kernel.as_mut().map(Kernel::take_counts).unwrap_or_default() {
            let state = self.listeners.get(&listener).and_then(|active| active.states.get(&backend));
            if let Some(state) = state {
                state.opened.fetch_add(count, Relaxed);
            }
        }
    }

    /// Where the kernel carries connections, it is told what has changed. It ends flows to those that are lost: threads see that by themselves.
    async fn tell_kernel(&mut self, cut: Vec<(Protocol, SocketAddr, SocketAddr)>) {
        // Before it is known what is wanted, what a former process left is better than nothing.
        let Some(kernel) = self.kernel.as_mut().filter(|_| self.begun) else { return };
        let by_kernel = self.listeners.values().filter(|active| active.by_kernel);
        let fit = by_kernel.filter(|active| plan::refusal(&active.listener).is_none());
        let wanted =
            fit.map(|active| (Arc::clone(&active.listener), Arc::clone(active.pool.picture()))).collect();
        // None if there was nothing new, as most of the time.
        let told = kernel.carry(wanted).await;
        if told.is_some() {
            self.take_counts();
        }
        let mut news = false;
        let [four, six] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()].map(forwards);
        for active in self.listeners.values_mut().filter(|active| active.by_kernel) {
            let forwarded = if active.listener.address.is_ipv4() { four } else { six };
            let bound = match (plan::refusal(&active.listener), &told) {
                (Some(why), _) => Err(active.unbound(why.to_owned(), "or let --data-path auto choose")),
                (None, Some(Err(why))) => {
                    Err(active.unbound(why.clone(), "it needs NET_ADMIN and nftables; it is tried again"))
                }
                (None, Some(Ok(())) | None) if !forwarded => {
                    Err(active.unbound(NOT_FORWARDED.to_owned(), "clients reach no backend until then"))
                }
                (None, Some(Ok(()))) => Ok(active.listener.address),
                (None, None) if active.bound.as_ref().is_err_and(|unbound| unbound.why == NOT_FORWARDED) => {
                    Ok(active.listener.address)
                }
                (None, None) => continue,
            };
            news |= bound != active.bound;
            if let (Err(unbound), true) = (&bound, bound != active.bound) {
                tracing::error!(listener = %unbound.name, address = %unbound.address, why = unbound.why, "cannot configure the kernel for this listener");
            }
            active.bound = bound;
        }
        if news {
            self.show();
        }
        // After the rules, or they would come back to where they were. There may be very many: they are not waited for.
        if !cut.is_empty() {
            tokio::spawn(async move {
                for (protocol, listener, backend) in cut {
                    Kernel::cut(protocol, listener, backend).await;
                }
            });
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long there is nothing to do.
    fn wait(&self) -> Duration {
        let now = self.now();
        let all = || self.listeners.values().chain(&self.closing);
        let next = all().filter_map(|active| active.pool.next()).min();
        let mut wait = next.map_or(RETRY, |at| at.saturating_sub(now)).min(RETRY);
        let leaves =
            |active: &Active| active.pool.standings().any(|(_, how)| matches!(how, Standing::Leaving { .. }));
        if all().any(leaves) {
            wait = wait.min(LOOK);
        }
        // What is due already was begun; a pause keeps a check that fails at once from spinning.
        wait.max(Duration::from_millis(1))
    }

    async fn obey(&mut self, request: Request) {
        match request {
            Request::Apply(desired, answer) => {
                self.vips.want(vips::named(&desired));
                self.vips.hold().await;
                self.apply(desired);
                self.tell_kernel(Vec::new()).await;
                let unbound =
                    self.listeners.values().filter_map(|active| active.bound.as_ref().err().cloned());
                // Whoever asked may have gone.
                let _ = answer.send(unbound.collect());
            }
            Request::Adopt(addresses, answer) => {
                self.vips.adopt(addresses);
                let _ = answer.send(());
            }
            Request::Where(answer) => {
                let bound = self.listeners.values().filter_map(|active| {
                    active.bound.as_ref().ok().map(|address| (Arc::clone(&active.listener.name), *address))
                });
                let _ = answer.send(bound.collect());
            }
            Request::Finish(answer) => {
                let now = self.now();
                let (kernel, ours) =
                    std::mem::take(&mut self.listeners).into_iter().partition(|(_, active)| active.by_kernel);
                self.listeners = kernel;
                self.close(ours, now);
                let _ = answer
                    .send(self.closing.iter().any(|active| !active.by_kernel && !active.states.is_empty()));
            }
        }
    }

    fn apply(&mut self, desired: Desired) {
        if !self.begun && self.path == DataPath::UserSpace {
            tokio::spawn(kernel::warn_of_leftovers());
        }
        self.begun = true;
        let now = self.now();
        let mut before = std::mem::take(&mut self.listeners);
        for listener in desired.listeners {
            let key = listener.key();
            let by_kernel = self.is_for_kernel(&listener);
            // One that changes its carrier ends with the old one and begins with the new one.
            let same = before.get(&key).is_some_and(|active| active.by_kernel == by_kernel);
            let known = if same { before.remove(&key) } else { None };
            let active = match known {
                Some(active) if *active.listener == listener => active,
                Some(mut active) => {
                    active.configure(listener, now);
                    active
                }
                None => self.open(listener, by_kernel, now),
            };
            self.listeners.insert(key, active);
        }
        self.close(before, now);
        self.show();
    }

    fn close(&mut self, listeners: BTreeMap<(Protocol, SocketAddr), Active>, now: Duration) {
        for (_, mut active) in listeners {
            if !active.by_kernel {
                self.threads.close(active.live.number);
            }
            // Threads keep their view: whoever waits at the door is let in.
            let settings = active.listener.settings.clone();
            active.pool.configure(settings, Vec::new(), now);
            active.stand();
            active.door = now + DOOR;
            tracing::info!(listener = %active.listener.name, address = %active.listener.address, "closing");
            self.closing.push(active);
        }
    }

    fn is_for_kernel(&self, listener: &Listener) -> bool {
        match self.path {
            DataPath::UserSpace => false,
            DataPath::Kernel => true,
            DataPath::Auto => self.why_not_kernel(listener).is_none(),
        }
    }

    fn why_not_kernel(&self, listener: &Listener) -> Option<&'static str> {
        if self.kernel.is_none() {
            return Some("this process lacks the capability NET_ADMIN");
        }
        why_not_kernel(listener).or_else(|| (!forwards(listener.address.ip())).then_some(NOT_FORWARDED))
    }

    fn open(&mut self, listener: Listener, by_kernel: bool, now: Duration) -> Active {
        let listener = Arc::new(listener);
        let (name, address) = (&listener.name, listener.address);
        if !by_kernel && self.path == DataPath::Auto {
            let why = self.why_not_kernel(&listener).unwrap_or_default();
            tracing::info!(listener = %name, %address, why, "using user space instead of the kernel");
        }
        if !by_kernel && listener.source != Source::Masquerade {
            tracing::warn!(listener = %name, %address, "backends see the address of this host: `source` needs the kernel data path");
        }
        self.next_number += 1;
        let view = View {
            listener: Arc::clone(&listener),
            picture: Arc::default(),
            states: Vec::new(),
            affinity: None,
        };
        let live = Arc::new(Live::new(self.next_number, self.started, view, self.reports.clone()));
        let mut active = Active {
            listener: Arc::clone(&listener),
            live,
            pool: Pool::default(),
            states: BTreeMap::new(),
            affinity: None,
            lost: Vec::new(),
            by_kernel,
            bound: Ok(listener.address),
            door: Duration::ZERO,
        };
        active.configure(Listener::clone(&listener), now);
        if !by_kernel {
            active.bind(&self.threads);
            if let Err(unbound) = &active.bound {
                let Unbound { name, address, why, hint } = unbound;
                tracing::error!(listener = %name, %address, why, hint, "cannot listen; trying again");
            }
        }
        active
    }

    fn bind_again(&mut self) {
        let mut news = false;
        for active in self.listeners.values_mut().filter(|active| active.bound.is_err() && !active.by_kernel)
        {
            active.bind(&self.threads);
            news |= active.bound.is_ok();
        }
        if news {
            self.show();
        }
    }

    fn of_number(&mut self, number: u64) -> Option<&mut Active> {
        self.listeners.values_mut().chain(&mut self.closing).find(|active| active.live.number == number)
    }

    fn hear(&mut self, number: u64, address: SocketAddr, report: Report) {
        let now = self.now();
        let Some(active) = self.of_number(number) else { return };
        let changed = match report {
            Report::Passed => {
                active.pool.passed(address);
                false
            }
            Report::Failed => active.pool.failed(address, now),
        };
        if let Some(state) = active.states.get(&address) {
            state.doubted.store(active.pool.doubted(address), Relaxed);
        }
        if changed {
            tracing::warn!(listener = %active.listener.name, backend = %address, "ejected: connections to it fail");
            active.publish();
        }
    }

    /// A check has ended; none if it says nothing about the backend.
    fn checked(&mut self, number: u64, address: SocketAddr, good: Option<bool>) {
        let now = self.now();
        let Some(active) = self.of_number(number) else { return };
        let Some(good) = good else {
            active.pool.unchecked(address, now);
            return;
        };
        let before = active.states.get(&address).map(|state| state.standing());
        if active.pool.checked(address, good, now) {
            active.publish();
        } else {
            active.stand();
        }
        let after = active.states.get(&address).map(|state| state.standing());
        if before != after {
            let level = active.pool.picture().level();
            tracing::info!(listener = %active.listener.name, backend = %address, good, ?level, "its checks changed their verdict");
        }
    }

    fn begin_checks(&mut self, done: &mpsc::UnboundedSender<(u64, SocketAddr, Option<bool>)>) {
        let now = self.now();
        for active in self.listeners.values_mut() {
            let Some(checks) = active.listener.settings.checks else { continue };
            for address in active.pool.begin_checks(now) {
                let (number, done) = (active.live.number, done.clone());
                let port = active.listener.check_port.unwrap_or(address.port());
                tokio::spawn(async move {
                    let good = check::answers(SocketAddr::new(address.ip(), port), checks.timeout).await;
                    let _ = done.send((number, address, good));
                });
            }
        }
    }

    /// Lets time pass; gives back whose flows have to end.
    fn tick(&mut self) -> Vec<(Protocol, SocketAddr, SocketAddr)> {
        let now = self.now();
        let (mut news, mut cut) = (false, Vec::new());
        // One that was away for a moment and is here again has its connections by the same addresses.
        let here: BTreeSet<_> = if self.closing.iter().any(|active| active.by_kernel) {
            let by_kernel = self.listeners.values().filter(|active| active.by_kernel);
            by_kernel
                .flat_map(|active| {
                    active.listener.backends.iter().map(|one| (active.listener.key(), one.address))
                })
                .collect()
        } else {
            BTreeSet::new()
        };
        for active in self.listeners.values_mut().chain(&mut self.closing) {
            let gone = active.tick(now);
            news |= !gone.is_empty();
            let (protocol, address) = active.listener.key();
            if !active.by_kernel {
                continue;
            }
            let gone = gone.into_iter().filter(|backend| !here.contains(&((protocol, address), *backend)));
            let lost = std::mem::take(&mut active.lost);
            cut.extend(gone.chain(lost).map(|backend| (protocol, address, backend)));
        }
        let before = self.closing.len();
        self.closing.retain(|active| !active.states.is_empty());
        if news || before != self.closing.len() {
            self.show();
        }
        cut
    }

    /// What metrics are made from.
    fn show(&self) {
        let wanted = self.listeners.values().map(|active| (active, true));
        let all = wanted.chain(self.closing.iter().map(|active| (active, false)));
        self.monitor.show(all.map(|(active, wanted)| ListenerStatus {
            listener: Arc::clone(&active.listener),
            live: Arc::clone(&active.live),
            backends: active.states.values().cloned().collect(),
            unbound: active.bound.as_ref().err().filter(|_| wanted).cloned(),
            by_kernel: active.by_kernel,
            wanted,
        }));
    }
}

/// The addresses on interfaces of those that still have clients.
fn addresses(closing: &[Active]) -> BTreeSet<(Arc<str>, IpAddr)> {
    let on = |active: &Active| {
        Some((Arc::clone(active.listener.interface.as_ref()?), active.listener.address.ip()))
    };
    closing.iter().filter_map(on).collect()
}
