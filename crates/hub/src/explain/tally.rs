//! What is counted of all services. A plan that is handed out only marks its service; it is counted again when a client asks, so many at
//! once: the hot path pays for one entry in a set.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use atoll_api::explain::{Remark, ServiceExplanation, Totals, Trouble};
use atoll_api::names::code::{Code, Severity};
use atoll_engine::names::ServiceKey;

use super::known::Known;
use super::service::{self, Scope};

/// Services that are counted anew for one question, at most.
pub(super) const AT_ONCE: usize = 1000;

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    stale: BTreeSet<ServiceKey>,
    of: BTreeMap<ServiceKey, Line>,
    totals: Totals,
    members: BTreeMap<String, OfMember>,
    troubles: BTreeSet<(Reverse<Severity>, ServiceKey)>,
}

/// What is counted of a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OfMember {
    pub(super) exports: usize,
    pub(super) imports: usize,
    pub(super) endpoints: usize,
}

#[derive(Debug)]
struct Line {
    verdict: Remark,
    totals: Totals,
    members: BTreeMap<String, OfMember>,
}

impl Tally {
    /// These may have changed.
    pub(crate) fn touch<'a>(&mut self, keys: impl IntoIterator<Item = &'a ServiceKey>) {
        for key in keys {
            if !self.stale.contains(key) {
                self.stale.insert(key.clone());
            }
        }
    }

    /// Counts some of what has changed; says how many services are not up to date yet.
    pub(super) fn refresh(&mut self, known: &Known<'_>) -> usize {
        for _ in 0..AT_ONCE {
            let Some(key) = self.stale.pop_first() else { break };
            let line = known.plan(&key).map(|_| {
                Line::of(
                    &service::explain(known, &key, &Scope::default()),
                    known.plan(&key).is_some_and(|plan| plan.balanced.is_some()),
                )
            });
            self.put(key, line);
        }
        self.stale.len()
    }

    fn put(&mut self, key: ServiceKey, line: Option<Line>) {
        if let Some(old) = self.of.remove(&key) {
            each(&mut self.totals, &old.totals, usize::saturating_sub);
            for (id, its) in &old.members {
                if let Some(all) = self.members.get_mut(id) {
                    all.each(its, usize::saturating_sub);
                    if *all == OfMember::default() {
                        self.members.remove(id);
                    }
                }
            }
            self.troubles.remove(&(Reverse(old.verdict.severity), key.clone()));
        }
        let Some(line) = line else { return };
        each(&mut self.totals, &line.totals, usize::saturating_add);
        for (id, its) in &line.members {
            self.members.entry(id.clone()).or_default().each(its, usize::saturating_add);
        }
        if line.verdict.severity > Severity::Info {
            self.troubles.insert((Reverse(line.verdict.severity), key.clone()));
        }
        self.of.insert(key, line);
    }

    /// What is counted of all services.
    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// What is counted of a member.
    pub(super) fn member(&self, id: &str) -> OfMember {
        self.members.get(id).copied().unwrap_or_default()
    }

    /// What is wrong, the worst first, and whether there is more.
    pub(super) fn troubles(&self, most: usize) -> (Vec<Trouble>, bool) {
        let trouble = |(_, key): &(Reverse<Severity>, ServiceKey)| {
            let remark = self.of.get(key)?.verdict.clone();
            Some(Trouble { service: key.to_string(), remark })
        };
        (self.troubles.iter().take(most).filter_map(trouble).collect(), self.troubles.len() > most)
    }
}

impl OfMember {
    fn each(&mut self, other: &Self, with: fn(usize, usize) -> usize) {
        self.exports = with(self.exports, other.exports);
        self.imports = with(self.imports, other.imports);
        self.endpoints = with(self.endpoints, other.endpoints);
    }
}

fn each(totals: &mut Totals, other: &Totals, with: fn(usize, usize) -> usize) {
    let Totals {
        services,
        exports,
        invalid_exports,
        conflicts,
        imports,
        stale,
        refused,
        multi_cluster_services,
        balancers,
        planning: _,
        unwritten: _,
        uncounted: _,
    } = other;
    totals.services = with(totals.services, *services);
    totals.exports = with(totals.exports, *exports);
    totals.invalid_exports = with(totals.invalid_exports, *invalid_exports);
    totals.conflicts = with(totals.conflicts, *conflicts);
    totals.imports = with(totals.imports, *imports);
    totals.stale = with(totals.stale, *stale);
    totals.refused = with(totals.refused, *refused);
    totals.multi_cluster_services = with(totals.multi_cluster_services, *multi_cluster_services);
    totals.balancers = with(totals.balancers, *balancers);
}

impl Line {
    fn of(all: &ServiceExplanation, balanced: bool) -> Self {
        let (mut totals, mut members) = (Totals::default(), BTreeMap::<String, OfMember>::new());
        let mut stale = false;
        for part in &all.clusters {
            let mut its = OfMember::default();
            if let Some(export) = &part.export {
                its.exports = usize::from(export.valid);
                its.endpoints = if export.valid { export.endpoints.ready } else { 0 };
                totals.exports += its.exports;
                totals.invalid_exports += usize::from(!export.valid);
                totals.refused |= usize::from(export.endpoints.refused > 0);
            }
            its.imports = usize::from(part.import.present);
            totals.imports += its.imports;
            let sources = part.import.sources.iter().chain(part.dispatch.iter().flat_map(|one| &one.sources));
            stale |= sources.flat_map(|source| &source.remarks).any(|remark| match remark.code {
                Code::KeptByPolicy | Code::KeptWithoutProbe | Code::Withdrawn | Code::NotHeard => true,
                _ => false, // the codes of all subjects are in one enum
            });
            if its != OfMember::default() {
                members.insert(part.cluster.clone(), its);
            }
        }
        totals.services = usize::from(totals.exports > 0);
        totals.conflicts = usize::from(!all.conflicts.is_empty());
        totals.stale = usize::from(stale);
        totals.multi_cluster_services = usize::from(all.multi_cluster_service.is_some());
        totals.balancers = usize::from(balanced);
        Self { verdict: all.verdict.clone(), totals, members }
    }
}
