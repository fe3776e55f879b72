//! Takes in the answers of requests.

use std::time::Duration;

use super::Core;
use super::SentRequest;
use super::cache::Copy;
use super::event::{Answer, Failure, Now, Request, Seen};
use super::object::{Fingerprint, Target};
use super::see::named;
use atoll_link::{Access, Problem, Up, Verb, Written};

/// When a request that a person has to make possible is tried again.
const SLOW: Duration = Duration::from_secs(30);
/// How often an address is asked for before another one will do: for five seconds. An API server tells of a deleted Service
/// first, and then deletes what says that its addresses are taken: on a busy host that took it more than one second.
pub(super) const WISHES: u8 = 50;
const WISH_AGAIN: Duration = Duration::from_millis(100);
/// How many of an API server's words are kept.
const LONGEST_WORDS: usize = 1000;
/// The longest that a server may ask us to wait.
const LONGEST_NAMED: Duration = Duration::from_secs(30);

impl SentRequest {
    pub(super) fn of(request: &Request) -> Self {
        match request {
            Request::Service { onto: None, ips, .. } => Self::Create { wish: !ips.is_empty() },
            Request::Import(_, None) | Request::Slice(_, None) | Request::Property(_, _, None) => {
                Self::Create { wish: false }
            }
            Request::Service { .. } | Request::Import(..) | Request::Slice(..) | Request::Property(..) => {
                Self::Update
            }
            Request::Attach { .. } => Self::Attach,
            Request::ImportStatus(..) | Request::ExportStatus(..) | Request::MisnamedStatus(..) => {
                Self::Status
            }
            Request::Delete(..) => Self::Delete,
        }
    }

    /// The right that it takes.
    fn access(self) -> Access {
        match self {
            Self::Read => Access::Get,
            Self::Create { .. } => Access::Create,
            Self::Update | Self::Attach => Access::Update,
            Self::Status => Access::Patch,
            Self::Delete => Access::Delete,
        }
    }

    fn verb(self) -> Verb {
        match self {
            Self::Create { .. } => Verb::Create,
            Self::Read | Self::Update | Self::Attach => Verb::Update,
            Self::Status => Verb::Status,
            Self::Delete => Verb::Delete,
        }
    }
}

impl Core {
    pub(super) fn wrote(&mut self, target: &Target, answer: Result<Answer, Failure>, now: Now) {
        let flight = self.queue.land(target);
        self.dispatched.touch(target);
        let mut sent = self.sent.remove(target);
        let request = sent.as_ref().map_or(SentRequest::Update, |sent| sent.request);
        match answer {
            Ok(answer) => {
                self.queue.settled(target);
                self.refused.remove(target);
                if let (SentRequest::Create { .. }, Target::Service(key, _)) = (request, target) {
                    self.unwished.remove(key); // The next one may wish for what this one has got.
                }
                self.report(target, request);
                let notices = sent.as_mut().map(|sent| std::mem::take(&mut sent.notices));
                self.tell_all(notices.unwrap_or_default());
                match answer {
                    Answer::Written(seen) => {
                        let revision = revision(&seen);
                        let overtaken = flight.and_then(|f| f.gone_at).is_some_and(|gone| revision < gone);
                        if !overtaken {
                            self.answering = true;
                            self.see(*seen);
                            self.answering = false;
                            self.note_answer(target, sent.and_then(|sent| sent.print));
                        }
                    }
                    Answer::Deleted => self.note_deleted(target),
                }
                if let Some(drift) = self.drifts.over(target)
                    && matches!(request, SentRequest::Create { .. } | SentRequest::Update)
                {
                    self.tell_repair(target, drift);
                }
                self.follow(target);
            }
            Err(failure) => self.failed(target, request, failure, now),
        }
    }

    /// What comes after a target was written.
    fn follow(&mut self, target: &Target) {
        self.queue.add(target.clone());
        match target {
            Target::Service(key, _) => self.look_at(key),
            Target::Import(key) | Target::ImportStatus(key) => {
                self.queue.add(Target::Import(key.clone()));
                self.queue.add(Target::ImportStatus(key.clone()));
            }
            Target::Slice(key, _) => {
                // A Service that is renamed or made anew waits for its slices.
                let several = self.cache.held.get(key).is_some_and(|held| held.services.len() != 1);
                if several || self.usable_service(key).is_none() {
                    self.look_at_services(key);
                }
            }
            Target::ExportStatus(_) | Target::MisnamedStatus(..) | Target::Property(_) => {}
        }
        if let Some(key) = target.service().cloned() {
            self.retire(&key);
        }
    }

