//! The one task that owns the pools: what is wanted, what was noticed, and time go in; views for the threads come out.

mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use atoll_balance::{Pool, Standing};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use self::kept::Kept;
use crate::check;
use crate::error::LbError;
use crate::kernel::{self, Kernel, plan};
use crate::metrics::{Board, Shown};
use crate::path::{DataPath, forwards, may_use_kernel, why_not_kernel};
use crate::userspace::live::{Live, Report, Reports, View};
use crate::userspace::threads::Threads;
use crate::vips::{self, Vips};
use crate::wanted::{Listener, Protocol, Source, Wanted};

/// How often it is looked whether those that leave have finished.
const LOOK: Duration = Duration::from_millis(100);
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

/// An address that can't be listened on; it is tried again by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbound {
    /// The listener.
    pub name: Arc<str>,
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    pub why: String,
    /// What to do.
    pub hint: &'static str,
}

/// A load balancer that carries connections until it is dropped.
#[derive(Debug)]
pub struct Balancer {
    orders: mpsc::UnboundedSender<Order>,
    board: Arc<Board>,
}

enum Order {
    Want(Wanted, oneshot::Sender<Vec<Unbound>>),
    /// Addresses on interfaces that a former process put there.
    Adopt(BTreeSet<(Arc<str>, IpAddr)>, oneshot::Sender<()>),
    Where(oneshot::Sender<Vec<(Arc<str>, SocketAddr)>>),
    /// Take no more clients; whether some are left.
    Finish(oneshot::Sender<bool>),
}

impl Balancer {
    /// Starts with nothing to do. In user space so many threads carry connections. Needs a tokio runtime to decide in.
    pub fn start(path: DataPath, threads: usize) -> Result<Self, LbError> {
        let (orders, inbox) = mpsc::unbounded_channel();
        let board = Arc::new(Board::default());
        let (reports, reported) = mpsc::unbounded_channel();
        let keeper = Keeper {
            started: Instant::now(),
            path,
            threads: Threads::start(threads)?,
            kernel: match path {
                DataPath::UserSpace => None,
                DataPath::Auto => may_use_kernel().then(Kernel::default),
                DataPath::Kernel => Some(Kernel::default()),
            },
            reports,
            board: Arc::clone(&board),
            begun: false,
            vips: Vips::default(),
            next_number: 0,
            listeners: BTreeMap::new(),
            closing: Vec::new(),
        };
        tokio::spawn(keeper.keep(inbox, reported));
        Ok(Self { orders, board })
    }

    /// Makes it so. What stays the same is not touched; connections that are open go on. Gives back the addresses that can't be listened on.
    pub async fn want(&self, wanted: Wanted) -> Vec<Unbound> {
        self.ask(|answer| Order::Want(wanted, answer)).await
    }

    /// What a former process of ours was last told: it may have put addresses on interfaces, which are to be taken away when nobody wants
    /// them.
    pub async fn adopt(&self, former: &Wanted) {
        let addresses = vips::named(former);
        self.ask(|answer| Order::Adopt(addresses, answer)).await;
    }

    /// Where it listens, by the listener's name: port 0 has become a real one.
    pub async fn addresses(&self) -> Vec<(Arc<str>, SocketAddr)> {
        self.ask(Order::Where).await
    }

    /// Takes no more clients, and waits until the last has left or their time is over. What the kernel carries goes on.
    pub async fn finish(&self) {
        while self.ask(Order::Finish).await {
            sleep(LOOK).await;
        }
    }

    pub(crate) fn board(&self) -> &Arc<Board> {
        &self.board
    }

    async fn ask<T: Default>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> T {
        let (answer, answered) = oneshot::channel();
        // The keeper ends only with its runtime, and then nobody waits here.
        let _ = self.orders.send(order(answer));
        answered.await.unwrap_or_default()
    }
}

struct Keeper {
    started: Instant,
    path: DataPath,
    threads: Threads,
    /// None if it is not to be used, or not ours to use.
    kernel: Option<Kernel>,
    /// Whether it is known what is wanted.
    begun: bool,
    vips: Vips,
    reports: Reports,
    board: Arc<Board>,
    next_number: u64,
    listeners: BTreeMap<(Protocol, SocketAddr), Kept>,
    /// Those that take no more clients and have some left.
    closing: Vec<Kept>,
}

impl Keeper {
    async fn keep(
        mut self,
        mut orders: mpsc::UnboundedReceiver<Order>,
        mut reported: mpsc::UnboundedReceiver<(u64, SocketAddr, Report)>,
    ) {
        let (checks, mut checked) = mpsc::unbounded_channel();
        let mut retry = Instant::now() + RETRY;
        let mut count = Instant::now() + COUNT;
        let mut hold = Instant::now() + HOLD;
        loop {
            let wait = self.wait();
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.obey(order).await,
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
            // Before it is known what is wanted, nobody knows what is not.
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
            let state = self.listeners.get(&listener).and_then(|kept| kept.states.get(&backend));
            if let Some(state) = state {
                state.opened.fetch_add(count, Relaxed);
            }
        }
    }

