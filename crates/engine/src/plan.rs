//! What each cluster should hold of one service. Members compare it with what they hold, and write the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use litemap::LiteMap;

use serde::{Deserialize, Serialize};

use crate::facts::{
    EndpointConditions, InternalTrafficPolicy, Pairs, Protocol, ServicePort, SessionAffinity, SlicePort,
    TrafficDistribution,
};
use crate::fences::Fenced;
use crate::names::{ClusterId, Hostname, NodeName, PortName, ServiceKey, ServiceName, SliceName, Uid, Zone};
use crate::network::Family;
use crate::reason::reach::Reach;
use crate::reason::{
    Conflict, CrossNote, ExportReady, ImportNote, ImportReady, Invalid, Kept, KeyRefused, SliceNote,
    Withdrawn,
};
use crate::time::Time;

/// What each member of the clusterset should hold of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The service.
    pub service: ServiceKey,
    /// What a `MultiClusterService` comes to, if there is one.
    pub crossing: Option<Arc<Crossing>>,
    /// What its balancer leads to, if it is of type `LoadBalancer`. No member holds anything of it.
    pub balanced: Option<Arc<Balanced>>,
    /// Every member has an entry; it is what that member is told.
    pub clusters: LiteMap<ClusterId, Arc<ClusterPlan>>,
}

/// What one cluster should hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlan {
    /// The ServiceImport, the derived Service and its slices.
    pub import: ImportPlan,
    /// The conditions of its ServiceExport; none when there is nothing to write.
    pub export: Option<ExportStatus>,
    /// The slices that a `MultiClusterService` brings here; they hang on the Service of the service's own name.
    pub dispatch: DispatchPlan,
    /// Whether it has to tell what it has of the service, exported or not.
    pub follow: bool,
}

/// What a cluster should hold because of a `MultiClusterService`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DispatchPlan {
    /// The slices, by provider, never its own. What is held from a cluster not listed here goes. Consumers that get the same share it.
    Present(#[serde(with = "crate::few::as_map")] Arc<LiteMap<ClusterId, SlicesFrom>>),
    /// Nothing.
    Absent(WhyNotDispatched),
    /// Whatever it holds: no create, no repair, no delete.
    Untouched(WhyUntouched),
}

/// Why a cluster should hold nothing because of a `MultiClusterService`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhyNotDispatched {
    /// There is no `MultiClusterService` for it.
    NotAsked,
    /// It is none of the consumers.
    NotAConsumer,
    /// The namespace does not exist there.
    NoNamespace,
    /// Such a service never crosses.
    Refused,
}

/// What a `MultiClusterService` comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Crossing {
    /// The members that provide.
    pub providers: BTreeSet<ClusterId>,
    /// The members that consume.
    pub consumers: BTreeSet<ClusterId>,
    /// Providers whose endpoints may be out of date.
    pub stale: BTreeMap<ClusterId, StaleMark>,
    /// What its owner should know, in order.
    pub notes: Vec<CrossNote>,
}

/// What a balancer outside all clusters leads to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Balanced {
    /// Where clients come in, and what the first provider calls it.
    pub ports: BTreeMap<(Protocol, u16), PortName>,
    /// Who answers, by the port where clients come in and by address.
    pub backends: BTreeMap<((Protocol, u16), SocketAddr), Backend>,
    /// For how many seconds a client comes back to the same backend; none if it need not.
    pub affinity: Option<u32>,
    /// Providers that will tell what they have in a moment: until then nothing can be said of the whole.
    pub awaited: BTreeSet<ClusterId>,
    /// Providers that are lost and were never heard, whose endpoints are to be kept: whoever has some of theirs keeps them.
    pub unheard: BTreeSet<ClusterId>,
}

/// One that answers a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Where it is.
    pub cluster: ClusterId,
    /// Its zone.
    pub zone: Option<Zone>,
    /// False: it finishes what it has, and should get nothing new.
    pub ready: bool,
}

/// What a cluster should hold as an importer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportPlan {
    /// Exactly this. Importers that get the same share it.
    Present {
        /// The ServiceImport and the derived Service.
        import: Arc<Import>,
        /// The slices, by source. What is held from a cluster not listed here goes.
        #[serde(with = "crate::few::as_map")]
        slices: Arc<LiteMap<ClusterId, SlicesFrom>>,
    },
    /// Nothing.
    Absent(WhyAbsent),
    /// Whatever it holds: no create, no repair, no delete.
    Untouched(WhyUntouched),
}

