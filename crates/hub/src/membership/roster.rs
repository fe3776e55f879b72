//! Who is a member, and what has to be done about it. Pure: what the hub's API says in, commands out.
//!
//! ```text
//!   Cluster + Secret = Link ─Ask─▶ Asking ─Start─▶ Running ─Stop─▶ Stopping ─▶ (none) ─Ask, Clean─▶ Cleaning ─▶ gone
//!                                     └─ answers as another cluster, or is a member by another name ─▶ blocked, asked again
//! ```
//!
//! One cluster is one member: which one is behind a link is asked before anything is started or cleaned there. What counts is
//! the uid that was pinned at the join; an answer can only hurt whoever gives it.

use std::collections::{BTreeMap, BTreeSet};

use atoll_engine::names::ClusterId;
use atoll_engine::network::Networks;

use crate::membership::credentials::{self, Credentials, Link};

/// A `Cluster` of the hub's API, as far as it matters here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) uid: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) insecure: bool,
    pub(crate) proxy: Option<String>,
    /// The name of its Secret in the hub's namespace, or what is wrong with the `Cluster`.
    pub(crate) secret: Result<String, NoLink>,
    pub(crate) networks: Networks,
    pub(crate) deleted: bool,
    pub(crate) finalizer: bool,
    /// The member holds nothing of ours any more.
    pub(crate) cleaned: bool,
    /// When the object was made, in seconds: of two for one cluster the older counts.
    pub(crate) created: i64,
}

/// Why a member can't be reached at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoLink {
    Pull,
    NoEndpoint,
    NoSecretRef,
    ForeignNamespace(String),
    NoSecret(String),
    /// Its networks are declared in a way that can't be read: to let everything pass would be the worse mistake.
    BadNetworks(String),
    /// Another `Cluster` is the member that this cluster is.
    Twin(ClusterId),
    /// The Secret was made for another `Cluster`, or it is not known for which.
    NotItsOwn {
        secret: String,
        of: Option<String>,
    },
    /// The `Cluster` says something else than the Secret.
    OtherWay {
        field: &'static str,
        said: String,
        bound: String,
    },
    /// Tokens are not sent in clear.
    PlainHttp(String),
    /// Its certificate would not be checked.
    Insecure,
    /// It answers as another cluster than the one that joined.
    OtherCluster {
        pinned: String,
        answered: Option<String>,
    },
}

impl NoLink {
    /// Whether a Cluster asks for what is not its own, rather than for something incomplete.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Twin(_)
            | Self::NotItsOwn { .. }
            | Self::OtherWay { .. }
            | Self::PlainHttp(_)
            | Self::Insecure
            | Self::OtherCluster { .. } => true,
            Self::Pull
            | Self::NoEndpoint
            | Self::NoSecretRef
            | Self::ForeignNamespace(_)
            | Self::NoSecret(_)
            | Self::BadNetworks(_) => false,
        }
    }
}

/// What a cluster answered when it was asked which one it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Answered {
    /// The uid of its kube-system, if it has one.
    pub(crate) uid: Option<String>,
    /// What this hub once called it, by the property that it keeps of that.
    pub(crate) called: Option<ClusterId>,
}

/// When a cluster is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Now,
    /// After a while: its last answer was no good.
    Later,
}

/// What the hub's API said, or what a command has led to.
pub(crate) enum Event {
    Cluster(ClusterId, Box<Wanted>),
    ClusterGone(ClusterId),
    Secret(String, Option<Box<Credentials>>),
    /// The first list of both kinds is complete.
    Listed,
    /// Which cluster is behind this link, by its own word.
    Identified(ClusterId, Box<Link>, Answered),
    /// The member's task has ended, and all its reports have been taken in.
    Stopped(ClusterId),
    /// The cluster holds nothing of ours any more and its finalizer is gone, or it was forced out meanwhile.
    Cleaned(ClusterId),
}

/// What the shell has to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    Join(ClusterId),
    Leave(ClusterId),
    /// Forget its facts, not its membership.
    Reset(ClusterId),
    Networks(ClusterId, Networks),
    /// Its `Cluster` says something else of its networks than what counts, or does so no more.
    ShowNetworks(ClusterId, Networks),
    /// Its Secret says nothing of its networks yet: what its `Cluster` says is copied there, once.
    BindNetworks(ClusterId),
    /// Ask which cluster is behind the link, for as long as it takes; replaces what was asked before.
    Ask(ClusterId, Link, When),
    /// It need not be known any more.
    Unask(ClusterId),
    Start(ClusterId, Link),
    /// It runs on, with another token.
    Token(ClusterId, Link),
    Stop(ClusterId),
    AddFinalizer(ClusterId),
    /// Replaces the cleaning under way, if there is one.
    Clean(ClusterId, Link),
    /// Let its `Cluster` go, and touch nothing in the cluster.
    Release(ClusterId),
    /// It can't be reached, for a reason that a person has to remove.
    Blocked(ClusterId, NoLink),
    /// Write down which cluster is behind each name.
    Record(BTreeMap<ClusterId, Option<String>>),
}

