//! The planner of services, step by step. Each step is a plain function in a file of its own.
//!
//! | step | decides |
//! |---|---|
//! | [`recall`] | who exports: facts where heard, memory where not; [`validity`], [`precedence`] |
//! | [`merge`] | one service out of many: [`ports`], [`families`], [`exported`] labels |
//! | [`sources`] | each source's slices, once for all importers: [`slices`], [`naming`] |
//! | [`importer`] | what each cluster gets: families cut, [`withdraw`], locality |
//! | [`reached`] | which clusters import it, for all its exports |
//! | [`status`] | what each export is told |
//! | [`mcs`] | what a `MultiClusterService` asks for: its providers' slices in its consumers |
//! | [`balancing`] | what a `MultiClusterService`'s balancer leads to |
//!
//! [`dissent`] says afterwards who disagreed. [`supply`] is what importers and consumers have in common: what is held from one source, and why.

pub mod balancing;
pub mod dissent;
pub mod exported;
pub mod families;
pub mod importer;
pub mod mcs;
pub mod merge;
pub mod naming;
pub mod ports;
pub mod precedence;
pub mod reached;
pub mod recall;
pub mod slices;
pub mod sources;
pub mod status;
pub mod supply;
pub mod validity;
pub mod withdraw;

use std::sync::Arc;

use litemap::LiteMap;

use self::mcs::Crossed;
use self::merge::Merged;
use self::naming::Derived;
use self::recall::{Recalled, Verdicts};
use self::slices::{PortRule, Rules};
use self::sources::Sources;
use crate::facts::{Capabilities, NamespaceState};
use crate::fences::Fence;
use crate::intent::Intent;
use crate::intent::imports::{ImportPort, Wanted};
use crate::memory::ServiceMemory;
use crate::names::{ClusterId, ServiceKey};
use crate::plan::{ClusterPlan, ImportPlan, Plan, WhyAbsent, WhyUntouched};
use crate::reason::reach::Reach;
use crate::time::Time;
use crate::world::{Cluster, World};

/// What is kept of a service between two plans. It saves work and changes no outcome.
#[derive(Debug, Default)]
pub struct Cache {
    verdicts: Verdicts,
    merged: Option<Arc<Merged>>,
    sources: Sources,
    crossing: mcs::Cache,
    reach: Option<Arc<Reach>>,
}

impl Cache {
    /// What the exports came to.
    pub fn merged(&self) -> Option<&Merged> {
        self.merged.as_deref()
    }
}

