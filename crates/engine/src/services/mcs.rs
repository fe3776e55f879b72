//! What a `MultiClusterService` comes to: who provides, who consumes, and what each consumer holds of each provider.
//!
//! A provider needs no ServiceExport. Its facts are asked for by the plan itself ([`crate::plan::ClusterPlan::follow`]); until it has
//! told them, what others hold of it stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use litemap::LiteMap;

use super::balancing;
use super::slices::{PortRule, Rules};
use super::sources::Sources;
use super::supply::{self, Source};
use crate::facts::{Locality, NamespaceState, ServiceFact, ServiceType, TrafficDistribution};
use crate::fences::{Fence, Fenced};
use crate::intent::{CrossCluster, Intent};
use crate::limits::{self, Exceeded};
use crate::names::{ClusterId, PortName, ServiceKey};
use crate::network::Family;
use crate::plan::{Balanced, Crossing, DispatchPlan, SlicesFrom, WhyNotDispatched, WhyNothing, WhyUntouched};
use crate::reason::CrossNote;
use crate::world::{Cluster, Holding, World};

/// What is kept between two plans.
#[derive(Debug, Default)]
pub struct Cache {
    rules: BTreeMap<ClusterId, Ruled>,
    sources: Sources,
}

/// What of a provider's slices goes.
#[derive(Debug, PartialEq, Eq, Default)]
struct Ruled {
    only: Option<BTreeSet<PortName>>,
    distribution: Option<TrafficDistribution>,
    hostnames: bool,
}

impl Ruled {
    fn rules(&self) -> Rules<'_> {
        Rules {
            ports: self.only.as_ref().map_or(PortRule::All, PortRule::Only),
            distribution: self.distribution,
            hostnames: self.hostnames,
        }
    }
}

/// What comes of it, for every member.
#[derive(Debug, Default)]
pub struct Crossed {
    /// The whole, if anything is asked.
    pub crossing: Option<Arc<Crossing>>,
    /// What its balancer leads to, if it has one.
    pub balanced: Option<Arc<Balanced>>,
    plans: BTreeMap<ClusterId, (DispatchPlan, bool)>,
    otherwise: Option<DispatchPlan>,
}

impl Crossed {
    /// What a member holds, and whether it tells its facts.
    pub fn of(&mut self, id: &ClusterId) -> (DispatchPlan, bool) {
        let otherwise =
            || self.otherwise.clone().unwrap_or(DispatchPlan::Untouched(WhyUntouched::NothingKnown));
        self.plans.remove(id).unwrap_or_else(|| (otherwise(), false))
    }
}

/// Plans what crosses because a `MultiClusterService` asks for it.
pub fn cross(world: &World, key: &ServiceKey, fence: &Fence<'_>, cache: &mut Cache) -> Crossed {
    let asked = match &world.intents {
        None => return Crossed::default(),
        Some(intents) => intents.get(key),
    };
    let Some(asked) = asked else {
        *cache = Cache::default();
        let otherwise = Some(DispatchPlan::Absent(WhyNotDispatched::NotAsked));
        return Crossed { otherwise, ..Crossed::default() };
    };
    let never = if key.is_kubernetes_api() {
        Some(CrossNote::KubernetesApi)
    } else {
        fence.closed().map(CrossNote::Closed)
    };
    if let Some(why) = never {
        let notes = vec![why];
        let crossing = Some(Arc::new(Crossing { notes, ..Crossing::default() }));
        let otherwise = Some(DispatchPlan::Absent(WhyNotDispatched::Refused));
        return Crossed { crossing, otherwise, ..Crossed::default() };
    }
    if asked.frozen {
        *cache = Cache::default();
        return frozen(world, asked, fence);
    }
    let mut crossing = Crossing {
        providers: chosen(world, &asked.providers, |id| fence.export(id)),
        consumers: chosen(world, &asked.consumers, |id| fence.import(id)),
        ..Crossing::default()
    };
    // Who was named should know; "all" means all that may.
    let fenced = asked.providers.named().filter_map(|id| Some((id, fence.export(id).err()?)));
    let fenced = fenced.chain(asked.consumers.named().filter_map(|id| Some((id, fence.import(id).err()?))));
    let fenced: BTreeSet<_> = fenced.filter(|(id, _)| world.clusters.contains_key(*id)).collect();
    let notes = fenced.into_iter().map(|(id, why)| CrossNote::Fenced { cluster: id.clone(), why });
    crossing.notes.extend(notes);
    let named = asked.providers.named().chain(asked.consumers.named());
    let strangers: BTreeSet<_> = named.filter(|id| !world.clusters.contains_key(*id)).collect();
    crossing.notes.extend(strangers.into_iter().map(|id| CrossNote::NotAMember { cluster: id.clone() }));
    provide(world, key, asked, fence, cache, &mut crossing);
    let balanced = asked
        .balanced
        .then(|| Arc::new(balancing::balanced(world, key, asked, &crossing.providers, &mut cache.sources)));
    let plans = consume(world, key, asked, cache, &mut crossing);
    crossing.notes.sort();
    Crossed {
        crossing: Some(Arc::new(crossing)),
        balanced,
        plans,
        otherwise: Some(DispatchPlan::Absent(WhyNotDispatched::NotAsked)),
    }
}

