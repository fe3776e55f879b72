//! What is to be done about each service's balancer. One call or write per service at a time; the newest wish wins.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::provider::{Failure, Key, ProviderError, Spec, Status};

/// Between two rounds for the same service: endpoints of a rollout come in bursts.
const PAUSE: Duration = Duration::from_millis(200);
/// The first pause after a failure that may pass, and the longest.
const SOON: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The same for one that will not pass by itself.
const SELDOM: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(600));
/// A balancer without an address is asked about again.
const NO_ADDRESS_YET: Duration = Duration::from_secs(2);

/// A service, as its object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What its balancer should be; none if it should have none (any more).
    pub spec: Option<Spec>,
    /// The status that the object shows.
    pub status: Status,
    /// Whether it shows that no backend answers there.
    pub no_backends: bool,
    /// Whether our finalizer is on it.
    pub finalizer: bool,
    /// Whether it waits to be deleted.
    pub deleting: bool,
}

/// What happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A service is there, or has changed.
    Seen(Key, Object),
    /// A service is gone.
    Gone(Key),
    /// The provider has answered, or has failed to.
    Answered(Key, Result<Outcome, ProviderError>),
    /// A write has ended; the text says why it failed.
    Wrote(Key, Result<(), String>),
    /// The provider took something away from a service, for another one that came first: it is made anew, or refused.
    Displaced {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// What services were refused may be free now.
    Room,
}

/// What a provider is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// What there is.
    Get,
    /// Make it.
    Ensure(Spec),
    /// Make it right.
    Update(Spec),
    /// Take it away.
    EnsureDeleted,
}

/// What a provider answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// To [`Call::Get`].
    Found(Option<Status>),
    /// To [`Call::Ensure`] and [`Call::Update`].
    Made(Status),
    /// To [`Call::EnsureDeleted`].
    Deleted,
}

impl Outcome {
    /// The order of addresses means nothing, and must not look like a change.
    fn in_order(mut self) -> Self {
        if let Self::Found(Some(status)) | Self::Made(status) = &mut self {
            status.ingress.sort();
        }
        self
    }
}

/// What is written to a service's object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// From now on it is not deleted without us.
    AddFinalizer,
    /// It may go.
    RemoveFinalizer,
    /// Where clients reach it, and whether no backend answers there.
    Status(Status, bool),
}

/// What is to be done. Calls and writes are answered by an event; notes are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Ask the provider.
    Call(Key, Call),
    /// Write the object.
    Write(Key, Write),
    /// Tell the user, by an event on the object; the text is for people.
    Note(Key, Note, String),
}

/// What the user is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The balancer is as it should be, after a failure.
    Recovered,
    /// The provider could not be asked.
    GetFailed,
    /// The provider could not make the balancer, or change it.
    EnsureFailed,
    /// The same, and there is none any more: no address is shown.
    Withdrawn,
    /// The provider could not delete it.
    DeleteFailed,
    /// The object could not be written.
    WriteFailed,
}

/// What is under way for a service.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Doing {
    Get,
    Make(Spec),
    Delete,
    Write(Write),
}

#[derive(Debug, Default)]
struct Service {
    /// None once the object is gone.
    object: Option<Object>,
    doing: Option<Doing>,
    /// The spec that the balancer was last made to, and how it then was.
    made: Option<(Spec, Status)>,
    /// The provider has (or may have) a balancer for it.
    may_exist: bool,
    /// The provider said that there is none (any more).
    deleted: bool,
    failures: u32,
    /// Not before then.
    not_before: Duration,
    /// What failed for good, so that another wish is tried at once.
    refused: Option<Option<Spec>>,
    /// What is under way may have been answered before the provider took something away.
    displaced: bool,
    /// What the object shows is no longer its own.
    withdrawn: bool,
}

/// Decides. See the module.
#[derive(Debug, Default)]
pub struct Core {
    services: BTreeMap<Key, Service>,
}