/// Why a cluster should hold nothing of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhyAbsent {
    /// No valid export is left.
    NotExported,
    /// The namespace does not exist there.
    NoNamespace,
    /// Its namespace is imported only where a ServiceImport of the hub goes, and none goes there.
    NotAsked,
    /// The hub's operator does not let it.
    Fenced(Fenced),
}

/// Why a cluster is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhyUntouched {
    /// It has not been heard from.
    NotHeard,
    /// The namespace is going, and takes everything with it.
    NamespaceTerminating,
    /// Nothing is known of the service, and a cluster that has not been heard from may know more.
    NothingKnown,
    /// The hub has a ServiceImport for it, and where that goes is not known yet.
    PlacementUnknown,
    /// The author of the `MultiClusterService` may not have what it asks for.
    AuthorRefused,
}

/// The slices that an importer should hold from one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlicesFrom {
    /// These, and no others. The list is shared by all importers that get the same.
    Exactly(Arc<[Arc<Slice>]>, Kept),
    /// Those that it holds: the hub does not know them.
    KeepWhatIsThere(Unknown),
    /// None.
    Nothing(WhyNothing),
}

/// Why the hub does not know a source's slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unknown {
    /// The source has not been heard from since the hub started, and is not known to be lost.
    NotHeard,
    /// It is lost, and the policy keeps its endpoints.
    LostUnheard(Kept),
}

/// Why nothing of a source is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhyNothing {
    /// The policy withdraws what is lost.
    Withdrawn(Withdrawn),
    /// The importer has ready endpoints of its own, and the service is local-first.
    LocalFirst,
    /// There is no Service to attach them to; the import's condition says why.
    NoDerivedService,
}

/// A ServiceImport with its derived Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// What the import says.
    pub spec: Arc<ImportSpec>,
    /// The families of the import in this cluster, the primary one first; never empty.
    pub families: Vec<Family>,
    /// The derived Service; its cluster IPs are the import's `ips` unless it is headless. None when `ready` says why.
    pub derived: Option<DerivedService>,
    /// The clusters that export the service.
    pub clusters: Arc<[ClusterId]>,
    /// Whether it can be ready.
    pub ready: ImportReady,
    /// What else its user should know.
    pub notes: Vec<ImportNote>,
    /// Sources whose endpoints may be out of date.
    pub stale: BTreeMap<ClusterId, StaleMark>,
}

/// The mark of a source that may be out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StaleMark {
    /// Lost since then.
    Since(Time),
    /// Not heard from since the hub started: leave the mark as it is.
    AsItWas,
}

/// What is the same in every importer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportSpec {
    /// `Headless`, or else `ClusterSetIP`.
    pub headless: bool,
    /// The union of the exports' ports.
    pub ports: Vec<ServicePort>,
    /// Session affinity.
    pub session_affinity: SessionAffinity,
    /// Its timeout in seconds.
    pub client_ip_timeout: Option<u32>,
    /// Internal traffic policy.
    pub internal_traffic_policy: InternalTrafficPolicy,
    /// Traffic distribution.
    pub traffic_distribution: Option<TrafficDistribution>,
    /// Labels of the ServiceImport (never of the derived Service).
    pub labels: Pairs,
    /// Annotations of the ServiceImport (never of the derived Service).
    pub annotations: Pairs,
}

/// What the derived Service has of its own; the rest is the import's spec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DerivedService {
    /// Its name; every imported slice is attached to it.
    pub name: ServiceName,
    /// One family asks for `SingleStack`: `PreferDualStack` would add the other. Two ask for `PreferDualStack`.
    pub families: Vec<Family>,
    /// The traffic distribution as far as the cluster's API knows it.
    pub traffic_distribution: Option<TrafficDistribution>,
}

/// An EndpointSlice to be held. Its contents are the same in all importers but the source itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Its name in the importer.
    pub name: SliceName,
    /// Its name at the source.
    pub original: SliceName,
    /// The source.
    pub source: ClusterId,
    /// Its `addressType`.
    pub family: Family,
    /// Its ports, under the names that the import gives them.
    pub ports: Vec<SlicePort>,
    /// Its endpoints.
    pub endpoints: Vec<Endpoint>,
    /// What stayed behind or was renamed. Nothing of it is written.
    pub notes: Vec<SliceNote>,
}

/// An endpoint to be held.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    /// Its addresses.
    pub addresses: Box<[IpAddr]>,
    /// Its conditions, as the source gives them.
    pub conditions: EndpointConditions,
    /// Its hostname.
    pub hostname: Option<Hostname>,
    /// Its node, in its own cluster only.
    pub node: Option<NodeName>,
    /// Its zone.
    pub zone: Option<Zone>,
    /// `hints.forZones`.
    pub for_zones: Box<[Zone]>,
    /// `hints.forNodes`, in its own cluster only.
    pub for_nodes: Box<[NodeName]>,
}