#[derive(Debug)]
enum Task {
    /// Asked so that it can be started or, if it leaves, cleaned.
    Asking {
        link: Link,
        leaving: bool,
        when: When,
    },
    Running(Link),
    Stopping,
    Cleaning(Link),
    Releasing,
}

/// All that is known of who is a member.
#[derive(Default)]
pub(crate) struct Roster {
    listed: bool,
    wanted: BTreeMap<ClusterId, Wanted>,
    secrets: BTreeMap<String, Credentials>,
    /// The engine's members, and which cluster was behind the name.
    joined: BTreeMap<ClusterId, Option<String>>,
    tasks: BTreeMap<ClusterId, Task>,
    /// Those of them that were members before this hub led.
    before: BTreeMap<ClusterId, Option<String>>,
    /// What each answered, behind which link.
    identified: BTreeMap<ClusterId, (Link, Answered)>,
    /// What counts, and what the `Cluster` said then.
    networks: BTreeMap<ClusterId, (Networks, Networks)>,
    blocked: BTreeMap<ClusterId, NoLink>,
    /// Whether APIs may be used whose certificate is not checked, by the word of the hub's operator.
    insecure: bool,
}

/// Whether a cluster is the one that it should be.
enum Verdict {
    /// It has not been asked.
    Unknown,
    Is,
    Not(NoLink),
}

impl Roster {
    /// Starts from what was written down, and from the clusters that memory knows.
    pub(crate) fn remembering(
        recorded: BTreeMap<ClusterId, Option<String>>,
        in_memory: impl IntoIterator<Item = ClusterId>,
    ) -> Self {
        let mut joined = recorded;
        for id in in_memory {
            joined.entry(id).or_default();
        }
        Self { before: joined.clone(), joined, ..Self::default() }
    }

    /// Allows APIs whose certificate is not checked.
    pub(crate) fn allowing_insecure(self, insecure: bool) -> Self {
        Self { insecure, ..self }
    }

    /// Takes in an event. Until both kinds are listed nothing is done: half a list would make members leave.
    pub(crate) fn step(&mut self, event: Event) -> Vec<Command> {
        let mut concerned: BTreeSet<ClusterId> = match event {
            Event::Cluster(id, wanted) => {
                let before = self.namesakes(&id);
                self.wanted.insert(id.clone(), *wanted);
                before.into_iter().chain([id]).collect()
            }
            Event::ClusterGone(id) => {
                let before = self.namesakes(&id);
                self.forget(&id);
                self.ask_twins_anew(&id);
                before.into_iter().chain([id]).collect()
            }
            Event::Secret(name, credentials) => {
                let users = self.wanted.iter().filter(|(_, wanted)| wanted.secret.as_ref() == Ok(&name));
                let users = users.map(|(id, _)| id.clone()).collect();
                match credentials {
                    Some(credentials) => self.secrets.insert(name, *credentials),
                    None => self.secrets.remove(&name),
                };
                users
            }
            Event::Listed => {
                self.listed = true;
                self.wanted.keys().chain(self.joined.keys()).cloned().collect()
            }
            Event::Identified(id, link, answered) => match self.tasks.get(&id) {
                Some(Task::Asking { link: asked, .. }) if *asked == *link => {
                    self.tasks.remove(&id);
                    self.identified.insert(id.clone(), (*link, answered));
                    [id].into()
                }
                _ => return Vec::new(), // an answer to an older question
            },
            Event::Stopped(id) => {
                self.tasks.remove(&id);
                [id].into()
            }
            Event::Cleaned(id) => {
                let before = self.namesakes(&id);
                self.tasks.remove(&id);
                if self.wanted.get(&id).is_some_and(|wanted| wanted.deleted) {
                    self.forget(&id); // its end will be seen; until then it must not be cleaned again
                }
                self.ask_twins_anew(&id);
                before.into_iter().chain([id]).collect()
            }
        };
        if !self.listed {
            return Vec::new();
        }
        for id in concerned.clone() {
            concerned.extend(self.namesakes(&id));
        }
        let before = self.joined.clone();
        let mut commands = Vec::new();
        for id in concerned {
            self.settle(&id, &mut commands);
        }
        if self.joined != before {
            commands.push(Command::Record(self.joined.clone()));
        }
        commands
    }

