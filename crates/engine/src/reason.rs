//! Why: each outcome carries the fact that decided it. Prose is made in [`text`] only.

mod code;
pub mod reach;
pub mod text;

use std::sync::Arc;

use atoll_api::names::reason;
use serde::{Deserialize, Serialize};

use crate::facts::{InternalTrafficPolicy, SessionAffinity, TrafficDistribution};
use crate::fences::Fenced;
use crate::intent::imports::ImportPort;
use crate::limits::Exceeded;
use crate::names::{ClusterId, PortName, ServiceName};
use crate::network::{AddressRefused, Family};
use crate::plan::Plan;
use crate::time::Time;

/// Why an export is not a constituent of its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Invalid {
    /// There is no Service of its name.
    NoService,
    /// The Service only names something outside.
    ExternalName,
    /// A multi-cluster controller made the Service: exporting it would loop.
    DerivedService,
    /// `default/kubernetes` is each cluster's own.
    KubernetesApi,
    /// The hub's operator does not let it cross.
    Fenced(Fenced),
    /// It is more than a cluster may say.
    TooMuch(Exceeded),
}

impl Invalid {
    /// The reason of `Valid=False`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoService => reason::export::NO_SERVICE,
            Self::ExternalName | Self::DerivedService | Self::KubernetesApi => {
                reason::export::INVALID_SERVICE_TYPE
            }
            Self::Fenced(_) => reason::export::NOT_ALLOWED,
            Self::TooMuch(_) => reason::export::LIMIT_EXCEEDED,
        }
    }

    /// Whether the export is remembered all the same. What was refused for its size or by the operator leaves no trace.
    pub fn is_remembered(self) -> bool {
        match self {
            Self::NoService | Self::ExternalName | Self::DerivedService | Self::KubernetesApi => true,
            Self::Fenced(_) | Self::TooMuch(_) => false,
        }
    }
}

/// A field on which the exports of a service disagree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The field, and what is used.
    pub about: Disputed,
    /// Whose word counts.
    pub winner: ClusterId,
    /// How many clusters say otherwise.
    pub disagree: usize,
    /// How many clusters export the service.
    pub of: usize,
    /// The first of those that disagree, in order of precedence; at most [`reach::MOST_NAMED`].
    #[serde(default)]
    pub who: Vec<ClusterId>,
}

/// What exports can disagree on, with the value in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Disputed {
    /// The ports; their union is used.
    Ports,
    /// Headlessness.
    Type {
        /// Whether the import is headless.
        headless: bool,
    },
    /// Session affinity.
    SessionAffinity(SessionAffinity),
    /// Its timeout.
    SessionAffinityConfig(Option<u32>),
    /// Exported labels.
    Labels,
    /// Exported annotations.
    Annotations,
    /// Internal traffic policy.
    InternalTrafficPolicy(InternalTrafficPolicy),
    /// Traffic distribution.
    TrafficDistribution(Option<TrafficDistribution>),
    /// IP families, when no family is common to all.
    IpFamilies(Vec<Family>),
}

impl Disputed {
    /// The reason of `Conflict=True`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ports => reason::export::PORT_CONFLICT,
            Self::Type { .. } => reason::export::TYPE_CONFLICT,
            Self::SessionAffinity(_) => reason::export::SESSION_AFFINITY_CONFLICT,
            Self::SessionAffinityConfig(_) => reason::export::SESSION_AFFINITY_CONFIG_CONFLICT,
            Self::Labels => reason::export::LABELS_CONFLICT,
            Self::Annotations => reason::export::ANNOTATIONS_CONFLICT,
            Self::InternalTrafficPolicy(_) => reason::export::INTERNAL_TRAFFIC_POLICY_CONFLICT,
            Self::TrafficDistribution(_) => reason::export::TRAFFIC_DISTRIBUTION_CONFLICT,
            Self::IpFamilies(_) => reason::export::IP_FAMILY_CONFLICT,
        }
    }
}

/// Why an exported label or annotation does not travel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRefused {
    /// The key.
    pub key: Arc<str>,
    /// What is wrong with it.
    pub why: WhyKeyRefused,
}

