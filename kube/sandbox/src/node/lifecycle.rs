//! The life of one pod: event and time in, commands out. No sockets, no clock.
//!
//! ```text
//!   init containers, one after the other ─▶ containers, side by side ─▶ ended for good, or deleted
//!                     ▲ ended │                    ▲ ended │
//!                     └───────┘ back-off           └───────┘ back-off, as restartPolicy says
//! ```

use jiff::{SignedDuration, Timestamp};

/// Killed because its time was up.
pub(super) const KILLED: i32 = 137;
/// The exit code of a container whose end was not seen.
const LOST: i32 = 255;

/// When a container that ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Always,
    OnFailure,
    Never,
}

/// How long a container that ends again and again waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    pub(super) first: SignedDuration,
    pub(super) longest: SignedDuration,
    /// Having run so long, it is as good as new.
    pub(super) forgiven: SignedDuration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: SignedDuration::from_secs(10),
            longest: SignedDuration::from_secs(300),
            forgiven: SignedDuration::from_secs(600),
        }
    }
}

/// How often in a row a probe has to pass or fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thresholds {
    pub(super) success: u32,
    pub(super) failure: u32,
}

/// What is to be done about one container.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) image: String,
    /// Runs before the others and has to end, unless it is a sidecar.
    pub(super) init: bool,
    /// An init container that stays.
    pub(super) sidecar: bool,
    pub(super) startup: Option<Thresholds>,
    pub(super) readiness: Option<Thresholds>,
    pub(super) liveness: Option<Thresholds>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) reason: &'static str,
    pub(super) since: Option<Timestamp>,
    pub(super) at: Timestamp,
}

/// What a container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting { reason: &'static str, message: String },
    Running { since: Timestamp },
    Ended(Ended),
}

/// A question that is asked of a container again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeKind {
    Startup,
    Readiness,
    Liveness,
}

/// A container, as it is.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) plan: Plan,
    pub(super) state: State,
    pub(super) last: Option<Ended>,
    pub(super) restarts: i32,
    pub(super) started: bool,
    pub(super) ready: bool,
    /// It is about to be started.
    starting: bool,
    /// It waits until then.
    not_before: Option<Timestamp>,
    /// It was asked to end, and is killed then.
    kill_at: Option<Timestamp>,
    /// How often it ended soon after its start.
    failures: u32,
    /// Results of each kind of probe in a row: passed, failed.
    probes: [(u32, u32); 3],
}

/// What was known of a container before this process started.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    pub(super) restarts: i32,
    /// It ran, since then.
    pub(super) running: Option<Timestamp>,
    pub(super) ended: Option<Ended>,
    pub(super) last: Option<Ended>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// Time has passed, or the pod was just begun.
    Tick,
    Started(usize),
    CannotStart {
        slot: usize,
        reason: &'static str,
        message: String,
        again: Option<SignedDuration>,
    },
    Ended {
        slot: usize,
        code: i32,
    },
    Probed {
        slot: usize,
        kind: ProbeKind,
        passed: bool,
    },
    /// The pod is deleted and has until then.
    Deleted {
        by: Timestamp,
    },
    /// The pod was changed: what could not be started may be now.
    Changed,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Start(usize),
    /// Ask it to end.
    Stop(usize),
    Kill(usize),
    /// Everything has ended, and the pod is deleted.
    Finish,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

/// One pod.
#[derive(Clone, Debug)]
pub(super) struct Lifecycle {
    restart: Restart,
    backoff: Backoff,
    /// How long a container that fails its probe has to end.
    grace: SignedDuration,
    containers: Vec<Container>,
    ending: Option<Timestamp>,
    finished: bool,
}

const CREATING: &str = "ContainerCreating";
const INITIALIZING: &str = "PodInitializing";
const CRASHING: &str = "CrashLoopBackOff";

impl Lifecycle {
    pub(super) fn new(
        restart: Restart,
        backoff: Backoff,
        grace: SignedDuration,
        plans: Vec<(Plan, Before)>,
        now: Timestamp,
    ) -> Self {
        let waits = plans.iter().any(|(plan, _)| plan.init);
        let containers = plans.into_iter().map(|(plan, before)| {
            let reason = if waits && !plan.init { INITIALIZING } else { CREATING };
            let lost = before.running.map(|since| Ended {
                code: LOST,
                reason: "Unknown",
                since: Some(since),
                at: now,
            });
            let state = match lost.or(before.ended) {
                Some(ended) => State::Ended(ended),
                None => State::Waiting { reason, message: String::new() },
            };
            Container {
                plan,
                state,
                last: before.last,
                restarts: before.restarts,
                started: false,
                ready: false,
                starting: false,
                not_before: None,
                kill_at: None,
                failures: 0,
                probes: Default::default(),
            }
        });
        Self { restart, backoff, grace, containers: containers.collect(), ending: None, finished: false }
    }

    pub(super) fn containers(&self) -> &[Container] {
        &self.containers
    }