    /// Where the kernel carries connections, it is told what has changed. It ends flows to those that are lost: threads see that by themselves.
    async fn tell_kernel(&mut self, cut: Vec<(Protocol, SocketAddr, SocketAddr)>) {
        // Before it is known what is wanted, what a former process left is better than nothing.
        let Some(kernel) = self.kernel.as_mut().filter(|_| self.begun) else { return };
        let by_kernel = self.listeners.values().filter(|kept| kept.by_kernel);
        let fit = by_kernel.filter(|kept| plan::refusal(&kept.listener).is_none());
        let wanted = fit.map(|kept| (Arc::clone(&kept.listener), Arc::clone(kept.pool.picture()))).collect();
        // None if there was nothing new, as most of the time.
        let told = kernel.carry(wanted).await;
        if told.is_some() {
            self.take_counts();
        }
        let mut news = false;
        let [four, six] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()].map(forwards);
        for kept in self.listeners.values_mut().filter(|kept| kept.by_kernel) {
            let forwarded = if kept.listener.address.is_ipv4() { four } else { six };
            let bound = match (plan::refusal(&kept.listener), &told) {
                (Some(why), _) => Err(kept.unbound(why.to_owned(), "or use --data-path auto")),
                (None, Some(Err(why))) => {
                    Err(kept.unbound(why.clone(), "NET_ADMIN and nftables are required; trying again"))
                }
                (None, Some(Ok(())) | None) if !forwarded => {
                    Err(kept.unbound(NOT_FORWARDED.to_owned(), "clients get no answer until then"))
                }
                (None, Some(Ok(()))) => Ok(kept.listener.address),
                (None, None) if kept.bound.as_ref().is_err_and(|unbound| unbound.why == NOT_FORWARDED) => {
                    Ok(kept.listener.address)
                }
                (None, None) => continue,
            };
            news |= bound != kept.bound;
            if let (Err(unbound), true) = (&bound, bound != kept.bound) {
                tracing::error!(listener = %unbound.name, address = %unbound.address, why = unbound.why, "cannot configure the kernel for this listener");
            }
            kept.bound = bound;
        }
        if news {
            self.show();
        }
        // After the rules, or they would come back to where they were. There may be very many: nobody waits.
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
        let next = all().filter_map(|kept| kept.pool.next()).min();
        let mut wait = next.map_or(RETRY, |at| at.saturating_sub(now)).min(RETRY);
        let leaves =
            |kept: &Kept| kept.pool.standings().any(|(_, how)| matches!(how, Standing::Leaving { .. }));
        if all().any(leaves) {
            wait = wait.min(LOOK);
        }
        // What is due already was begun; a pause keeps a check that fails at once from spinning.
        wait.max(Duration::from_millis(1))
    }

    async fn obey(&mut self, order: Order) {
        match order {
            Order::Want(wanted, answer) => {
                self.vips.want(vips::named(&wanted));
                self.vips.hold().await;
                self.want(wanted);
                self.tell_kernel(Vec::new()).await;
                let unbound = self.listeners.values().filter_map(|kept| kept.bound.as_ref().err().cloned());
                // Whoever asked may have gone.
                let _ = answer.send(unbound.collect());
            }
            Order::Adopt(addresses, answer) => {
                self.vips.adopt(addresses);
                let _ = answer.send(());
            }
            Order::Where(answer) => {
                let bound = self.listeners.values().filter_map(|kept| {
                    kept.bound.as_ref().ok().map(|address| (Arc::clone(&kept.listener.name), *address))
                });
                let _ = answer.send(bound.collect());
            }
            Order::Finish(answer) => {
                let now = self.now();
                let (kernel, ours) =
                    std::mem::take(&mut self.listeners).into_iter().partition(|(_, kept)| kept.by_kernel);
                self.listeners = kernel;
                self.close(ours, now);
                let _ =
                    answer.send(self.closing.iter().any(|kept| !kept.by_kernel && !kept.states.is_empty()));
            }
        }
    }

    fn want(&mut self, wanted: Wanted) {
        if !self.begun && self.path == DataPath::UserSpace {
            tokio::spawn(kernel::warn_of_leftovers());
        }
        self.begun = true;
        let now = self.now();
        let mut before = std::mem::take(&mut self.listeners);
        for listener in wanted.listeners {
            let key = listener.key();
            let by_kernel = self.is_for_kernel(&listener);
            // One that changes its carrier ends with the old one and begins with the new one.
            let same = before.get(&key).is_some_and(|kept| kept.by_kernel == by_kernel);
            let known = if same { before.remove(&key) } else { None };
            let kept = match known {
                Some(kept) if *kept.listener == listener => kept,
                Some(mut kept) => {
                    kept.configure(listener, now);
                    kept
                }
                None => self.open(listener, by_kernel, now),
            };
            self.listeners.insert(key, kept);
        }
        self.close(before, now);
        self.show();
    }

    fn close(&mut self, listeners: BTreeMap<(Protocol, SocketAddr), Kept>, now: Duration) {
        for (_, mut kept) in listeners {
            if !kept.by_kernel {
                self.threads.close(kept.live.number);
            }
            // Threads keep their view: whoever waits at the door is let in.
            let settings = kept.listener.settings.clone();
            kept.pool.configure(settings, Vec::new(), now);
            kept.stand();
            kept.door = now + DOOR;
            tracing::info!(listener = %kept.listener.name, address = %kept.listener.address, "closing");
            self.closing.push(kept);
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

    fn open(&mut self, listener: Listener, by_kernel: bool, now: Duration) -> Kept {
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
        let mut kept = Kept {
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
        kept.configure(Listener::clone(&listener), now);
        if !by_kernel {
            kept.bind(&self.threads);
            if let Err(unbound) = &kept.bound {
                let Unbound { name, address, why, hint } = unbound;
                tracing::error!(listener = %name, %address, why, hint, "cannot listen; trying again");
            }
        }
        kept
    }

    fn bind_again(&mut self) {
        let mut news = false;
        for kept in self.listeners.values_mut().filter(|kept| kept.bound.is_err() && !kept.by_kernel) {
            kept.bind(&self.threads);
            news |= kept.bound.is_ok();
        }
        if news {
            self.show();
        }
    }

    fn of_number(&mut self, number: u64) -> Option<&mut Kept> {
        self.listeners.values_mut().chain(&mut self.closing).find(|kept| kept.live.number == number)
    }

    fn hear(&mut self, number: u64, address: SocketAddr, report: Report) {
        let now = self.now();
        let Some(kept) = self.of_number(number) else { return };
        let changed = match report {
            Report::Passed => {
                kept.pool.passed(address);
                false
            }
            Report::Failed => kept.pool.failed(address, now),
        };
        if let Some(state) = kept.states.get(&address) {
            state.doubted.store(kept.pool.doubted(address), Relaxed);
        }
        if changed {
            tracing::warn!(listener = %kept.listener.name, backend = %address, "ejected: connections to it fail");
            kept.publish();
        }
    }

    /// A check has ended; none if it says nothing about the backend.
    fn checked(&mut self, number: u64, address: SocketAddr, good: Option<bool>) {
        let now = self.now();
        let Some(kept) = self.of_number(number) else { return };
        let Some(good) = good else {
            kept.pool.unchecked(address, now);
            return;
        };
        let before = kept.states.get(&address).map(|state| state.standing());
        if kept.pool.checked(address, good, now) {
            kept.publish();
        } else {
            kept.stand();
        }
        let after = kept.states.get(&address).map(|state| state.standing());
        if before != after {
            let level = kept.pool.picture().level();
            tracing::info!(listener = %kept.listener.name, backend = %address, good, ?level, "health changed");
        }
    }

    fn begin_checks(&mut self, done: &mpsc::UnboundedSender<(u64, SocketAddr, Option<bool>)>) {
        let now = self.now();
        for kept in self.listeners.values_mut() {
            let Some(checks) = kept.listener.settings.checks else { continue };
            for address in kept.pool.begin_checks(now) {
                let (number, done) = (kept.live.number, done.clone());
                let port = kept.listener.check_port.unwrap_or(address.port());
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
        let here: BTreeSet<_> = if self.closing.iter().any(|kept| kept.by_kernel) {
            let by_kernel = self.listeners.values().filter(|kept| kept.by_kernel);
            by_kernel
                .flat_map(|kept| kept.listener.backends.iter().map(|one| (kept.listener.key(), one.address)))
                .collect()
        } else {
            BTreeSet::new()
        };
        for kept in self.listeners.values_mut().chain(&mut self.closing) {
            let gone = kept.tick(now);
            news |= !gone.is_empty();
            let (protocol, address) = kept.listener.key();
            if !kept.by_kernel {
                continue;
            }
            let gone = gone.into_iter().filter(|backend| !here.contains(&((protocol, address), *backend)));
            let lost = std::mem::take(&mut kept.lost);
            cut.extend(gone.chain(lost).map(|backend| (protocol, address, backend)));
        }
        let before = self.closing.len();
        self.closing.retain(|kept| !kept.states.is_empty());
        if news || before != self.closing.len() {
            self.show();
        }
        cut
    }

    /// What metrics are made from.
    fn show(&self) {
        let wanted = self.listeners.values().map(|kept| (kept, true));
        let all = wanted.chain(self.closing.iter().map(|kept| (kept, false)));
        self.board.show(all.map(|(kept, wanted)| Shown {
            listener: Arc::clone(&kept.listener),
            live: Arc::clone(&kept.live),
            backends: kept.states.values().cloned().collect(),
            unbound: kept.bound.as_ref().err().filter(|_| wanted).cloned(),
            by_kernel: kept.by_kernel,
            wanted,
        }));
    }
}

/// The addresses on interfaces of those that still have clients.
fn addresses(closing: &[Kept]) -> BTreeSet<(Arc<str>, IpAddr)> {
    let on = |kept: &Kept| Some((Arc::clone(kept.listener.interface.as_ref()?), kept.listener.address.ip()));
    closing.iter().filter_map(on).collect()
}
