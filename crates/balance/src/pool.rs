//! All backends of one listener: what is known of each, and who may be picked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::backend::{Backend, Settings};
use crate::health::{Health, Verdict};
use crate::outlier::Record;
use crate::picture::{Candidate, Level, Picture};
use crate::{Time, shares};

/// How a backend stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Gets its share.
    Usable,
    /// Healthy, with a share of nothing.
    WithoutShare,
    /// Healthy, and asked for nothing new.
    Draining,
    /// Connections to it failed.
    Ejected {
        /// It gets another chance then.
        until: Time,
    },
    /// It fails its checks.
    Unhealthy,
    /// No longer listed; it finishes what it has.
    Leaving {
        /// What is then still open is cut.
        until: Time,
    },
}

/// A backend that is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// It had nothing left to do.
    Finished(SocketAddr),
    /// Its time was over; what is open has to be cut.
    Overdue(SocketAddr),
}

#[derive(Debug)]
struct Member {
    backend: Backend,
    health: Health,
    record: Record,
    leaving: Option<Time>,
}

/// All backends of one listener.
#[derive(Debug, Default)]
pub struct Pool {
    settings: Settings,
    members: BTreeMap<SocketAddr, Member>,
    picture: Arc<Picture>,
}

impl Pool {
    /// Takes a new list of backends and how they share. Whoever was there before keeps what is known of it; whoever is missing now
    /// may finish. True if the picture changed.
    pub fn configure(&mut self, settings: Settings, backends: Vec<Backend>, now: Time) -> bool {
        let checks_began = self.settings.checks.is_none() && settings.checks.is_some();
        self.settings = settings;
        let mut left: BTreeMap<_, _> = std::mem::take(&mut self.members);
        for backend in backends {
            let address = backend.address;
            let member = match left.remove(&address) {
                Some(known) => Member { backend, leaving: None, ..known },
                None => {
                    Member { backend, health: Health::new(now), record: Record::default(), leaving: None }
                }
            };
            self.members.insert(address, member);
        }
        for (address, mut member) in left {
            member.leaving.get_or_insert(now + self.settings.drain);
            self.members.insert(address, member);
        }
        for member in self.members.values_mut() {
            if self.settings.checks.is_none() {
                member.health = Health::default();
            } else if checks_began {
                member.health = Health::new(now);
            }
        }
        self.redraw()
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Who may be picked.
    pub fn picture(&self) -> &Arc<Picture> {
        &self.picture
    }

    /// Every backend, and how it stands.
    pub fn standings(&self) -> impl Iterator<Item = (&Backend, Standing)> {
        self.members.values().map(|member| (&member.backend, self.standing(member)))
    }

    /// Those whose check begins now; each is told of by [`Pool::checked`] when it has ended.
    pub fn begin_checks(&mut self, now: Time) -> Vec<SocketAddr> {
        if self.settings.checks.is_none() {
            return Vec::new();
        }
        let members = self.members.iter_mut().filter(|(_, member)| member.leaving.is_none());
        members.filter_map(|(address, member)| member.health.begin(now).then_some(*address)).collect()
    }

    /// A check has ended. True if the picture changed.
    pub fn checked(&mut self, address: SocketAddr, good: bool, now: Time) -> bool {
        let (Some(checks), Some(member)) = (self.settings.checks, self.members.get_mut(&address)) else {
            return false;
        };
        member.health.observe(good, checks, now) && self.redraw()
    }

    /// A check has ended that says nothing about the backend: there is another in due time.
    pub fn unchecked(&mut self, address: SocketAddr, now: Time) {
        if let (Some(checks), Some(member)) = (self.settings.checks, self.members.get_mut(&address)) {
            member.health.put_off(checks, now);
        }
    }

    /// A connection came about.
    pub fn passed(&mut self, address: SocketAddr) {
        if let Some(member) = self.members.get_mut(&address) {
            member.record.passed();
        }
    }

    /// Whether a connection that comes about is worth telling: [`Pool::passed`] would change something.
    pub fn doubted(&self, address: SocketAddr) -> bool {
        self.members.get(&address).is_some_and(|member| member.record.doubted())
    }

    /// A connection did not come about. True if the picture changed.
    pub fn failed(&mut self, address: SocketAddr, now: Time) -> bool {
        let Some(ejection) = self.settings.ejection else { return false };
        let present = self.members.values().filter(|member| member.leaving.is_none());
        let (backends, ejected) = present.fold((0, 0), |(backends, ejected), member| {
            (backends + 1, ejected + usize::from(member.record.until().is_some()))
        });
        let room = ejected < ejection.most(backends);
        let Some(member) = self.members.get_mut(&address) else { return false };
        member.record.failed(&ejection, room, now) && self.redraw()
    }

    /// Lets time pass: ejected ones come back, and those that leave are gone when they have finished or when their time is over.
    pub fn tick(&mut self, open: impl Fn(SocketAddr) -> usize, now: Time) -> (bool, Vec<Gone>) {
        let mut gone = Vec::new();
        let mut back = false;
        self.members.retain(|address, member| {
            back |= member.record.readmit(now);
            match member.leaving {
                Some(_) if open(*address) == 0 => gone.push(Gone::Finished(*address)),
                Some(until) if until <= now => gone.push(Gone::Overdue(*address)),
                Some(_) | None => return true,
            }
            false
        });
        (back && self.redraw(), gone)
    }

    /// When there is something to do next: a check, a readmission, the end of a backend's or a client's time.
    pub fn next(&self) -> Option<Time> {
        let checks = self.settings.checks.is_some();
        self.members
            .values()
            .flat_map(|member| {
                let check = member.health.next().filter(|_| checks && member.leaving.is_none());
                [check, member.record.until(), member.leaving]
            })
            .flatten()
            .min()
    }

    fn standing(&self, member: &Member) -> Standing {
        if let Some(until) = member.leaving {
            return Standing::Leaving { until };
        }
        match (member.health.verdict, member.record.until()) {
            (Verdict::Unhealthy, _) => Standing::Unhealthy,
            (_, Some(until)) => Standing::Ejected { until },
            _ if member.backend.draining => Standing::Draining,
            _ if member.backend.weight == 0 => Standing::WithoutShare,
            _ if shares::cluster_weight(&self.settings, &member.backend.cluster) == 0 => {
                Standing::WithoutShare
            }
            _ => Standing::Usable,
        }
    }

    fn level(&self, member: &Member) -> Option<Level> {
        match self.standing(member) {
            Standing::Usable => {
                let share = self.settings.clusters.get(&member.backend.cluster);
                Some(Level::Tier(share.map_or(0, |share| share.tier)))
            }
            Standing::WithoutShare => Some(Level::WithoutShare),
            Standing::Draining => Some(Level::Draining),
            Standing::Ejected { .. } => Some(Level::Ejected),
            Standing::Unhealthy => Some(Level::Unhealthy),
            Standing::Leaving { .. } => None,
        }
    }

    /// True if the picture is another one now.
    fn redraw(&mut self) -> bool {
        let level =
            self.members.values().filter_map(|member| self.level(member)).min().unwrap_or(Level::Empty);
        let chosen = self.members.values().filter(|member| self.level(member) == Some(level));
        let backends: Vec<&Backend> = chosen.map(|member| &member.backend).collect();
        let weights = shares::weights(&self.settings, &backends);
        let candidates = backends
            .iter()
            .zip(weights)
            .map(|(backend, weight)| Candidate {
                address: backend.address,
                cluster: Arc::clone(&backend.cluster),
                weight,
            })
            .collect();
        let picture = Picture::new(level, self.settings.algorithm, self.settings.seed, candidates);
        let changed = *self.picture != picture;
        if changed {
            self.picture = Arc::new(picture);
        }
        changed
    }
}