    fn report(&mut self, target: &Target, request: SentRequest) {
        let Some(service) = target.service().cloned() else { return };
        let slice = match target {
            Target::Slice(key, name) => super::diff::slice_source(self.part(key), name),
            Target::Service(..)
            | Target::Import(_)
            | Target::ImportStatus(_)
            | Target::ExportStatus(_)
            | Target::MisnamedStatus(..)
            | Target::Property(_) => None,
        };
        let written = Written { service, kind: target.kind(), verb: request.verb(), slice };
        self.out.push(super::Command::Report(Up::Wrote(written)));
    }

    /// Remembers what came of a write, so that what the server makes of it counts as written.
    fn note_answer(&mut self, target: &Target, print: Option<Fingerprint>) {
        let Some(print) = print else { return };
        if let Target::ImportStatus(key) = target
            && let Some(import) = self.cache.held.get_mut(key).and_then(|held| held.import.as_mut())
        {
            import.status_answered = Some((print, import.status));
        }
        let status = matches!(target, Target::ImportStatus(_));
        if let Some(copy) = self.copy_mut(target) {
            // No list has shown it yet.
            (copy.fresh, copy.epoch) = (true, copy.epoch.saturating_sub(1));
            if !status {
                copy.answered = Some((print, copy.print));
            }
        }
    }

    fn note_deleted(&mut self, target: &Target) {
        let Some(key) = target.service().cloned() else { return };
        // A Service with a finalizer of another owner stays for a while; its Gone event comes later.
        let object = named(target.kind(), &key.namespace, target.name());
        match target {
            Target::Service(..) | Target::Slice(..) => drop(self.cache.drop_object(&object)),
            Target::Import(_) | Target::ImportStatus(_) => {
                self.cache.drop_from(&key, &object);
                self.tell_removed(&key);
            }
            Target::ExportStatus(_) | Target::MisnamedStatus(..) | Target::Property(_) => {}
        }
    }

    fn failed(&mut self, target: &Target, request: SentRequest, failure: Failure, now: Now) {
        self.react(target.clone(), request, failure, now);
        if !self.queue.awaits(target) {
            self.made(target); // Nothing more comes of it for now.
        }
    }

    fn react(&mut self, target: Target, request: SentRequest, failure: Failure, now: Now) {
        let later = |core: &mut Self, named| core.queue.later(target.clone(), named, now.instant);
        match failure {
            Failure::Conflict | Failure::AlreadyExists => self.doubt(target, now),
            Failure::NotFound => match (request, &target) {
                // The namespace is gone, or not there yet: its next event brings the service back.
                (SentRequest::Create { .. }, _) => {}
                // The watch will say that it is gone.
                (_, Target::ExportStatus(_) | Target::MisnamedStatus(..) | Target::Property(_)) => {
                    later(self, None);
                }
                (
                    _,
                    Target::Service(..) | Target::Import(_) | Target::Slice(..) | Target::ImportStatus(_),
                ) => {
                    self.note_deleted(&target);
                    self.follow(&target);
                }
            },
            Failure::NamespaceTerminating => {
                if let Some(key) = target.service() {
                    self.closing.insert(key.namespace.clone());
                }
            }
            Failure::Forbidden(why) => {
                let verb = request.access();
                let kind = target.kind();
                self.refuse(&target, request, &why);
                self.problem(Problem::Forbidden { verb, kind, why }, now);
                later(self, Some(SLOW));
            }
            Failure::Invalid(why) => {
                if let (SentRequest::Create { wish: true }, Some(key)) = (request, target.service()) {
                    // The API server lets go of an address a moment after its Service: ask again before the
                    // conclusion that another Service has it by now.
                    *self.unwished.entry(key.clone()).or_default() += 1;
                    later(self, Some(WISH_AGAIN));
                    return;
                }
                self.refuse(&target, request, &why);
                let object = (&target).into();
                self.problem(Problem::Refused { object, why }, now);
                later(self, Some(SLOW));
            }
            Failure::Later(named) => later(self, named.map(|named| named.min(LONGEST_NAMED))),
            Failure::Unreachable(_) => later(self, None),
            Failure::NotPermitted => {
                self.permitted = false;
                self.queue.add(target);
            }
        }
    }

    /// The API server does not take what we write: it is not waited for.
    fn refuse(&mut self, target: &Target, request: SentRequest, why: &str) {
        if matches!(request, SentRequest::Create { .. } | SentRequest::Update) {
            self.refused.insert(target.clone(), why.chars().take(LONGEST_WORDS).collect::<String>().into());
            self.made(target);
            if let Target::Service(key, _) = target {
                self.queue.add(Target::Import(key.clone()));
                self.queue.add(Target::ImportStatus(key.clone()));
            }
        }
    }

