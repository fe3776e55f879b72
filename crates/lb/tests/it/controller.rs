//! The controller among failures: whatever fails and whenever it restarts, balancers end up as wanted, and none is left behind.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atoll_lb::controller::{Call, Command, Core, Event, Note, Object, Outcome, Services, Write, run};
use atoll_lb::provider::{Backend, Failure, Ingress, Key, ProviderError, Spec, Status, async_trait};
use proptest::prelude::*;
use tokio::sync::mpsc;

use crate::liar::{Liar, Lie};
use crate::world::DEADLINE;

fn key(name: u8, uid: u32) -> Key {
    Key {
        clusterset: "set".into(),
        namespace: "shop".into(),
        name: format!("s{name}"),
        uid: format!("u{uid}"),
    }
}

/// A spec that differs from others.
fn spec(number: u8) -> Spec {
    Spec { annotations: [("number".to_owned(), number.to_string())].into(), ..Spec::default() }
}

fn status_of(key: &Key) -> Status {
    let number = key.uid[1..].parse::<u32>().unwrap() % 200;
    Status { ingress: vec![Ingress::Ip(Ipv4Addr::new(192, 0, 2, number as u8 + 1).into())] }
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// Fails without having done anything.
    Before(Failure),
    /// Does it, and the answer is lost.
    After(Failure),
    /// Answers something else than what was asked.
    Other,
}

#[derive(Debug, Clone)]
enum Action {
    Want(u8, u8),
    /// The service stays, without a balancer.
    Unwant(u8),
    Delete(u8),
    /// The oldest command is carried out so.
    Work(Fault),
    /// The hub dies; what it had asked of the provider happens, or not.
    Restart(bool),
    Later,
}