    /// Whether every member that can be reached has been started.
    pub(crate) fn listed(&self) -> bool {
        self.listed
    }

    /// Whether its `Cluster` is being deleted.
    pub(crate) fn is_leaving(&self, id: &ClusterId) -> bool {
        self.wanted.get(id).is_some_and(|wanted| wanted.deleted)
    }

    /// Why a member is not used, if it is not.
    pub(crate) fn blocked(&self, id: &ClusterId) -> Option<&NoLink> {
        self.blocked.get(id)
    }

    fn settle(&mut self, id: &ClusterId, commands: &mut Vec<Command>) {
        let Some(wanted) = self.wanted.get(id).cloned() else {
            self.unask(id, commands);
            return self.dismiss(id, commands);
        };
        if wanted.deleted {
            self.dismiss(id, commands);
            if wanted.finalizer {
                self.let_go(id, &wanted, commands);
            }
            return;
        }
        if !wanted.finalizer {
            commands.push(Command::AddFinalizer(id.clone()));
        }
        let known = self.joined.get(id).cloned();
        let another = matches!((&known, self.explicit_pin(id)), (Some(Some(old)), Some(new)) if old != new);
        if another {
            // Another cluster has the name now: all that came from the old one goes before anything comes from the new one.
            self.dismiss(id, commands);
        }
        if matches!(self.tasks.get(id), Some(Task::Stopping | Task::Cleaning(_) | Task::Releasing)) {
            return; // settled when that has ended
        }
        let link = match self.link(id, &wanted) {
            Ok(link) => link,
            Err(why) => {
                // What never had credentials of its own is no member yet.
                if self.joined.contains_key(id) || !why.is_refusal() {
                    self.enrol(id, &wanted, commands);
                }
                if matches!(self.tasks.get(id), Some(Task::Running(_))) {
                    self.stop(id, commands);
                }
                self.unask(id, commands);
                return self.block(id, why, commands);
            }
        };
        if let Some(Task::Running(old)) = self.tasks.get(id) {
            let (same, same_way) = (link == *old, link.same_way(old));
            self.enrol(id, &wanted, commands);
            match (same, same_way) {
                (true, _) => {}
                (false, true) => self.renew(id, link, commands),
                (false, false) => self.stop(id, commands),
            }
            return;
        }
        match self.judge(id, &link) {
            Verdict::Unknown => {
                self.enrol(id, &wanted, commands);
                self.ask(id, link, commands);
            }
            Verdict::Is => {
                self.enrol(id, &wanted, commands);
                self.unask(id, commands);
                self.blocked.remove(id);
                commands.push(Command::Reset(id.clone()));
                commands.push(Command::Start(id.clone(), link.clone()));
                self.tasks.insert(id.clone(), Task::Running(link));
            }
            Verdict::Not(why) => {
                match why {
                    NoLink::Twin(_) if self.blocked.get(id) != Some(&why) => self.dismiss(id, commands),
                    NoLink::Twin(_) => {}
                    _ => self.enrol(id, &wanted, commands),
                }
                self.refuse(id, link, why, commands);
            }
        }
    }

    /// It runs on, with another token.
    fn renew(&mut self, id: &ClusterId, link: Link, commands: &mut Vec<Command>) {
        if let Some((known, _)) = self.identified.get_mut(id) {
            known.clone_from(&link);
        }
        self.tasks.insert(id.clone(), Task::Running(link.clone()));
        commands.push(Command::Token(id.clone(), link));
    }

    /// It is a member, whether it can be reached or not.
    fn enrol(&mut self, id: &ClusterId, wanted: &Wanted, commands: &mut Vec<Command>) {
        if !self.joined.contains_key(id) {
            commands.push(Command::Join(id.clone()));
        }
        // Where it is not said which cluster it is, it is the one that answered first.
        let first = || self.identified.get(id).and_then(|(_, answered)| answered.uid.as_deref());
        let uid = self.pin(id).or_else(first).map(str::to_owned);
        self.joined.insert(id.clone(), uid);
        let Some(counts) = self.networks_of(id, wanted, commands) else { return };
        let before = self.networks.insert(id.clone(), (counts.clone(), wanted.networks.clone()));
        match before {
            Some((same, _)) if same != counts => commands.push(Command::Networks(id.clone(), counts)),
            Some((_, said)) if said != wanted.networks => {
                commands.push(Command::ShowNetworks(id.clone(), counts));
            }
            Some(_) => {}
            None => commands.push(Command::Networks(id.clone(), counts)),
        }
    }