/// Nothing follows from what a refused author asks for, not even that less is held: only the operator's fences do that.
fn frozen(world: &World, asked: &CrossCluster, fence: &Fence<'_>) -> Crossed {
    let plan = |id: &ClusterId| match fence.import(id) {
        Ok(()) => DispatchPlan::Untouched(WhyUntouched::AuthorRefused),
        Err(_) => DispatchPlan::Absent(WhyNotDispatched::Refused),
    };
    let crossing = Crossing {
        providers: chosen(world, &asked.providers, |id| fence.export(id)),
        consumers: chosen(world, &asked.consumers, |id| fence.import(id)),
        ..Crossing::default()
    };
    Crossed {
        crossing: Some(Arc::new(crossing)),
        plans: world.clusters.keys().map(|id| (id.clone(), (plan(id), false))).collect(),
        ..Crossed::default()
    }
}

fn chosen(
    world: &World,
    clusters: &crate::intent::Clusters,
    may: impl Fn(&ClusterId) -> Result<(), Fenced>,
) -> BTreeSet<ClusterId> {
    world.clusters.keys().filter(|id| clusters.contains(id) && may(id).is_ok()).cloned().collect()
}

/// Whether everything that a cluster has of the service is known.
pub(crate) fn is_known(world: &World, key: &ServiceKey, id: &ClusterId, cluster: &Cluster) -> bool {
    cluster.heard.is_some() && world.holding(key, id).is_some_and(|holding| holding.followed)
}

/// The providers' slices, and what is to be said about each provider.
fn provide(
    world: &World,
    key: &ServiceKey,
    asked: &CrossCluster,
    fence: &Fence<'_>,
    cache: &mut Cache,
    crossing: &mut Crossing,
) {
    let mut rules = BTreeMap::new();
    for id in &crossing.providers {
        let Some(cluster) = world.clusters.get(id) else { continue };
        let known = is_known(world, key, id, cluster);
        if !known {
            continue;
        }
        let holding = world.holding(key, id);
        if let Some(Err(why)) = holding.map(|holding| within_limits(fence, holding)) {
            crossing.notes.push(CrossNote::TooMuch { cluster: id.clone(), why });
            continue; // no rules, no slices
        }
        let service = holding.and_then(|holding| holding.service.as_deref());
        crossing.notes.extend(service_note(id, service));
        let only = (!asked.ports.is_empty()).then(|| wanted_ports(id, asked, service, &mut crossing.notes));
        let distribution = service.and_then(|service| service.traffic_distribution);
        rules.insert(id.clone(), Ruled { only, distribution, hostnames: asked.hostnames });
    }
    let before = std::mem::replace(&mut cache.rules, rules);
    let each = cache.rules.iter().map(|(id, ruled)| (id, ruled.rules(), before.get(id) == Some(ruled)));
    cache.sources.refresh(world, key, Intent::CrossCluster, each);
    for id in &crossing.providers {
        let Some(cluster) = world.clusters.get(id) else { continue };
        let known = is_known(world, key, id, cluster);
        let seen = Source { id, policy: asked.liveness, known, own: false };
        let judged = supply::judge(world, seen, &crossing.providers, &cache.sources);
        let refused = cache.sources.refused(id);
        crossing.notes.extend(refused.map(|why| CrossNote::AddressRefused { cluster: id.clone(), why }));
        crossing.stale.extend(judged.stale.map(|mark| (id.clone(), mark)));
    }
}

/// Whether a provider may have as many endpoints as it has.
pub(crate) fn within_limits(fence: &Fence<'_>, holding: &Holding) -> Result<(), Exceeded> {
    limits::of_slices(holding)?;
    fence.endpoints(holding)
}

fn service_note(id: &ClusterId, service: Option<&ServiceFact>) -> Option<CrossNote> {
    match service.map(|service| service.service_type) {
        None => Some(CrossNote::NoService { cluster: id.clone() }),
        Some(ServiceType::ExternalName) => Some(CrossNote::ExternalName { cluster: id.clone() }),
        Some(ServiceType::ClusterIp | ServiceType::NodePort | ServiceType::LoadBalancer) => None,
    }
}