    /// Takes notice of an event and says what to do.
    pub(super) fn step(&mut self, event: Event, now: Timestamp) -> Vec<Command> {
        let mut todo = Vec::new();
        match event {
            Event::Tick => {}
            Event::Started(slot) => {
                self.started(slot, now);
                // It was deleted while it started.
                todo.extend(self.ending.map(|_| Command::Stop(slot)));
            }
            Event::CannotStart { slot, reason, message, again } => {
                if let Some(one) = self.containers.get_mut(slot) {
                    one.starting = false;
                    one.state = State::Waiting { reason, message };
                    // Without a time it waits until the pod is changed.
                    one.not_before = Some(again.map_or(Timestamp::MAX, |again| now + again));
                }
            }
            Event::Ended { slot, code } => self.ended(slot, code, now),
            Event::Probed { slot, kind, passed } => todo.extend(self.probed(slot, kind, passed, now)),
            Event::Deleted { by } => {
                if self.ending.is_none() {
                    todo.extend(self.running().map(Command::Stop));
                }
                self.ending = Some(self.ending.map_or(by, |known| known.min(by)));
            }
            Event::Changed => {
                for one in self.containers.iter_mut().filter(|one| one.not_before == Some(Timestamp::MAX)) {
                    one.not_before = None;
                }
            }
        }
        todo.extend(self.advance(now));
        todo
    }

    /// When something is due.
    pub(super) fn wake(&self) -> Option<Timestamp> {
        // What is over is not begun again.
        let over = self.ending.is_some() || matches!(self.phase(), Phase::Succeeded | Phase::Failed);
        let own = self.containers.iter().filter_map(|one| match one.state {
            State::Running { .. } => one.kill_at,
            _ if over || one.starting => None,
            _ => one.not_before.filter(|at| *at < Timestamp::MAX),
        });
        let ending = self.ending.filter(|_| !self.finished);
        own.chain(ending).min()
    }

