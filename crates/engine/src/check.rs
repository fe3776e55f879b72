//! What no plan may do. A simpler rule book than the planner's, for tests and simulations: it reads facts, memory and a plan,
//! and a broken rule is a value that names the culprits.

mod borders;
mod dispatch;
mod imports;
mod slices;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use crate::names::{ClusterId, PortName, ServiceKey, ServiceName, SliceName};
use crate::network::{AddressRefused, Family};
use crate::plan::{ImportPlan, Plan};
use crate::world::World;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The service.
    pub service: ServiceKey,
    /// The cluster whose plan is wrong.
    pub cluster: ClusterId,
    /// What is wrong with it.
    pub broken: Broken,
}

/// The rules, by how they are broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// A member has no entry.
    MemberMissing,
    /// There is an entry for a cluster that is no member.
    Stranger,
    /// A cluster that has not been heard from is written to.
    UnheardTouched,
    /// There is an import in a namespace that does not exist.
    NoNamespace,
    /// A terminating namespace is written to.
    NamespaceTerminating,
    /// There is an import of a service that no cluster exports.
    ImportOfNothing,
    /// An export is valid, the namespace is there, and the import is not.
    ImportMissing,
    /// There is an import where the hub asks for none.
    ImportedUnasked,
    /// Nothing is known, a member is unheard, and yet something is taken away.
    DeletedInTheDark,
    /// The import does not name the clusters that export.
    WrongClusters(BTreeSet<ClusterId>),
    /// Two ports have one name.
    DuplicatePortName(PortName),
    /// Two ports have one protocol and number.
    DuplicatePort(u16),
    /// One of several ports has no name.
    UnnamedPort,
    /// A family that the service's primary export does not have, or that stands there twice, or none at all.
    WrongFamilies(Vec<Family>),
    /// The derived Service has a family that its cluster does not support, or that the import does not have.
    UnsupportedFamily(Family),
    /// The derived Service takes a name of a Service of another owner.
    NameTaken(ServiceName),
    /// Headlessness, affinity or a policy is not the winner's.
    NotTheWinners,
    /// A reserved label or annotation reached the import.
    ReservedKey(Arc<str>),
    /// A valid export has no `Conflict` condition, or one has it and another does not.
    ConflictNotOnAll,
    /// An export has no conditions, or those of another export.
    StatusMissing,
    /// What came from an unheard source is not kept.
    UnheardWithdrawn {
        /// The source.
        source: ClusterId,
    },
    /// What came from a lost source is taken away although its policy retains.
    RetainedWithdrawn {
        /// The source.
        source: ClusterId,
        /// The slice, if only one is missing.
        slice: Option<SliceName>,
    },
    /// A slice of an exporter that is there is missing.
    SliceMissing {
        /// The source.
        source: ClusterId,
        /// Its name there.
        slice: SliceName,
    },
    /// Slices of a cluster that does not export.
    NotAnExporter {
        /// The source.
        source: ClusterId,
    },
    /// A slice is not what its list says: one source cluster per slice.
    WrongSource {
        /// The slice.
        slice: SliceName,
    },
    /// Two slices have one name.
    DuplicateSlice {
        /// The slice.
        slice: SliceName,
    },
    /// An address is not of the slice's family, or the slice not of the import's.
    MixedFamilies {
        /// The slice.
        slice: SliceName,
    },
    /// A node's name crossed a border.
    ForeignNode {
        /// The slice.
        slice: SliceName,
    },
    /// An own endpoint lost its node's name.
    NodeLost {
        /// The slice.
        slice: SliceName,
    },
    /// A slice has a port that the import does not have, or has it twice.
    WrongSlicePort {
        /// The slice.
        slice: SliceName,
        /// The port.
        port: PortName,
    },
    /// An address that its cluster never gave.
    Invented {
        /// The slice.
        slice: SliceName,
        /// The address.
        address: IpAddr,
    },
    /// An address that must not cross.
    Forbidden {
        /// The slice.
        slice: SliceName,
        /// The address.
        address: IpAddr,
        /// Why.
        why: AddressRefused,
    },
    /// Some ready endpoints have a zone hint, and this one, whose zone is known, does not; or it has one without `trafficDistribution`.
    WrongHint {
        /// The slice.
        slice: SliceName,
    },
    /// A provider is not asked for its facts.
    ProviderNotFollowed,
    /// Slices are dispatched to a cluster that is no consumer.
    DispatchedUnasked,
    /// A consumer gets nothing although it can.
    DispatchMissing,
    /// A hostname crossed a border although hostnames are not asked for.
    ForeignHostname {
        /// The slice.
        slice: SliceName,
    },
    /// Something crosses that the operator fences in.
    CrossedFence {
        /// Whose it is.
        source: ClusterId,
    },
    /// An export is a constituent although it says too much.
    TooMuch,
    /// A stale source is not marked, or one that is there is.
    WrongStaleMark {
        /// The source.
        source: ClusterId,
    },
}

/// Lists the rules that a plan breaks. `world` is the one that the plan was made of, with its memory brought up to date.
pub fn check(world: &World, plan: &Plan) -> Vec<Violation> {
    let mut violations = Vec::new();
    let key = &plan.service;
    let mut report = |cluster: &ClusterId, broken| {
        violations.push(Violation { service: key.clone(), cluster: cluster.clone(), broken });
    };
    for id in plan.clusters.keys().filter(|id| !world.clusters.contains_key(*id)) {
        report(id, Broken::Stranger);
    }
    for (id, cluster) in &world.clusters {
        let Some(planned) = plan.clusters.get(id) else {
            report(id, Broken::MemberMissing);
            continue;
        };
        let mut report = |broken| report(id, broken);
        imports::presence(world, key, (id, cluster), &planned.import, &mut report);
        imports::status(world, plan, id, planned.export.as_ref(), &mut report);
        dispatch::dispatch(world, key, id, cluster, planned, &mut report);
        match (&planned.import, &cluster.heard) {
            (ImportPlan::Present { import, slices }, Some(capabilities)) => {
                imports::contents(world, key, cluster, capabilities, import, &mut report);
                slices::sources(world, key, id, import, slices, &mut report);
            }
            (ImportPlan::Present { .. }, None) | (ImportPlan::Absent(_) | ImportPlan::Untouched(_), _) => {}
        }
    }
    violations
}