/// What is wrong with a label or annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhyKeyRefused {
    /// Its prefix belongs to Kubernetes or to us.
    Reserved,
    /// Kubernetes would refuse it.
    Malformed,
    /// With it, there would be more than an object may carry.
    TooMuch,
}

/// What of a member's is refused, for whoever counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refused {
    /// Endpoints.
    Address(AddressRefused),
    /// The export.
    Export(Invalid),
}

impl Refused {
    /// For a metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address(why) => why.as_str(),
            Self::Export(why) => why.as_str(),
        }
    }
}

/// What a plan refuses.
pub fn refused(plan: &Plan) -> impl Iterator<Item = (ClusterId, Refused)> {
    let of_exports = plan.clusters.iter().filter_map(|(id, part)| {
        let why = match part.export.as_ref()?.ready {
            ExportReady::Exported { refused } => Refused::Address(refused?),
            ExportReady::Failed(ExportFailed::AllEndpointsRefused(why)) => Refused::Address(why),
            ExportReady::Pending(why) | ExportReady::Failed(ExportFailed::Invalid(why)) => {
                Refused::Export(why)
            }
        };
        Some((id.clone(), why))
    });
    let notes = plan.crossing.iter().flat_map(|crossing| &crossing.notes);
    let of_crossing = notes.filter_map(|note| match note {
        CrossNote::AddressRefused { cluster, why } => Some((cluster.clone(), Refused::Address(*why))),
        CrossNote::Fenced { cluster, why } => Some((cluster.clone(), Refused::Export(Invalid::Fenced(*why)))),
        CrossNote::TooMuch { cluster, why } => {
            Some((cluster.clone(), Refused::Export(Invalid::TooMuch(*why))))
        }
        CrossNote::NotAMember { .. }
        | CrossNote::KubernetesApi
        | CrossNote::Closed(_)
        | CrossNote::NoService { .. }
        | CrossNote::ExternalName { .. }
        | CrossNote::NoSuchPort { .. }
        | CrossNote::NoNamespace { .. } => None,
    });
    of_exports.chain(of_crossing)
}

/// Whether an export is ready. `Exported` when the endpoints are pushed to the importers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExportReady {
    /// Importers get its endpoints.
    Exported {
        /// An example of an endpoint that they do not get.
        refused: Option<AddressRefused>,
    },
    /// The Service is awaited.
    Pending(Invalid),
    /// It can't be exported.
    Failed(ExportFailed),
}

/// Why an export can't work as things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExportFailed {
    /// Such a Service is never exported.
    Invalid(Invalid),
    /// It has endpoints, and every one of them was refused.
    AllEndpointsRefused(AddressRefused),
}

impl ExportReady {
    /// The reason of `Ready`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Exported { .. } => reason::export::EXPORTED,
            Self::Pending(_) => reason::export::PENDING,
            Self::Failed(_) => reason::export::FAILED,
        }
    }
}

/// Whether an import can be ready; the member adds whether it holds the IP yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportReady {
    /// Nothing stands in the way.
    Ready,
    /// The cluster supports none of the service's families.
    IpFamilyNotSupported {
        /// The service's families.
        wanted: Vec<Family>,
    },
    /// A Service that is not ours has the name, and the hashed one as well.
    NamesTaken {
        /// The plain name.
        plain: ServiceName,
        /// The hashed name.
        hashed: ServiceName,
    },
    /// The service has none of the ports that the hub's ServiceImport names.
    NoPortAsked {
        /// Those ports.
        asked: Vec<ImportPort>,
    },
}

impl ImportReady {
    /// The reason of `Ready`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ready => reason::import::READY,
            Self::IpFamilyNotSupported { .. } => reason::import::IP_FAMILY_NOT_SUPPORTED,
            Self::NamesTaken { .. } => reason::import::NAMES_TAKEN,
            Self::NoPortAsked { .. } => reason::import::NO_SUCH_PORT,
        }
    }
}