/// The names of the ports that are asked for, as the provider's Service calls them.
fn wanted_ports(
    id: &ClusterId,
    asked: &CrossCluster,
    service: Option<&ServiceFact>,
    notes: &mut Vec<CrossNote>,
) -> BTreeSet<PortName> {
    let mut wanted = BTreeSet::new();
    let Some(service) = service else { return wanted };
    for port in &asked.ports {
        let its = service.ports.iter().filter(|its| its.port == port.port);
        let mut its = its.filter(|its| port.name.as_ref().is_none_or(|name| *name == its.name)).peekable();
        if its.peek().is_none() {
            let (name, port) = (port.name.clone(), port.port);
            notes.push(CrossNote::NoSuchPort { cluster: id.clone(), name, port });
        }
        wanted.extend(its.map(|its| its.name.clone()));
    }
    wanted
}

/// What each consumer holds, and who tells its facts.
fn consume(
    world: &World,
    key: &ServiceKey,
    asked: &CrossCluster,
    cache: &mut Cache,
    crossing: &mut Crossing,
) -> BTreeMap<ClusterId, (DispatchPlan, bool)> {
    let local_first = asked.locality.unwrap_or(world.settings.locality) == Locality::LocalFirst;
    let mut plans = BTreeMap::new();
    let mut shared: Option<Arc<LiteMap<ClusterId, SlicesFrom>>> = None;
    for (id, cluster) in &world.clusters {
        let (provides, consumes) = (crossing.providers.contains(id), crossing.consumers.contains(id));
        let plan = match (consumes, &cluster.heard, cluster.namespaces.get(&key.namespace)) {
            (false, _, _) => DispatchPlan::Absent(WhyNotDispatched::NotAConsumer),
            (true, None, _) => DispatchPlan::Untouched(WhyUntouched::NotHeard),
            (true, Some(_), None) => {
                crossing.notes.push(CrossNote::NoNamespace { cluster: id.clone() });
                DispatchPlan::Absent(WhyNotDispatched::NoNamespace)
            }
            (true, Some(_), Some(NamespaceState::Terminating)) => {
                DispatchPlan::Untouched(WhyUntouched::NamespaceTerminating)
            }
            (true, Some(_), Some(NamespaceState::Active)) if provides || local_first => {
                let local = local_first.then(|| local(world, key, id, cluster));
                DispatchPlan::Present(Arc::new(from_each(world, key, asked, cache, crossing, id, local)))
            }
            (true, Some(_), Some(NamespaceState::Active)) => {
                // Those that provide nothing get the same.
                let all = || Arc::new(from_each(world, key, asked, cache, crossing, id, None));
                DispatchPlan::Present(Arc::clone(shared.get_or_insert_with(all)))
            }
        };
        let follow = provides || (consumes && local_first);
        plans.insert(id.clone(), (plan, follow));
    }
    plans
}

/// Whether a consumer has ready endpoints of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Local {
    Ready,
    None,
    Unknown,
}

fn local(world: &World, key: &ServiceKey, id: &ClusterId, cluster: &Cluster) -> Local {
    let holding = world.holding(key, id);
    let endpoints =
        holding.into_iter().flat_map(|holding| holding.slices.values()).flat_map(|s| &s.endpoints);
    if !is_known(world, key, id, cluster) {
        Local::Unknown
    } else if endpoints.into_iter().any(|endpoint| endpoint.conditions.is_ready()) {
        Local::Ready
    } else {
        Local::None
    }
}

/// What a consumer holds from each provider but itself.
fn from_each(
    world: &World,
    key: &ServiceKey,
    asked: &CrossCluster,
    cache: &mut Cache,
    crossing: &Crossing,
    consumer: &ClusterId,
    local: Option<Local>,
) -> LiteMap<ClusterId, SlicesFrom> {
    let mut slices = LiteMap::new();
    for source in crossing.providers.iter().filter(|source| *source != consumer) {
        let Some(cluster) = world.clusters.get(source) else { continue };
        let known = is_known(world, key, source, cluster) && local != Some(Local::Unknown);
        let seen = Source { id: source, policy: asked.liveness, known, own: false };
        let verdict = supply::judge(world, seen, &crossing.providers, &cache.sources).verdict;
        let refused = (local == Some(Local::Ready)).then_some(WhyNothing::LocalFirst);
        slices
            .insert(source.clone(), supply::from(seen, verdict, refused, &Family::BOTH, &mut cache.sources));
    }
    slices
}