    /// Our idea of the object is wrong: read it before the next write.
    fn doubt(&mut self, target: Target, now: Now) {
        match self.copy_mut(&target) {
            Some(copy) => copy.doubted = true,
            None => {
                // Something that we do not know of has the name.
                self.sent.insert(
                    target.clone(),
                    super::Sent { print: None, request: SentRequest::Read, notices: Vec::new() },
                );
                self.queue.fly(target.clone());
                self.out.push(super::Command::Read(target));
                return;
            }
        }
        // A fight over an object must not become a storm.
        self.queue.later(target, Some(Duration::from_millis(5)), now.instant);
    }

    pub(super) fn read(&mut self, target: &Target, answer: Result<Option<Seen>, Failure>, now: Now) {
        let flight = self.queue.land(target);
        self.dispatched.touch(target);
        self.sent.remove(target);
        match answer {
            Ok(Some(_)) if flight.is_some_and(|flight| flight.gone_at.is_some()) => self.follow(target),
            Ok(Some(seen)) => {
                let theirs = matches!(seen, Seen::Slice(..) | Seen::OtherSlice(..));
                self.see(seen);
                if let (true, Target::Slice(key, name)) = (theirs, target) {
                    // A dispatched slice can have any name: that another owner has it shows only now.
                    let object = named(target.kind(), &key.namespace, name.as_str());
                    self.cache.foreign.insert(object, self.gate.epoch(target.kind()));
                }
                let known = match self.copy_mut(target) {
                    Some(copy) => {
                        copy.doubted = false;
                        true
                    }
                    None => self.cache.foreign.contains_key(&target.into()),
                };
                if !known && !matches!(target, Target::Property(_)) {
                    // It has the name, and belongs to another service: that must not become a storm.
                    self.queue.later(target.clone(), None, now.instant);
                }
                self.follow(target);
            }
            Ok(None) => {
                self.note_deleted(target);
                self.follow(target);
            }
            Err(failure) => self.failed(target, SentRequest::Read, failure, now),
        }
    }

    pub(super) fn copy(&self, target: &Target) -> Option<&Copy> {
        match target {
            Target::Service(key, name) => self.cache.held.get(key)?.services.get(name).map(|held| &held.copy),
            Target::Slice(key, name) => self.cache.held.get(key)?.slices.get(name).map(|held| &held.copy),
            Target::Import(key) | Target::ImportStatus(key) => {
                self.cache.held.get(key)?.import.as_ref().map(|held| &held.copy)
            }
            Target::ExportStatus(key) => self.cache.exports.get(key).map(|held| &held.copy),
            Target::MisnamedStatus(namespace, name) => {
                let held = self.cache.misnamed.get(&(namespace.clone(), name.clone()));
                held.map(|held| &held.copy)
            }
            Target::Property(_) => None,
        }
    }

    fn copy_mut(&mut self, target: &Target) -> Option<&mut Copy> {
        match target {
            Target::Service(key, name) => {
                self.cache.held.get_mut(key)?.services.get_mut(name).map(|held| &mut held.copy)
            }
            Target::Slice(key, name) => {
                self.cache.held.get_mut(key)?.slices.get_mut(name).map(|held| &mut held.copy)
            }
            Target::Import(key) | Target::ImportStatus(key) => {
                self.cache.held.get_mut(key)?.import.as_mut().map(|held| &mut held.copy)
            }
            Target::ExportStatus(key) => self.cache.exports.get_mut(key).map(|held| &mut held.copy),
            Target::MisnamedStatus(namespace, name) => {
                let held = self.cache.misnamed.get_mut(&(namespace.clone(), name.clone()));
                held.map(|held| &mut held.copy)
            }
            Target::Property(_) => None,
        }
    }
}

fn revision(seen: &Seen) -> u64 {
    match seen {
        Seen::OwnService(seen) => seen.version.revision,
        Seen::OwnSlice(seen) => seen.version.revision,
        Seen::OwnImport(seen) => seen.version.revision,
        Seen::Export(seen) => seen.version.revision,
        Seen::MisnamedExport(seen) => seen.version.revision,
        Seen::Property(seen) => seen.version.revision,
        Seen::Namespace(..)
        | Seen::Node(..)
        | Seen::Service(..)
        | Seen::Slice(..)
        | Seen::OtherSlice(..)
        | Seen::Import(_) => u64::MAX,
    }
}