fn kind() -> impl Strategy<Value = Failure> {
    prop_oneof![
        Just(Failure::Lasting),
        Just(Failure::Passing),
        Just(Failure::NoAnswer),
        Just(Failure::Unreachable),
        Just(Failure::Nonsense)
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let fault = prop_oneof![
        4 => Just(Fault::None),
        1 => kind().prop_map(Fault::Before),
        1 => kind().prop_map(Fault::After),
        1 => Just(Fault::Other),
    ];
    prop_oneof![
        3 => (0..3_u8, 0..4_u8).prop_map(|(name, number)| Action::Want(name, number)),
        1 => (0..3_u8).prop_map(Action::Unwant),
        1 => (0..3_u8).prop_map(Action::Delete),
        12 => fault.prop_map(Action::Work),
        1 => any::<bool>().prop_map(Action::Restart),
        2 => Just(Action::Later),
    ]
}

/// The hub's API, a provider, and the controller between them.
#[derive(Default)]
struct World {
    core: Core,
    now: Duration,
    uid: u32,
    objects: BTreeMap<u8, (Key, Object)>,
    balancers: BTreeMap<Key, Spec>,
    commands: VecDeque<Command>,
}

impl World {
    fn tell(&mut self, event: Event) {
        let commands = self.core.step(event, self.now);
        self.commands.extend(commands.into_iter().filter(|command| !matches!(command, Command::Note(..))));
        for command in &self.commands {
            let its = self.commands.iter().filter(|other| about(other) == about(command)).count();
            assert_eq!(its, 1, "one thing at a time: {:?}", self.commands);
        }
    }

    fn see(&mut self, name: u8) {
        if let Some((key, object)) = self.objects.get(&name) {
            self.tell(Event::Seen(key.clone(), object.clone()));
        }
    }

    fn want(&mut self, name: u8, wish: Option<Spec>) {
        if !self.objects.contains_key(&name) {
            self.uid += 1;
            let object = Object {
                spec: None,
                status: Status::default(),
                no_backends: false,
                finalizer: false,
                deleting: false,
            };
            self.objects.insert(name, (key(name, self.uid), object));
        }
        if let Some((_, object)) = self.objects.get_mut(&name) {
            object.spec = wish;
        }
        self.see(name);
    }

    fn delete(&mut self, name: u8) {
        let Some((_, object)) = self.objects.get_mut(&name) else { return };
        object.deleting = true;
        self.settle(name);
    }

    /// Deletion waits for the finalizer only.
    fn settle(&mut self, name: u8) {
        match self.objects.get(&name) {
            Some((key, object)) if object.deleting && !object.finalizer => {
                let key = key.clone();
                self.objects.remove(&name);
                self.tell(Event::Gone(key));
            }
            Some(_) => self.see(name),
            None => {}
        }
    }

    fn work(&mut self, fault: Fault) {
        let Some(command) = self.commands.pop_front() else { return };
        match command {
            Command::Call(key, call) => {
                let error = |kind| Err(ProviderError { kind, text: "a fault".to_owned() });
                let answer = match fault {
                    Fault::Before(kind) => error(kind),
                    Fault::None => Ok(self.obey(&key, call)),
                    Fault::After(kind) => {
                        self.obey(&key, call);
                        error(kind)
                    }
                    Fault::Other => match self.obey(&key, call) {
                        Outcome::Deleted => Ok(Outcome::Found(None)),
                        Outcome::Found(_) | Outcome::Made(_) => Ok(Outcome::Deleted),
                    },
                };
                self.tell(Event::Answered(key, answer));
            }
            Command::Write(key, write) => {
                let name = self.objects.iter().find(|(_, (known, _))| *known == key).map(|(name, _)| *name);
                let done = !matches!(fault, Fault::Before(_) | Fault::Other);
                if let (Some(name), true) = (name, done)
                    && let Some((_, object)) = self.objects.get_mut(&name)
                {
                    match write {
                        // As an API server: nothing that is being deleted gets a finalizer.
                        Write::AddFinalizer if object.deleting => {}
                        Write::AddFinalizer => object.finalizer = true,
                        Write::RemoveFinalizer => object.finalizer = false,
                        Write::Status(status, nobody) => {
                            (object.status, object.no_backends) = (status, nobody);
                        }
                    }
                }
                let outcome = if matches!(fault, Fault::None) { Ok(()) } else { Err("a fault".to_owned()) };
                self.tell(Event::Wrote(key, outcome));
                if let Some(name) = name {
                    self.settle(name);
                }
            }
            Command::Note(..) => {}
        }
        self.check_no_orphans();
    }

    fn obey(&mut self, key: &Key, call: Call) -> Outcome {
        match call {
            Call::Get => Outcome::Found(self.balancers.contains_key(key).then(|| status_of(key))),
            Call::Ensure(spec) | Call::Update(spec) => {
                self.balancers.insert(key.clone(), spec);
                Outcome::Made(status_of(key))
            }
            Call::EnsureDeleted => {
                self.balancers.remove(key);
                Outcome::Deleted
            }
        }
    }

    fn restart(&mut self, happens: bool) {
        for command in std::mem::take(&mut self.commands) {
            if let (Command::Call(key, call), true) = (command, happens) {
                self.obey(&key, call);
            }
        }
        self.core = Core::default();
        for name in 0..3 {
            self.see(name);
        }
    }

    fn later(&mut self) {
        if let Some(next) = self.core.next() {
            self.now = self.now.max(next);
        }
        let commands = self.core.tick(self.now);
        self.commands.extend(commands.into_iter().filter(|command| !matches!(command, Command::Note(..))));
    }

    /// Every balancer belongs to an object that can't go without it: so a hub that starts anew can't miss it.
    fn check_no_orphans(&self) {
        for key in self.balancers.keys() {
            let owner = self.objects.values().find(|(known, _)| known == key);
            assert!(owner.is_some_and(|(_, object)| object.finalizer), "nobody remembers {key:?}");
        }
    }
}

fn about(command: &Command) -> &Key {
    match command {
        Command::Call(key, _) | Command::Write(key, _) | Command::Note(key, ..) => key,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn balancers_end_up_as_wanted_and_none_is_left_behind(actions in prop::collection::vec(action(), 1..120)) {
        let mut world = World::default();
        for action in actions {
            match action {
                Action::Want(name, number) => world.want(name, Some(spec(number))),
                Action::Unwant(name) if world.objects.contains_key(&name) => world.want(name, None),
                Action::Unwant(_) => {}
                Action::Delete(name) => world.delete(name),
                Action::Work(fault) => world.work(fault),
                Action::Restart(happens) => world.restart(happens),
                Action::Later => world.later(),
            }
        }
        // Then nothing fails any more.
        let mut rounds = 0;
        while !world.commands.is_empty() || world.core.next().is_some() {
            if world.commands.is_empty() { world.later() } else { world.work(Fault::None) }
            rounds += 1;
            prop_assert!(rounds < 1000, "it never comes to rest: {:?}", world.commands);
        }
        let mut wanted = BTreeMap::new();
        for (key, object) in world.objects.values() {
            prop_assert!(!object.deleting, "stuck: {key:?}");
            match &object.spec {
                Some(spec) => {
                    prop_assert_eq!(&object.status, &status_of(key));
                    wanted.insert(key.clone(), spec.clone());
                }
                None => prop_assert!(!object.finalizer && object.status == Status::default(), "{object:?}"),
            }
        }
        prop_assert_eq!(world.balancers, wanted);
    }
}

#[test]
fn a_burst_of_changes_costs_two_rounds() {
    let mut world = World::default();
    world.want(0, Some(spec(0)));
    world.work(Fault::None); // the finalizer
    world.work(Fault::None); // get
    for number in 1..100 {
        world.want(0, Some(spec(number)));
    }
    let mut calls = Vec::new();
    while !world.commands.is_empty() || world.core.next().is_some() {
        if let Some(Command::Call(_, call)) = world.commands.front() {
            calls.push(call.clone());
        }
        if world.commands.is_empty() { world.later() } else { world.work(Fault::None) }
    }
    assert_eq!(calls, [Call::Ensure(spec(0)), Call::Get, Call::Update(spec(99))]);
}

#[test]
fn failures_are_told_and_tried_again_later_each_time() {
    let mut core = Core::default();
    let key = key(0, 1);
    let object = Object {
        spec: Some(spec(0)),
        status: Status::default(),
        no_backends: false,
        finalizer: true,
        deleting: false,
    };
    let mut now = Duration::ZERO;
    assert_eq!(
        core.step(Event::Seen(key.clone(), object.clone()), now),
        [Command::Call(key.clone(), Call::Get)]
    );
    for want in [1, 2, 4, 8, 16, 32, 60, 60] {
        let error = ProviderError::passing("no quota");
        let commands = core.step(Event::Answered(key.clone(), Err(error)), now);
        let [Command::Note(_, Note::GetFailed, text)] = &commands[..] else { panic!("{commands:?}") };
        assert!(text.contains("no quota") && text.contains(&format!("in {want} s")), "{text}");
        assert_eq!(core.next(), Some(now + Duration::from_secs(want)));
        now += Duration::from_secs(want);
        assert_eq!(core.tick(now), [Command::Call(key.clone(), Call::Get)]);
    }
    // What will not pass by itself waits longer, but not for a user who changed something.
    core.step(Event::Answered(key.clone(), Err(ProviderError::lasting("bad size"))), now);
    assert_eq!(core.tick(now + Duration::from_secs(59)), []);
    let changed = Object { spec: Some(spec(1)), ..object };
    assert_eq!(core.step(Event::Seen(key.clone(), changed), now), [Command::Call(key, Call::Get)]);
}

#[test]
fn whoever_was_refused_is_asked_for_again_when_a_balancer_goes() {
    let mut core = Core::default();
    let (waits, goes) = (key(0, 1), key(1, 1));
    let object = |spec: Option<Spec>, deleting| Object {
        spec,
        status: Status::default(),
        no_backends: false,
        finalizer: true,
        deleting,
    };
    let now = Duration::ZERO;
    core.step(Event::Seen(waits.clone(), object(Some(spec(0)), false)), now);
    core.step(Event::Answered(waits.clone(), Err(ProviderError::lasting("the pool is empty"))), now);
    assert_eq!(core.tick(now + Duration::from_secs(59)), []);
    let delete = core.step(Event::Seen(goes.clone(), object(None, true)), now);
    assert_eq!(delete, [Command::Call(goes.clone(), Call::EnsureDeleted)]);
    core.step(Event::Answered(goes, Ok(Outcome::Deleted)), now);
    assert_eq!(core.tick(now), [Command::Call(waits, Call::Get)]);
}

/// Whoever lost his address to the one who had it first does not go on showing it.
#[test]
fn a_displaced_service_stops_showing_its_address_and_is_made_anew_or_refused() {
    let (mut core, key, now) = (Core::default(), key(0, 1), Duration::from_secs(9));
    let shown = status_of(&key);
    let object = Object {
        spec: Some(spec(0)),
        status: shown.clone(),
        no_backends: true,
        finalizer: true,
        deleting: false,
    };
    core.step(Event::Seen(key.clone(), object), now);
    core.step(Event::Answered(key.clone(), Ok(Outcome::Found(Some(shown.clone())))), now);
    let displaced = Event::Displaced { namespace: key.namespace.clone(), name: key.name.clone() };
    assert_eq!(core.step(displaced.clone(), now), [], "a call is under way");
    // What it answers may be from before.
    let write = |status: &Status, nobody| Command::Write(key.clone(), Write::Status(status.clone(), nobody));
    let (hidden, get) = (write(&Status::default(), false), Command::Call(key.clone(), Call::Get));
    let late = core.step(Event::Answered(key.clone(), Ok(Outcome::Made(shown.clone()))), now);
    assert_eq!(late, std::slice::from_ref(&hidden));
    assert_eq!(core.step(Event::Wrote(key.clone(), Ok(())), now), std::slice::from_ref(&get));
    // It gets another one.
    core.step(Event::Answered(key.clone(), Ok(Outcome::Found(Some(Status::default())))), now);
    let made = core.step(Event::Answered(key.clone(), Ok(Outcome::Made(shown.clone()))), now);
    assert_eq!(made, [write(&shown, true)]);
    assert_eq!(core.step(Event::Wrote(key.clone(), Ok(())), now), []);
    // And loses that too.
    assert_eq!(core.step(displaced, now), [hidden]);
    assert_eq!(core.step(Event::Wrote(key.clone(), Ok(())), now), [get]);
    core.step(Event::Answered(key.clone(), Ok(Outcome::Found(Some(Status::default())))), now);
    core.step(Event::Answered(key.clone(), Err(ProviderError::lasting("not yours"))), now);
    assert_eq!(core.tick(now + Duration::from_secs(59)), []);
    assert_eq!(core.step(Event::Room, now), [Command::Call(key, Call::Get)], "it is free again");
}

#[test]
fn what_is_wanted_by_now_does_not_wait_for_what_was_refused_meanwhile() {
    let (mut core, key, now) = (Core::default(), key(0, 1), Duration::from_secs(1));
    let object = Object {
        spec: Some(spec(0)),
        status: Status::default(),
        no_backends: false,
        finalizer: true,
        deleting: false,
    };
    let another = Object { spec: Some(spec(1)), ..object.clone() };
    let deleted = Object { spec: None, deleting: true, ..object.clone() };
    for (newer, call) in [(another, Call::Get), (deleted, Call::EnsureDeleted)] {
        core.step(Event::Seen(key.clone(), object.clone()), now);
        core.step(Event::Answered(key.clone(), Ok(Outcome::Found(None))), now);
        assert_eq!(core.step(Event::Seen(key.clone(), newer), now), [], "a call is under way");
        let refused = Err(ProviderError::lasting("no address left"));
        let commands = core.step(Event::Answered(key.clone(), refused), now);
        assert_eq!(commands, [Command::Call(key.clone(), call)]);
        core = Core::default();
    }
}

#[test]
fn it_is_shown_when_nobody_answers_any_more_and_when_somebody_does() {
    let (mut core, key, now) = (Core::default(), key(0, 1), Duration::ZERO);
    let status = Status { ingress: vec![Ingress::Hostname("here".into())] };
    let somebody = Backend {
        address: ([10, 0, 0, 1], 80).into(),
        port_name: String::new(),
        cluster: "paris".into(),
        zone: String::new(),
        ready: true,
    };
    let full = Spec { backends: vec![somebody], ..spec(0) };
    let empty = Spec { backends: Vec::new(), ..spec(0) };
    let mut object = Object {
        spec: None,
        status: Status::default(),
        no_backends: false,
        finalizer: true,
        deleting: false,
    };
    for (spec, nobody) in [(full.clone(), false), (empty, true), (full, false)] {
        object.spec = Some(spec);
        core.step(Event::Seen(key.clone(), object.clone()), now);
        core.step(Event::Answered(key.clone(), Ok(Outcome::Found(None))), now);
        let written = core.step(Event::Answered(key.clone(), Ok(Outcome::Made(status.clone()))), now);
        assert_eq!(written, [Command::Write(key.clone(), Write::Status(status.clone(), nobody))]);
        assert_eq!(core.step(Event::Wrote(key.clone(), Ok(())), now), []);
        (object.status, object.no_backends) = (status.clone(), nobody);
    }
}

/// Objects of a shell's test: what was written, as events back.
struct Objects {
    objects: Mutex<BTreeMap<Key, Object>>,
    notes: Mutex<Vec<String>>,
    events: mpsc::UnboundedSender<Event>,
}

impl Objects {
    fn put(&self, key: &Key, change: impl FnOnce(&mut Object)) {
        let mut objects = self.objects.lock().unwrap();
        let fresh = Object {
            spec: None,
            status: Status::default(),
            no_backends: false,
            finalizer: false,
            deleting: false,
        };
        let object = objects.entry(key.clone()).or_insert(fresh);
        change(object);
        let event = if object.deleting && !object.finalizer {
            objects.remove(key);
            Event::Gone(key.clone())
        } else {
            Event::Seen(key.clone(), object.clone())
        };
        let _ = self.events.send(event);
    }

    async fn until(&self, what: &str, holds: impl Fn(&BTreeMap<Key, Object>) -> bool) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while !holds(&self.objects.lock().unwrap()) {
            let notes = self.notes.lock().unwrap().join("\n");
            assert!(tokio::time::Instant::now() < deadline, "never: {what}\n{notes}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[async_trait]
impl Services for Objects {
    async fn write(&self, key: &Key, write: &Write) -> Result<(), String> {
        self.put(key, |object| match write {
            Write::AddFinalizer => object.finalizer = true,
            Write::RemoveFinalizer => object.finalizer = false,
            Write::Status(status, nobody) => {
                (object.status, object.no_backends) = (status.clone(), *nobody);
            }
        });
        Ok(())
    }

    async fn note(&self, key: &Key, note: Note, text: &str) {
        self.notes.lock().unwrap().push(format!("{key} {note:?}: {text}"));
    }
}

#[tokio::test]
async fn a_provider_that_lies_about_one_service_holds_up_no_other() {
    for lie in [Lie::Hang, Lie::Panic, Lie::Fail] {
        let (events, inbox) = mpsc::unbounded_channel();
        let objects = Arc::new(Objects { objects: Mutex::default(), notes: Mutex::default(), events });
        let liar = Arc::new(Liar::default());
        let running = tokio::spawn(run(Arc::clone(&liar) as _, Arc::clone(&objects) as _, inbox));
        let (bad, good) = (key(0, 1), key(1, 2));
        liar.about(&bad, Some(lie));
        objects.put(&bad, |object| object.spec = Some(spec(0)));
        objects.put(&good, |object| object.spec = Some(spec(1)));
        objects.until("the other has an address", |all| all[&good].status.ingress.len() == 1).await;
        objects.put(&good, |object| object.deleting = true);
        objects.until("the other is gone", |all| !all.contains_key(&good)).await;
        assert_eq!(liar.made(), [], "{lie:?}");
        if lie != Lie::Hang {
            // It comes round as soon as the provider does.
            liar.about(&bad, None);
            objects.until("it has an address", |all| all[&bad].status.ingress.len() == 1).await;
            assert_eq!(liar.made(), std::slice::from_ref(&bad));
            assert!(!objects.notes.lock().unwrap().is_empty());
        }
        running.abort();
    }
}