/// Something that a user of an import should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportNote {
    /// `internalTrafficPolicy: Local`, and no endpoint of its own: nothing answers here.
    LocalWithoutOwnEndpoints,
    /// The plain name of the derived Service belongs to a Service of another owner.
    PlainNameTaken {
        /// That name.
        plain: ServiceName,
    },
    /// Some families are left out here.
    FamiliesLeftOut(Vec<Family>),
    /// The cluster's API does not know the service's traffic distribution.
    TrafficDistributionLeftOut(TrafficDistribution),
    /// The hub's ServiceImport names a port that the service does not have.
    NoSuchPort(ImportPort),
}

/// Why a source's slices stay as they are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kept {
    /// Its cluster is there.
    Alive,
    /// Its cluster is lost; the policy retains.
    PolicyRetains {
        /// When it was lost.
        since: Time,
    },
    /// Its cluster is lost; a probe was answered.
    Answers,
    /// Its cluster is lost; no probe has run.
    NotProbed,
    /// Its cluster is lost and does not answer, but nothing else serves.
    LastOfService,
}

/// Why a lost source's slices go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Withdrawn {
    /// Its lease has ended, which is enough for the policy.
    LeaseEnded {
        /// When.
        at: Time,
    },
    /// It is lost and did not answer a probe.
    ProbeFailed {
        /// When it was lost.
        lost: Time,
    },
}

/// What befell a part of a slice on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SliceNote {
    /// An address stays behind.
    AddressRefused {
        /// The address.
        address: std::net::IpAddr,
        /// Why.
        why: AddressRefused,
    },
    /// A port got the name that the winner gave it.
    PortRenamed {
        /// Its name at the source.
        from: PortName,
        /// Its name in the import.
        to: PortName,
    },
    /// A port stays behind.
    PortDropped {
        /// Its name at the source.
        name: PortName,
        /// Why.
        why: PortDropped,
    },
}

/// Why a port of a slice stays behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortDropped {
    /// An export of higher precedence has another port of this name.
    NameClash {
        /// Its cluster.
        winner: ClusterId,
    },
    /// The exported Service has no port of this name.
    NotOfTheService,
    /// The `MultiClusterService` does not ask for it.
    NotAsked,
}

/// Something that the owner of a `MultiClusterService` should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CrossNote {
    /// A provider or consumer is no member.
    NotAMember {
        /// Its name.
        cluster: ClusterId,
    },
    /// The Service is the cluster's own API: it never crosses.
    KubernetesApi,
    /// A provider has no Service of this name.
    NoService {
        /// The provider.
        cluster: ClusterId,
    },
    /// A provider's Service has no endpoints by its type.
    ExternalName {
        /// The provider.
        cluster: ClusterId,
    },
    /// A port that is asked for is none of the provider's Service.
    NoSuchPort {
        /// The provider.
        cluster: ClusterId,
        /// The name that is asked for.
        name: Option<PortName>,
        /// The number that is asked for.
        port: u16,
    },
    /// A consumer has no namespace of this name.
    NoNamespace {
        /// The consumer.
        cluster: ClusterId,
    },
    /// Nothing of the namespace crosses.
    Closed(Fenced),
    /// A provider or consumer that is named may not be one.
    Fenced {
        /// The cluster.
        cluster: ClusterId,
        /// Why.
        why: Fenced,
    },
    /// A provider has more endpoints than it may; none of them is used.
    TooMuch {
        /// The provider.
        cluster: ClusterId,
        /// By what.
        why: Exceeded,
    },
    /// Some of a provider's endpoints stay behind.
    AddressRefused {
        /// The provider.
        cluster: ClusterId,
        /// Why, as an example.
        why: AddressRefused,
    },
}

impl CrossNote {
    /// The member that it is about; none if it is about none.
    pub fn member(&self) -> Option<&ClusterId> {
        match self {
            Self::NoService { cluster }
            | Self::ExternalName { cluster }
            | Self::NoSuchPort { cluster, .. }
            | Self::NoNamespace { cluster }
            | Self::Fenced { cluster, .. }
            | Self::TooMuch { cluster, .. }
            | Self::AddressRefused { cluster, .. } => Some(cluster),
            Self::NotAMember { .. } | Self::KubernetesApi | Self::Closed(_) => None,
        }
    }
}