    fn running(&self) -> impl Iterator<Item = usize> + '_ {
        let all = self.containers.iter().enumerate();
        all.filter(|(_, one)| matches!(one.state, State::Running { .. })).map(|(slot, _)| slot)
    }

    fn started(&mut self, slot: usize, now: Timestamp) {
        let Some(one) = self.containers.get_mut(slot) else { return };
        if let State::Ended(ended) = &one.state {
            one.last = Some(ended.clone());
        }
        one.restarts += i32::from(one.last.is_some());
        one.state = State::Running { since: now };
        one.starting = false;
        one.not_before = None;
        one.kill_at = None;
        one.probes = Default::default();
        one.started = one.plan.startup.is_none();
        one.ready = one.started && one.plan.readiness.is_none();
    }

    fn ended(&mut self, slot: usize, code: i32, now: Timestamp) {
        let (backoff, ending) = (self.backoff, self.ending.is_some());
        let Some(policy) = self.containers.get(slot).map(|one| self.policy(&one.plan)) else { return };
        let Some(one) = self.containers.get_mut(slot) else { return };
        let since = match one.state {
            State::Running { since } => Some(since),
            _ => None,
        };
        let reason = if code == 0 { "Completed" } else { "Error" };
        let ended = Ended { code, reason, since, at: now };
        one.starting = false;
        one.started = false;
        one.ready = false;
        one.kill_at = None;
        if ending || !again(policy, code) {
            one.state = State::Ended(ended);
            return;
        }
        if since.is_some_and(|since| now.duration_since(since) >= backoff.forgiven) {
            one.failures = 0;
        }
        // The first time it is started again at once.
        let wait = match one.failures {
            0 => SignedDuration::ZERO,
            times => backoff.first.saturating_mul(1 << (times - 1).min(10)).min(backoff.longest),
        };
        one.failures += 1;
        one.not_before = Some(now + wait);
        if wait.is_zero() {
            one.state = State::Ended(ended);
        } else {
            let name = &one.plan.name;
            let message = format!("back-off {}s restarting failed container={name}", wait.as_secs());
            one.last = Some(ended);
            one.state = State::Waiting { reason: CRASHING, message };
        }
    }

    fn probed(&mut self, slot: usize, kind: ProbeKind, passed: bool, now: Timestamp) -> Option<Command> {
        let grace = self.grace;
        let one = self.containers.get_mut(slot)?;
        let limits = match kind {
            ProbeKind::Startup => one.plan.startup,
            ProbeKind::Readiness => one.plan.readiness,
            ProbeKind::Liveness => one.plan.liveness,
        }?;
        // Until it has started up, only that is asked for.
        let early = !one.started && kind != ProbeKind::Startup;
        if early || one.kill_at.is_some() || !matches!(one.state, State::Running { .. }) {
            return None;
        }
        let (successes, failures) = &mut one.probes[kind as usize];
        (*successes, *failures) = if passed { (*successes + 1, 0) } else { (0, *failures + 1) };
        let (well, ill) = (*successes >= limits.success, *failures >= limits.failure);
        match kind {
            ProbeKind::Startup if well => {
                one.started = true;
                one.ready = one.plan.readiness.is_none();
            }
            ProbeKind::Readiness if well => one.ready = true,
            ProbeKind::Readiness if ill => one.ready = false,
            ProbeKind::Startup | ProbeKind::Liveness if ill => {
                one.kill_at = Some(now + grace);
                return Some(Command::Stop(slot));
            }
            _ => {}
        }
        None
    }

    fn advance(&mut self, now: Timestamp) -> Vec<Command> {
        let mut todo = Vec::new();
        for (slot, one) in self.containers.iter().enumerate() {
            let running = matches!(one.state, State::Running { .. }) || one.starting;
            let due = one.kill_at.or(self.ending).is_some_and(|at| at <= now);
            if running && due {
                todo.push(Command::Kill(slot));
            }
        }
        if self.ending.is_some() {
            let still =
                self.containers.iter().any(|one| matches!(one.state, State::Running { .. }) || one.starting);
            if !still && !self.finished {
                self.finished = true;
                todo.push(Command::Finish);
            }
            return todo;
        }
        if matches!(self.phase(), Phase::Succeeded | Phase::Failed) {
            todo.extend(self.dismiss_sidecars(now));
            return todo;
        }
        for slot in 0..self.containers.len() {
            let one = &self.containers[slot];
            if one.plan.init && self.init_done(one) {
                continue;
            }
            if self.wants_start(one, now) {
                self.containers[slot].starting = true;
                todo.push(Command::Start(slot));
            }
            if self.containers[slot].plan.init {
                // The next one waits for this one.
                return todo;
            }
        }
        // Sidecars that ended.
        for slot in 0..self.containers.len() {
            let one = &self.containers[slot];
            if one.plan.sidecar && self.wants_start(one, now) {
                self.containers[slot].starting = true;
                todo.push(Command::Start(slot));
            }
        }
        todo
    }

    /// The others are done: what only helped them ends.
    fn dismiss_sidecars(&mut self, now: Timestamp) -> Vec<Command> {
        let mut todo = Vec::new();
        for (slot, one) in self.containers.iter_mut().enumerate() {
            if one.plan.sidecar && one.kill_at.is_none() && matches!(one.state, State::Running { .. }) {
                one.kill_at = Some(now + self.grace);
                todo.push(Command::Stop(slot));
            }
        }
        todo
    }

    fn policy(&self, plan: &Plan) -> Restart {
        match (plan.sidecar, plan.init, self.restart) {
            (true, _, _) => Restart::Always,
            // An init container has to succeed once.
            (_, true, Restart::Always) => Restart::OnFailure,
            (_, _, restart) => restart,
        }
    }

    fn wants_start(&self, one: &Container, now: Timestamp) -> bool {
        let due = !one.starting && one.not_before.is_none_or(|at| at <= now);
        match &one.state {
            State::Waiting { .. } => due,
            State::Ended(ended) => due && again(self.policy(&one.plan), ended.code),
            State::Running { .. } => false,
        }
    }

    fn init_done(&self, one: &Container) -> bool {
        match (&one.state, one.plan.sidecar) {
            (State::Ended(ended), false) => ended.code == 0,
            (State::Running { .. }, true) => one.started,
            // It ran once, or the others would not be there.
            (_, true) => one.last.is_some() || matches!(one.state, State::Ended(_)),
            (_, false) => false,
        }
    }

    /// An init container that failed for good ends the pod.
    fn init_failed(&self) -> bool {
        let inits = self.containers.iter().filter(|one| one.plan.init && !one.plan.sidecar);
        inits.into_iter().any(|one| match &one.state {
            State::Ended(ended) => ended.code != 0 && !again(self.policy(&one.plan), ended.code),
            _ => false,
        })
    }

    /// Whether all init containers are done.
    pub(super) fn initialized(&self) -> bool {
        self.containers.iter().filter(|one| one.plan.init).all(|one| self.init_done(one))
    }

    pub(super) fn phase(&self) -> Phase {
        let mains = || self.containers.iter().filter(|one| !one.plan.init);
        if self.init_failed() {
            return Phase::Failed;
        }
        let for_good = |one: &Container| match &one.state {
            State::Ended(ended) => self.ending.is_some() || !again(self.policy(&one.plan), ended.code),
            _ => false,
        };
        if mains().all(for_good) {
            let failed = mains().any(|one| matches!(&one.state, State::Ended(ended) if ended.code != 0));
            return if failed { Phase::Failed } else { Phase::Succeeded };
        }
        let waits = |one: &Container| matches!(one.state, State::Waiting { .. }) && one.last.is_none();
        if !self.initialized() || mains().any(waits) { Phase::Pending } else { Phase::Running }
    }

    /// Whether the pod has ended for good, without having been deleted.
    pub(super) fn over(&self) -> bool {
        let sidecars = self.containers.iter().filter(|one| one.plan.sidecar);
        let quiet = sidecars.into_iter().all(|one| !matches!(one.state, State::Running { .. }));
        quiet && matches!(self.phase(), Phase::Succeeded | Phase::Failed)
    }
}

fn again(policy: Restart, code: i32) -> bool {
    match policy {
        Restart::Always => true,
        Restart::OnFailure => code != 0,
        Restart::Never => false,
    }
}

#[cfg(test)]
mod tests;
