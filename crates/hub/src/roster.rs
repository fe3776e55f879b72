//! Who is a member, and what has to be done about it. Pure: what the hub's API says in, commands out.
//!
//! ```text
//!   Cluster + Secret = Link ──▶ (none) ─Start─▶ Running ─Stop─▶ Stopping ─▶ (none) ─Clean─▶ Cleaning ─▶ gone
//! ```

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
}

/// What the hub's API said, or what a command has led to.
pub(crate) enum Event {
    Cluster(ClusterId, Box<Wanted>),
    ClusterGone(ClusterId),
    Secret(String, Option<Credentials>),
    /// The first list of both kinds is complete.
    Listed,
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
    Start(ClusterId, Link),
    Stop(ClusterId),
    AddFinalizer(ClusterId),
    Clean(ClusterId, Link),
    /// It can't be reached, for a reason that a person has to remove.
    Blocked(ClusterId, NoLink),
    /// Write down which cluster is behind each name.
    Record(BTreeMap<ClusterId, Option<String>>),
}

#[derive(Debug)]
enum Task {
    Running(Link),
    Stopping,
    Cleaning,
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
        let concerned: BTreeSet<ClusterId> = match event {
            Event::Cluster(id, wanted) => {
                self.wanted.insert(id.clone(), *wanted);
                [id].into()
            }
            Event::ClusterGone(id) => {
                self.wanted.remove(&id);
                [id].into()
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
            Event::Stopped(id) => {
                self.tasks.remove(&id);
                [id].into()
            }
            Event::Cleaned(id) => {
                self.tasks.remove(&id);
                if self.wanted.get(&id).is_some_and(|wanted| wanted.deleted) {
                    self.wanted.remove(&id); // its end will be seen; until then it must not be cleaned again
                }
                [id].into()
            }
        };
        if !self.listed {
            return Vec::new();
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

    fn settle(&mut self, id: &ClusterId, commands: &mut Vec<Command>) {
        let Some(wanted) = self.wanted.get(id).cloned() else { return self.dismiss(id, commands) };
        if wanted.deleted {
            self.dismiss(id, commands);
            if wanted.finalizer && !self.tasks.contains_key(id) {
                match self.link(&wanted) {
                    Ok(link) => {
                        self.tasks.insert(id.clone(), Task::Cleaning);
                        commands.push(Command::Clean(id.clone(), link));
                    }
                    Err(why) => self.block(id, why, commands),
                }
            }
            return;
        }
        if !wanted.finalizer {
            commands.push(Command::AddFinalizer(id.clone()));
        }
        let known = self.joined.get(id).cloned();
        let another = matches!((&known, &wanted.uid), (Some(Some(old)), Some(new)) if old != new);
        if another {
            // Another cluster has the name now: all that came from the old one goes before anything comes from the new one.
            self.dismiss(id, commands);
        }
        if matches!(self.tasks.get(id), Some(Task::Stopping | Task::Cleaning)) {
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
            (Ok(link), None) => {
                self.blocked.remove(id);
                commands.push(Command::Reset(id.clone()));
                commands.push(Command::Start(id.clone(), link.clone()));
                self.tasks.insert(id.clone(), Task::Running(link));
            }
            (Ok(link), Some(Task::Running(old))) if link != *old => self.stop(id, commands),
            (Ok(_), Some(_)) => {}
            (Err(why), task) => {
                if task.is_some() {
                    self.stop(id, commands);
                }
                self.block(id, why, commands);
            }
        }
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
