//! Who is a member, and what has to be done about it. Pure: what the hub's API says in, commands out.
//!
//! ```text
//!   Cluster + Secret = Link ─Ask─▶ Asking ─Start─▶ Running ─Stop─▶ Stopping ─▶ (none) ─Ask, Clean─▶ Cleaning ─▶ gone
//!                                     └─ another Cluster of the same uid is older ─▶ blocked ─Release─▶ gone
//! ```
//!
//! One cluster is one member: which one is behind a link is asked before anything is started or cleaned there.

use std::collections::{BTreeMap, BTreeSet};

use atoll_engine::names::ClusterId;
use atoll_engine::network::Networks;

/// How a member is reached, and which cluster it is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The uid of its kube-system, if the `Cluster` says so.
    pub(crate) uid: Option<String>,
    pub(crate) endpoint: String,
    pub(crate) insecure: bool,
    pub(crate) proxy: Option<String>,
    pub(crate) credentials: Credentials,
}

/// What the Secret of a member holds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) token: String,
    pub(crate) ca: Vec<u8>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("uid", &self.uid)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

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
    /// Another `Cluster` leads to the same cluster, and is older.
    Twin(ClusterId),
}

/// What the hub's API said, or what a command has led to.
pub(crate) enum Event {
    Cluster(ClusterId, Box<Wanted>),
    ClusterGone(ClusterId),
    Secret(String, Option<Credentials>),
    /// The first list of both kinds is complete.
    Listed,
    /// The uid of the kube-system behind this link; none if there is no such namespace.
    Identified(ClusterId, Box<Link>, Option<String>),
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
    /// Ask which cluster is behind the link, for as long as it takes; replaces what was asked before.
    Ask(ClusterId, Link),
    /// It need not be known any more.
    Unask(ClusterId),
    Start(ClusterId, Link),
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
    /// Which cluster answered, behind which link.
    identified: BTreeMap<ClusterId, (Link, Option<String>)>,
    networks: BTreeMap<ClusterId, Networks>,
    blocked: BTreeMap<ClusterId, NoLink>,
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
        Self { joined, ..Self::default() }
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
                before.into_iter().chain([id]).collect()
            }
            Event::Secret(name, credentials) => {
                let users = self.wanted.iter().filter(|(_, wanted)| wanted.secret.as_ref() == Ok(&name));
                let users = users.map(|(id, _)| id.clone()).collect();
                match credentials {
                    Some(credentials) => self.secrets.insert(name, credentials),
                    None => self.secrets.remove(&name),
                };
                users
            }
            Event::Listed => {
                self.listed = true;
                self.wanted.keys().chain(self.joined.keys()).cloned().collect()
            }
            Event::Identified(id, link, uid) => match self.tasks.get(&id) {
                Some(Task::Asking { link: asked, .. }) if *asked == *link => {
                    self.tasks.remove(&id);
                    self.identified.insert(id.clone(), (*link, uid));
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
        if let Some(other) = self.older_twin(id) {
            let why = NoLink::Twin(other);
            if self.blocked.get(id) != Some(&why) {
                self.unask(id, commands);
                self.dismiss(id, commands);
                self.block(id, why, commands);
            }
            return;
        }
        let known = self.joined.get(id).cloned();
        let another = matches!((&known, &wanted.uid), (Some(Some(old)), Some(new)) if old != new);
        if another {
            // Another cluster has the name now: all that came from the old one goes before anything comes from the new one.
            self.dismiss(id, commands);
        }
        if matches!(self.tasks.get(id), Some(Task::Stopping | Task::Cleaning(_) | Task::Releasing)) {
            return; // settled when that has ended
        }
        match self.joined.get_mut(id) {
            Some(uid) => *uid = wanted.uid.clone().or(uid.take()),
            None => {
                self.joined.insert(id.clone(), wanted.uid.clone());
                commands.push(Command::Join(id.clone()));
            }
        }
        if self.networks.get(id) != Some(&wanted.networks) {
            self.networks.insert(id.clone(), wanted.networks.clone());
            commands.push(Command::Networks(id.clone(), wanted.networks.clone()));
        }
        match (self.link(&wanted), self.tasks.get(id)) {
            (Ok(link), None | Some(Task::Asking { .. })) if self.knows(id, &link) => {
                self.unask(id, commands);
                self.blocked.remove(id);
                commands.push(Command::Reset(id.clone()));
                commands.push(Command::Start(id.clone(), link.clone()));
                self.tasks.insert(id.clone(), Task::Running(link));
            }
            (Ok(link), None | Some(Task::Asking { .. })) => self.ask(id, link, commands),
            (Ok(link), Some(Task::Running(old))) if link != *old => self.stop(id, commands),
            (Ok(_), Some(_)) => {}
            (Err(why), task) => {
                if matches!(task, Some(Task::Running(_))) {
                    self.stop(id, commands);
                }
                self.unask(id, commands);
                self.block(id, why, commands);
            }
        }
    }

    /// A deleted `Cluster`: its cluster is cleaned first, unless that is another member's, or has been done.
    fn let_go(&mut self, id: &ClusterId, wanted: &Wanted, commands: &mut Vec<Command>) {
        let link = self.link(wanted);
        match (self.tasks.get(id), link) {
            (Some(Task::Running(_) | Task::Stopping | Task::Releasing), _) => {}
            (Some(Task::Cleaning(old)), Ok(link)) if link != *old => self.clean(id, link, commands),
            (Some(Task::Cleaning(_)), _) => {}
            (None | Some(Task::Asking { .. }), link) => match link {
                _ if self.older_twin(id).is_some() => self.release(id, commands),
                Ok(link) if wanted.cleaned || self.knows(id, &link) => self.clean(id, link, commands),
                Ok(link) => self.ask(id, link, commands),
                Err(_) if wanted.cleaned => self.release(id, commands),
                Err(why) => {
                    self.unask(id, commands);
                    self.block(id, why, commands);
                }
            },
        }
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
        let leaving = self.is_leaving(id);
        let same = |task: &Task| matches!(task, Task::Asking { link: asked, leaving: was } if *asked == link && *was == leaving);
        if !self.tasks.get(id).is_some_and(same) {
            self.tasks.insert(id.clone(), Task::Asking { link: link.clone(), leaving });
            commands.push(Command::Ask(id.clone(), link));
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

    /// Whether it is known which cluster is behind this link.
    fn knows(&self, id: &ClusterId, link: &Link) -> bool {
        self.identified.get(id).is_some_and(|(asked, _)| asked == link)
    }

    /// Which cluster it is: by what answered, else by what its `Cluster` says.
    fn uid(&self, id: &ClusterId) -> Option<&str> {
        let answered = self.identified.get(id).and_then(|(_, uid)| uid.as_deref());
        answered.or_else(|| self.wanted.get(id)?.uid.as_deref())
    }

    /// Is the cluster of this uid a member?
    pub(crate) fn has(&self, uid: &str) -> bool {
        self.wanted.keys().any(|id| self.uid(id) == Some(uid))
    }

    /// All that lead to the same cluster.
    fn namesakes(&self, id: &ClusterId) -> Vec<ClusterId> {
        let Some(uid) = self.uid(id) else { return Vec::new() };
        self.wanted.keys().filter(|other| self.uid(other) == Some(uid)).cloned().collect()
    }

    /// The oldest that leads to the same cluster, if that is another one. One that is being cleaned counts until it is gone.
    fn older_twin(&self, id: &ClusterId) -> Option<ClusterId> {
        let age = |id: &ClusterId| self.wanted.get(id).map_or(i64::MAX, |wanted| wanted.created);
        let oldest = self.namesakes(id).into_iter().min_by_key(|one| (age(one), one.clone()))?;
        (oldest != *id).then_some(oldest)
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

    fn link(&self, wanted: &Wanted) -> Result<Link, NoLink> {
        let secret = wanted.secret.clone()?;
        let endpoint = wanted.endpoint.clone().ok_or(NoLink::NoEndpoint)?;
        let credentials = self.secrets.get(&secret).cloned().ok_or(NoLink::NoSecret(secret))?;
        Ok(Link {
            uid: wanted.uid.clone(),
            endpoint,
            insecure: wanted.insecure,
            proxy: wanted.proxy.clone(),
            credentials,
        })
    }
}

#[cfg(test)]
mod tests;