    /// Where it is, by its Secret: whoever may write a `Cluster` may not say whose an address is. None while what was known stands.
    fn networks_of(&self, id: &ClusterId, wanted: &Wanted, commands: &mut Vec<Command>) -> Option<Networks> {
        let secret = wanted.secret.as_ref().ok().and_then(|name| self.secrets.get(name));
        match secret.filter(|secret| secret.are_of(id)).map(|secret| &secret.networks) {
            Some(Some(Ok(networks))) => Some(Networks { since: wanted.created, ..networks.clone() }),
            Some(None) => {
                if self.networks.get(id).is_none_or(|(_, said)| *said != wanted.networks) {
                    commands.push(Command::BindNetworks(id.clone()));
                }
                Some(wanted.networks.clone())
            }
            // Without a Secret of its own, or with one that can't be read, nothing new counts.
            Some(Some(Err(_))) | None if self.networks.contains_key(id) => None,
            Some(Some(Err(_))) | None => Some(Networks { since: wanted.created, ..Networks::default() }),
        }
    }

    /// A deleted `Cluster`: its cluster is cleaned first, unless that is another member's, or has been done.
    fn let_go(&mut self, id: &ClusterId, wanted: &Wanted, commands: &mut Vec<Command>) {
        let link = self.link(id, wanted);
        match (self.tasks.get(id), link) {
            (Some(Task::Running(_) | Task::Stopping | Task::Releasing), _) => {}
            (Some(Task::Cleaning(old)), Ok(link)) if link != *old => self.clean(id, link, commands),
            (Some(Task::Cleaning(_)), _) => {}
            (None | Some(Task::Asking { .. }), Ok(link)) if wanted.cleaned => self.clean(id, link, commands),
            (None | Some(Task::Asking { .. }), Ok(link)) => match self.judge(id, &link) {
                Verdict::Unknown => self.ask(id, link, commands),
                Verdict::Is => self.clean(id, link, commands),
                Verdict::Not(NoLink::Twin(_)) => self.release(id, commands),
                Verdict::Not(why) => self.refuse(id, link, why, commands),
            },
            (None | Some(Task::Asking { .. }), Err(why)) => {
                // With credentials of others it has brought nothing anywhere.
                if wanted.cleaned || matches!(why, NoLink::NotItsOwn { .. }) {
                    return self.release(id, commands);
                }
                self.unask(id, commands);
                self.block(id, why, commands);
            }
        }
    }

    /// Its answer was no good: it is blocked, no other is, and it is asked again.
    fn refuse(&mut self, id: &ClusterId, link: Link, why: NoLink, commands: &mut Vec<Command>) {
        self.block(id, why, commands);
        self.question(id, link, When::Later, commands);
    }

    fn clean(&mut self, id: &ClusterId, link: Link, commands: &mut Vec<Command>) {
        self.unask(id, commands);
        self.tasks.insert(id.clone(), Task::Cleaning(link.clone()));
        commands.push(Command::Clean(id.clone(), link));
    }

    fn release(&mut self, id: &ClusterId, commands: &mut Vec<Command>) {
        self.unask(id, commands);
        self.tasks.insert(id.clone(), Task::Releasing);
        commands.push(Command::Release(id.clone()));
    }

    fn ask(&mut self, id: &ClusterId, link: Link, commands: &mut Vec<Command>) {
        self.blocked.remove(id);
        self.question(id, link, When::Now, commands);
    }

    fn question(&mut self, id: &ClusterId, link: Link, when: When, commands: &mut Vec<Command>) {
        let leaving = self.is_leaving(id);
        let same = |task: &Task| matches!(task, Task::Asking { link: asked, leaving: was, when: then } if *asked == link && *was == leaving && *then == when);
        if !self.tasks.get(id).is_some_and(same) {
            self.tasks.insert(id.clone(), Task::Asking { link: link.clone(), leaving, when });
            commands.push(Command::Ask(id.clone(), link, when));
        }
    }

    fn unask(&mut self, id: &ClusterId, commands: &mut Vec<Command>) {
        if matches!(self.tasks.get(id), Some(Task::Asking { .. })) {
            self.tasks.remove(id);
            commands.push(Command::Unask(id.clone()));
        }
    }

    fn forget(&mut self, id: &ClusterId) {
        self.wanted.remove(id);
        self.identified.remove(id);
    }