impl Core {
    /// Takes an event, and says what is to be done now.
    pub fn step(&mut self, event: Event, now: Duration) -> Vec<Command> {
        let mut commands = Vec::new();
        let key = match event {
            Event::Seen(key, object) => {
                // The same name with another uid: the old one went while the controller did not look.
                let namesakes: Vec<Key> = self
                    .services
                    .iter()
                    .filter(|(other, service)| {
                        **other != key
                            && service.object.is_some()
                            && (&other.namespace, &other.name) == (&key.namespace, &key.name)
                    })
                    .map(|(other, _)| other.clone())
                    .collect();
                for old in namesakes {
                    commands.extend(self.step(Event::Gone(old), now));
                }
                self.services.entry(key.clone()).or_default().see(object, now);
                key
            }
            Event::Gone(key) => {
                if let Some(service) = self.services.get_mut(&key) {
                    service.object = None;
                }
                key
            }
            Event::Answered(key, answer) => {
                if let Some(service) = self.services.get_mut(&key) {
                    let was_there = service.may_exist;
                    service.hear(&key, answer, now, &mut commands);
                    if std::mem::take(&mut service.displaced) {
                        (service.made, service.withdrawn) = (None, true);
                    }
                    if was_there && !service.may_exist {
                        self.make_room(now);
                    }
                }
                key
            }
            Event::Wrote(key, outcome) => {
                if let Some(service) = self.services.get_mut(&key) {
                    service.wrote(&key, outcome, now, &mut commands);
                }
                key
            }
            Event::Displaced { namespace, name } => {
                let is_it = |key: &Key| (&*key.namespace, &*key.name) == (&*namespace, &*name);
                for (_, service) in self.services.iter_mut().filter(|(key, _)| is_it(key)) {
                    (service.made, service.not_before) = (None, service.not_before.min(now));
                    (service.displaced, service.withdrawn) = (service.doing.is_some(), true);
                }
                return self.tick(now);
            }
            Event::Room => {
                self.make_room(now);
                return self.tick(now);
            }
        };
        self.advance(&key, now, &mut commands);
        commands
    }

    /// What is due by now.
    pub fn tick(&mut self, now: Duration) -> Vec<Command> {
        let mut commands = Vec::new();
        let due = |service: &Service| service.doing.is_none() && service.not_before <= now;
        let keys: Vec<Key> =
            self.services.iter().filter(|(_, service)| due(service)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.advance(&key, now, &mut commands);
        }
        commands
    }

    /// When there is something to do, if nothing happens before.
    pub fn next(&self) -> Option<Duration> {
        let waiting =
            self.services.values().filter(|service| service.doing.is_none() && service.wants_something());
        waiting.map(|service| service.not_before).min()
    }

    /// The services that are known.
    pub fn len(&self) -> usize {
        self.services.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// A balancer is gone: what others were refused may be free now.
    fn make_room(&mut self, now: Duration) {
        for service in self.services.values_mut().filter(|service| service.refused.is_some()) {
            service.not_before = service.not_before.min(now);
        }
    }

    fn advance(&mut self, key: &Key, now: Duration, commands: &mut Vec<Command>) {
        let Some(service) = self.services.get_mut(key) else { return };
        if service.doing.is_some() {
            return;
        }
        if service.object.is_none() && !service.may_exist {
            self.services.remove(key);
            return;
        }
        if service.not_before > now {
            return;
        }
        let Some(doing) = service.next_thing() else { return };
        commands.push(match &doing {
            Doing::Get => Command::Call(key.clone(), Call::Get),
            Doing::Make(spec) => Command::Call(key.clone(), Call::Ensure(spec.clone())),
            Doing::Delete => Command::Call(key.clone(), Call::EnsureDeleted),
            Doing::Write(write) => Command::Write(key.clone(), write.clone()),
        });
        service.doing = Some(doing);
    }
}

impl Service {
    fn see(&mut self, object: Object, now: Duration) {
        // A finalizer says that there may be a balancer, also if a former hub made it.
        self.may_exist |= object.finalizer && !self.deleted;
        let wish = object.spec.clone();
        let another = self.refused.as_ref().is_some_and(|refused| *refused != wish);
        if another {
            (self.refused, self.failures, self.not_before) = (None, 0, now);
        }
        if self.object.as_ref().is_some_and(|known| known.deleting != object.deleting) {
            // A deletion does not wait for what a wish has to wait for.
            (self.failures, self.not_before) = (0, now);
        }
        self.object = Some(object);
    }