/// The conditions of a ServiceExport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportStatus {
    /// Which export: one made anew under the same name is another.
    pub uid: Uid,
    /// `Valid`.
    pub valid: Result<(), Invalid>,
    /// `Ready`.
    pub ready: ExportReady,
    /// `Conflict`: empty means `NoConflicts`; none means that the export is no constituent and has no such condition.
    pub conflicts: Option<Arc<[Conflict]>>,
    /// Exported labels and annotations that do not travel.
    pub refused_keys: Vec<KeyRefused>,
    /// Where the service is imported; the same for all exports. None if it is not exported.
    #[serde(default)]
    pub reach: Option<Arc<Reach>>,
}

/// What differs between a plan and the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Touched {
    /// Nothing.
    Nothing,
    /// Only these slices, by source and name there: one write per importer each, and no status.
    Slices(BTreeSet<(ClusterId, SliceName)>),
    /// More than slices.
    Everything,
}

impl Plan {
    /// What has to be looked at by a reader who has carried out `before`.
    pub fn touched_since(&self, before: &Self) -> Touched {
        if !self.clusters.keys().eq(before.clusters.keys()) || self.crossing != before.crossing {
            return Touched::Everything;
        }
        let mut slices = BTreeSet::new();
        let mut last = None; // Importers share what they get: compare it once.
        let mut last_dispatch = None;
        for (new, old) in self.clusters.values().zip(before.clusters.values()) {
            if new.export != old.export || new.follow != old.follow {
                return Touched::Everything;
            }
            match (&new.dispatch, &old.dispatch) {
                (DispatchPlan::Present(from), DispatchPlan::Present(old_from)) => {
                    let those = [from, old_from].map(Arc::as_ptr);
                    if last_dispatch.replace(those) != Some(those) && !differing(from, old_from, &mut slices)
                    {
                        return Touched::Everything;
                    }
                }
                (new, old) if new == old => {}
                (
                    DispatchPlan::Present(_) | DispatchPlan::Absent(_) | DispatchPlan::Untouched(_),
                    DispatchPlan::Present(_) | DispatchPlan::Absent(_) | DispatchPlan::Untouched(_),
                ) => return Touched::Everything,
            }
            match (&new.import, &old.import) {
                (
                    ImportPlan::Present { import, slices: from },
                    ImportPlan::Present { import: old_import, slices: old_from },
                ) => {
                    let these = [import, old_import].map(Arc::as_ptr);
                    let those = [from, old_from].map(Arc::as_ptr);
                    if last == Some((these, those)) {
                        continue;
                    }
                    last = Some((these, those));
                    if import != old_import || !differing(from, old_from, &mut slices) {
                        return Touched::Everything;
                    }
                }
                (new, old) if new == old => {}
                (
                    ImportPlan::Present { .. } | ImportPlan::Absent(_) | ImportPlan::Untouched(_),
                    ImportPlan::Present { .. } | ImportPlan::Absent(_) | ImportPlan::Untouched(_),
                ) => return Touched::Everything,
            }
        }
        if slices.is_empty() { Touched::Nothing } else { Touched::Slices(slices) }
    }
}

/// Notes the slices that differ; false if more than slices does.
fn differing(
    new: &LiteMap<ClusterId, SlicesFrom>,
    old: &LiteMap<ClusterId, SlicesFrom>,
    into: &mut BTreeSet<(ClusterId, SliceName)>,
) -> bool {
    new.len() == old.len()
        && new.iter().zip(old).all(|((source, new), (old_source, old))| match (new, old) {
            _ if source != old_source => false,
            (SlicesFrom::Exactly(new, why), SlicesFrom::Exactly(old, was)) => {
                if !Arc::ptr_eq(new, old) {
                    compare(new, old, into);
                }
                why == was
            }
            (new, old) => new == old,
        })
}

/// Notes the slices that are in one list only, or differ. Both lists are sorted by original name.
fn compare(new: &[Arc<Slice>], old: &[Arc<Slice>], into: &mut BTreeSet<(ClusterId, SliceName)>) {
    let find = |list: &[Arc<Slice>], name: &SliceName| {
        list.binary_search_by(|slice| slice.original.cmp(name)).ok().map(|at| Arc::clone(&list[at]))
    };
    for slice in new.iter().chain(old) {
        if find(new, &slice.original) != find(old, &slice.original) {
            into.insert((slice.source.clone(), slice.original.clone()));
        }
    }
}