    /// What the others that are the same cluster answered counts no more: `gone` was one of them.
    fn ask_twins_anew(&mut self, gone: &ClusterId) {
        let twins = self.blocked.iter().filter(|(_, why)| **why == NoLink::Twin(gone.clone()));
        for id in twins.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.identified.remove(&id);
        }
    }

    /// Is the cluster behind this link the one that it should be?
    fn judge(&self, id: &ClusterId, link: &Link) -> Verdict {
        let Some((_, answered)) = self.identified.get(id).filter(|(asked, _)| asked == link) else {
            return Verdict::Unknown;
        };
        if let Some(pinned) = self.pin(id).filter(|pinned| answered.uid.as_deref() != Some(*pinned)) {
            let (pinned, answered) = (pinned.to_owned(), answered.uid.clone());
            return Verdict::Not(NoLink::OtherCluster { pinned, answered });
        }
        match self.twin(id, answered) {
            Some(other) => Verdict::Not(NoLink::Twin(other)),
            None => Verdict::Is,
        }
    }

    /// The member that this cluster is already. One that bears its own name is itself, whoever claims the same uid: so a liar
    /// shadows no member.
    fn twin(&self, id: &ClusterId, answered: &Answered) -> Option<ClusterId> {
        let uid = answered.uid.as_deref()?;
        let mut others =
            self.wanted.keys().filter(|other| *other != id && self.pin(other) == Some(uid)).cloned();
        match &answered.called {
            Some(called) if called == id => None,
            Some(called) => others.find(|other| other == called),
            None if self.before.get(id).is_some_and(|before| before.as_deref() == Some(uid)) => None,
            // No Cluster has been there yet: the one that runs, else the oldest, is the member.
            None => {
                let rank = |id: &ClusterId| {
                    let created = self.wanted.get(id).map_or(i64::MAX, |wanted| wanted.created);
                    let runs = matches!(self.tasks.get(id), Some(Task::Running(_) | Task::Cleaning(_)));
                    (!runs, created, id.clone())
                };
                others.filter(|other| rank(other) < rank(id)).min_by_key(rank)
            }
        }
    }

    /// Which cluster it has to be: by its Secret, else by its `Cluster`.
    fn explicit_pin(&self, id: &ClusterId) -> Option<&str> {
        let wanted = self.wanted.get(id)?;
        let secret = wanted.secret.as_ref().ok().and_then(|name| self.secrets.get(name));
        secret.and_then(|secret| secret.pinned(id)).or(wanted.uid.as_deref())
    }

    /// The same; else the one that answered first.
    fn pin(&self, id: &ClusterId) -> Option<&str> {
        self.explicit_pin(id).or_else(|| self.joined.get(id)?.as_deref())
    }

    /// Is the cluster of this uid a member? One that is refused is not.
    pub(crate) fn has(&self, uid: &str) -> bool {
        let refused = |id| self.blocked.get(id).is_some_and(NoLink::is_refusal);
        self.wanted.keys().any(|id| self.pin(id) == Some(uid) && !refused(id))
    }

    /// All that should be the same cluster.
    fn namesakes(&self, id: &ClusterId) -> Vec<ClusterId> {
        let Some(uid) = self.pin(id) else { return Vec::new() };
        self.wanted.keys().filter(|other| self.pin(other) == Some(uid)).cloned().collect()
    }

    /// It is no member any more.
    fn dismiss(&mut self, id: &ClusterId, commands: &mut Vec<Command>) {
        self.networks.remove(id);
        self.blocked.remove(id);
        if self.joined.remove(id).is_some() {
            commands.push(Command::Leave(id.clone()));
        }
        if matches!(self.tasks.get(id), Some(Task::Running(_))) {
            self.stop(id, commands);
        }
    }

    fn stop(&mut self, id: &ClusterId, commands: &mut Vec<Command>) {
        self.tasks.insert(id.clone(), Task::Stopping);
        commands.push(Command::Stop(id.clone()));
    }

    fn block(&mut self, id: &ClusterId, why: NoLink, commands: &mut Vec<Command>) {
        if self.blocked.get(id) != Some(&why) {
            self.blocked.insert(id.clone(), why.clone());
            commands.push(Command::Blocked(id.clone(), why));
        }
    }

    fn link(&self, id: &ClusterId, wanted: &Wanted) -> Result<Link, NoLink> {
        let name = wanted.secret.as_ref().map_err(Clone::clone)?;
        let credentials = self.secrets.get(name).ok_or_else(|| NoLink::NoSecret(name.clone()))?;
        if let Some(Err(why)) = &credentials.networks {
            return Err(NoLink::BadNetworks(why.clone()));
        }
        credentials::link(id, wanted, name, credentials, self.insecure)
    }
}

#[cfg(test)]
mod tests;