    /// What its balancer should be: none if it should not be.
    fn wish(&self) -> Option<&Spec> {
        self.object.as_ref().filter(|object| !object.deleting).and_then(|object| object.spec.as_ref())
    }

    fn wants_something(&self) -> bool {
        self.next_thing().is_some()
    }

    fn next_thing(&self) -> Option<Doing> {
        let Some(spec) = self.wish() else { return self.next_of_deletion() };
        let object = self.object.as_ref()?;
        if !object.finalizer {
            return Some(Doing::Write(Write::AddFinalizer));
        }
        if self.withdrawn && !object.status.ingress.is_empty() {
            return Some(Doing::Write(Write::Status(Status::default(), false)));
        }
        match &self.made {
            Some((made, status)) if made == spec => {
                let no_backends = spec.leads_nowhere() && !status.ingress.is_empty();
                if (status, no_backends) != (&object.status, object.no_backends) {
                    Some(Doing::Write(Write::Status(status.clone(), no_backends)))
                } else if status.ingress.is_empty() {
                    Some(Doing::Get)
                } else {
                    None
                }
            }
            Some(_) | None => Some(Doing::Get),
        }
    }

    fn next_of_deletion(&self) -> Option<Doing> {
        if self.may_exist {
            return Some(Doing::Delete);
        }
        let object = self.object.as_ref()?;
        if !object.deleting && object.finalizer && !object.status.ingress.is_empty() {
            // It stays without a balancer: it must not show one.
            return Some(Doing::Write(Write::Status(Status::default(), false)));
        }
        object.finalizer.then_some(Doing::Write(Write::RemoveFinalizer))
    }

    fn hear(
        &mut self,
        key: &Key,
        answer: Result<Outcome, ProviderError>,
        now: Duration,
        commands: &mut Vec<Command>,
    ) {
        let Some(doing) = self.doing.take() else { return };
        match (doing, answer.map(Outcome::in_order)) {
            (Doing::Get, Ok(Outcome::Found(found))) => {
                // Decided anew: the wish may have changed meanwhile.
                let Some(spec) = self.wish().cloned() else { return };
                let waits = self.made.as_ref().is_some_and(|(made, _)| *made == spec);
                if let (true, Some(status)) = (waits, &found) {
                    self.not_before = if status.ingress.is_empty() { now + NO_ADDRESS_YET } else { now };
                    self.made = Some((spec, status.clone()));
                    return;
                }
                (self.may_exist, self.deleted) = (true, false);
                let call =
                    if found.is_some() { Call::Update(spec.clone()) } else { Call::Ensure(spec.clone()) };
                self.doing = Some(Doing::Make(spec));
                commands.push(Command::Call(key.clone(), call));
            }
            (Doing::Make(spec), Ok(Outcome::Made(status))) => {
                if self.failures > 0 {
                    commands.push(Command::Note(
                        key.clone(),
                        Note::Recovered,
                        "the load balancer is up to date again".to_owned(),
                    ));
                }
                self.failures = 0;
                self.refused = None;
                self.withdrawn = false;
                // A status is not held up by the pause between rounds, but the next round is.
                self.not_before = if status.ingress.is_empty() { now + NO_ADDRESS_YET } else { now };
                let outdated = self.wish() != Some(&spec);
                self.made = Some((spec, status));
                if outdated {
                    self.not_before = now + PAUSE;
                }
            }
            (Doing::Delete, Ok(Outcome::Deleted)) => {
                (self.may_exist, self.deleted, self.made) = (false, true, None);
                (self.failures, self.not_before) = (0, now);
            }
            (doing, Err(error)) => self.failed(key, &doing, &error, now, commands),
            (doing, Ok(outcome)) => {
                let text = format!("the provider answered {outcome:?} to something else");
                self.failed(key, &doing, &ProviderError { kind: Failure::Nonsense, text }, now, commands);
            }
        }
    }