/// Plans one service; says what is to be remembered of it.
pub fn plan(world: &World, key: &ServiceKey, cache: &mut Cache, now: Time) -> (Plan, Option<ServiceMemory>) {
    let fence = world.fences.around(&key.namespace);
    let mut recalled = recall::recall(world, key, &fence, &mut cache.verdicts, now);
    let merged = remerge(cache, std::mem::take(&mut recalled.constituents));
    match &merged {
        Some((merged, same)) => {
            let rules = |source| Rules {
                ports: PortRule::Merged(merged.fates.get(source)),
                distribution: merged.spec.traffic_distribution,
                hostnames: true,
            };
            let each = merged.clusters.iter().map(|source| (source, rules(source), *same));
            cache.sources.refresh(world, key, Intent::Export, each);
        }
        None => cache.sources = Sources::default(),
    }
    let merged = merged.map(|(merged, _)| merged);

    let mut crossed = mcs::cross(world, key, &fence, &mut cache.crossing);
    let targets = naming::derived(key);
    let mut imports = Vec::with_capacity(world.clusters.len());
    let mut shared: Vec<(&Capabilities, &[ImportPort], Derived, ImportPlan)> = Vec::new();
    for (id, cluster) in &world.clusters {
        let import = match import(world, key, (id, cluster), &fence, &recalled, merged.as_deref()) {
            Import::Left(why) => ImportPlan::Untouched(why),
            Import::Empty(why) => {
                if let Some(memory) = &mut recalled.memory {
                    memory.hashed_in.remove(id);
                }
                ImportPlan::Absent(why)
            }
            Import::Imports(capabilities, ports, merged) => {
                let hashed_before = recalled.memory.as_ref().is_some_and(|m| m.hashed_in.contains(id));
                let name = targets.choose(&cluster.taken, hashed_before);
                if let (Derived::PlainTaken { .. }, Some(memory)) = (&name, &mut recalled.memory) {
                    memory.hashed_in.insert(id.clone());
                }
                // Those that export nothing of it, can do the same and use the same name get the same.
                let exports = merged.clusters.contains(id);
                let same = shared
                    .iter()
                    .find(|(c, p, n, _)| !exports && *c == capabilities && *p == ports && *n == name);
                match same {
                    Some((_, _, _, plan)) => plan.clone(),
                    None => {
                        let here = importer::Here { id, capabilities, name: &name, ports, fence: &fence };
                        let plan = importer::import(world, merged, &mut cache.sources, &here);
                        if !exports {
                            shared.push((capabilities, ports, name, plan.clone()));
                        }
                        plan
                    }
                }
            }
        };
        imports.push((id, cluster.contact, import));
    }
    cache.reach = merged.as_ref().map(|_| reached::by(&imports, cache.reach.take()));
    let mut clusters = LiteMap::with_capacity(world.clusters.len());
    for (id, _, import) in imports {
        let reach = cache.reach.as_ref();
        let export =
            status::export(world, key, id, &recalled.invalid, merged.as_deref(), &cache.sources, reach);
        let (dispatch, follow) = crossed.of(id);
        clusters.insert(id.clone(), Arc::new(ClusterPlan { import, export, dispatch, follow }));
    }
    let Crossed { crossing, balanced, .. } = crossed;
    (Plan { service: key.clone(), crossing, balanced, clusters }, recalled.memory)
}

/// Merges the exports, or finds that they are what they were.
fn remerge(
    cache: &mut Cache,
    exports: Vec<(ClusterId, Arc<crate::memory::Offer>)>,
) -> Option<(Arc<Merged>, bool)> {
    if let Some(merged) = cache.merged.as_ref().filter(|merged| merged.exports == exports) {
        return Some((Arc::clone(merged), true));
    }
    cache.merged = merge::merge(exports).map(Arc::new);
    cache.merged.clone().map(|merged| (merged, false))
}

enum Import<'a> {
    Imports(&'a Capabilities, &'a [ImportPort], &'a Merged),
    Empty(WhyAbsent),
    Left(WhyUntouched),
}

/// Does this cluster import the service?
fn import<'a>(
    world: &'a World,
    key: &ServiceKey,
    (id, cluster): (&ClusterId, &'a Cluster),
    fence: &Fence<'_>,
    recalled: &Recalled,
    merged: Option<&'a Merged>,
) -> Import<'a> {
    let Some(capabilities) = &cluster.heard else { return Import::Left(WhyUntouched::NotHeard) };
    match cluster.namespaces.get(&key.namespace) {
        None => return Import::Empty(WhyAbsent::NoNamespace),
        Some(NamespaceState::Terminating) => return Import::Left(WhyUntouched::NamespaceTerminating),
        Some(NamespaceState::Active) => {}
    }
    if let Err(why) = fence.import(id) {
        return Import::Empty(WhyAbsent::Fenced(why));
    }
    match (world.imports.wanted(key, id), merged) {
        (Wanted::No, _) => Import::Empty(WhyAbsent::NotAsked),
        (Wanted::Yes(ports), Some(merged)) => Import::Imports(capabilities, ports, merged),
        (Wanted::Unknown, Some(_)) => Import::Left(WhyUntouched::PlacementUnknown),
        (Wanted::Yes(_) | Wanted::Unknown, None) if recalled.in_the_dark => {
            Import::Left(WhyUntouched::NothingKnown)
        }
        (Wanted::Yes(_) | Wanted::Unknown, None) => Import::Empty(WhyAbsent::NotExported),
    }
}