    /// Whether something else is wanted by now than what was under way: a deletion, or another spec than the one that was refused for good.
    fn is_outdated(&self, doing: &Doing, failure: Failure) -> bool {
        match (doing, self.wish()) {
            (Doing::Get | Doing::Make(_), None) => true,
            (Doing::Make(spec), Some(wish)) => {
                matches!(failure, Failure::Lasting | Failure::Withdrawn) && wish != spec
            }
            (Doing::Get, Some(_)) | (Doing::Delete | Doing::Write(_), _) => false,
        }
    }

    fn failed(
        &mut self,
        key: &Key,
        doing: &Doing,
        error: &ProviderError,
        now: Duration,
        commands: &mut Vec<Command>,
    ) {
        // What it did is not known.
        self.made = None;
        if self.is_outdated(doing, error.kind) {
            // What is wanted by now has not failed, and does not wait.
            (self.failures, self.refused, self.not_before) = (0, None, now);
            return;
        }
        let (first, longest) = match error.kind {
            Failure::Lasting | Failure::Withdrawn => {
                self.refused = Some(self.object.as_ref().and_then(|object| object.spec.clone()));
                SELDOM
            }
            Failure::Passing | Failure::NoAnswer | Failure::Unreachable | Failure::Nonsense => SOON,
        };
        let pause = first.saturating_mul(1 << self.failures.min(16)).min(longest);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + pause;
        let withdrawn = error.kind == Failure::Withdrawn;
        if let Some(object) = self.object.as_mut().filter(|_| withdrawn) {
            (object.status, object.no_backends, self.withdrawn) = (Status::default(), false, false);
        }
        let (note, what) = match doing {
            Doing::Make(_) if withdrawn => (Note::Withdrawn, "create or update the load balancer"),
            Doing::Get => (Note::GetFailed, "ask for the load balancer"),
            Doing::Make(_) => (Note::EnsureFailed, "create or update the load balancer"),
            Doing::Delete => (Note::DeleteFailed, "delete the load balancer"),
            Doing::Write(_) => (Note::WriteFailed, "write the service"),
        };
        let text = format!("cannot {what}: {error}; trying again in {} s", pause.as_secs());
        commands.push(Command::Note(key.clone(), note, text));
    }

    fn wrote(&mut self, key: &Key, outcome: Result<(), String>, now: Duration, commands: &mut Vec<Command>) {
        let Some(Doing::Write(write)) = self.doing.take() else { return };
        match outcome {
            // What was written is true from now on, whenever the watch says so.
            Ok(()) => {
                if let Some(object) = &mut self.object {
                    match write {
                        Write::AddFinalizer => object.finalizer = true,
                        Write::RemoveFinalizer => object.finalizer = false,
                        Write::Status(status, no_backends) => {
                            (object.status, object.no_backends) = (status, no_backends);
                        }
                    }
                }
            }
            Err(text) => {
                let pause = SOON.0.saturating_mul(1 << self.failures.min(16)).min(SOON.1);
                self.failures = self.failures.saturating_add(1);
                self.not_before = now + pause;
                let text = format!("cannot write the service: {text}; trying again in {} s", pause.as_secs());
                commands.push(Command::Note(key.clone(), Note::WriteFailed, text));
            }
        }
    }
}
