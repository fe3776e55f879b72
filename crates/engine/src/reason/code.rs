//! The code of each reason, for explanations. Every reason has one; what it means and what to do stands with the codes.

use atoll_api::names::code::Code;

use super::{
    CrossNote, Disputed, ExportFailed, ExportReady, ImportNote, ImportReady, Invalid, Kept, PortDropped,
    SliceNote,
};
use crate::fences::Fenced;
use crate::plan::{Unknown, WhyAbsent, WhyNotDispatched, WhyNothing, WhyUntouched};

impl Fenced {
    /// Its code.
    pub fn code(self) -> Code {
        match self {
            Self::SystemNamespace => Code::SystemNamespace,
            Self::DeniedNamespace => Code::DeniedNamespace,
            Self::NotAllowed => Code::NotAllowed,
        }
    }
}

impl Invalid {
    /// Its code.
    pub fn code(self) -> Code {
        match self {
            Self::NoService => Code::NoService,
            Self::ExternalName => Code::ExternalName,
            Self::DerivedService => Code::DerivedService,
            Self::KubernetesApi => Code::KubernetesApi,
            Self::Fenced(why) => why.code(),
            Self::TooMuch(_) => Code::LimitExceeded,
        }
    }
}

impl ExportReady {
    /// Its code.
    pub fn code(&self) -> Code {
        match self {
            Self::Exported { refused: None } => Code::Exported,
            Self::Exported { refused: Some(_) } => Code::EndpointsRefused,
            Self::Pending(why) | Self::Failed(ExportFailed::Invalid(why)) => why.code(),
            Self::Failed(ExportFailed::AllEndpointsRefused(_)) => Code::AllEndpointsRefused,
        }
    }
}

impl Disputed {
    /// Its code.
    pub fn code(&self) -> Code {
        match self {
            Self::Ports => Code::PortConflict,
            Self::Type { .. } => Code::TypeConflict,
            Self::SessionAffinity(_) => Code::SessionAffinityConflict,
            Self::SessionAffinityConfig(_) => Code::SessionAffinityConfigConflict,
            Self::Labels => Code::LabelsConflict,
            Self::Annotations => Code::AnnotationsConflict,
            Self::InternalTrafficPolicy(_) => Code::InternalTrafficPolicyConflict,
            Self::TrafficDistribution(_) => Code::TrafficDistributionConflict,
            Self::IpFamilies(_) => Code::IPFamilyConflict,
        }
    }
}

impl WhyAbsent {
    /// Its code.
    pub fn code(self) -> Code {
        match self {
            Self::NotExported => Code::NotExported,
            Self::NoNamespace => Code::NoNamespace,
            Self::NotAsked => Code::NotAsked,
            Self::Fenced(why) => why.code(),
        }
    }
}

impl WhyUntouched {
    /// Its code.
    pub fn code(self) -> Code {
        match self {
            Self::NotHeard => Code::NotHeard,
            Self::NamespaceTerminating => Code::NamespaceTerminating,
            Self::NothingKnown => Code::NothingKnown,
            Self::PlacementUnknown => Code::PlacementUnknown,
            Self::AuthorRefused => Code::PolicyRefused,
        }
    }
}

impl WhyNotDispatched {
    /// Its code; none where there is nothing to say.
    pub fn code(self) -> Option<Code> {
        match self {
            Self::NotAsked | Self::Refused => None, // of a refused one the MultiClusterService itself says why
            Self::NotAConsumer => Some(Code::NotAConsumer),
            Self::NoNamespace => Some(Code::NoNamespace),
        }
    }
}

impl WhyNothing {
    /// Its code.
    pub fn code(self) -> Code {
        match self {
            Self::Withdrawn(_) => Code::Withdrawn,
            Self::LocalFirst => Code::LocalFirst,
            Self::NoDerivedService => Code::NoDerivedService,
        }
    }
}

impl Unknown {
    /// Its code.
    pub fn code(self) -> Code {
        match self {
            Self::NotHeard => Code::NotHeard,
            Self::LostUnheard(kept) => kept.code().unwrap_or(Code::NotHeard),
        }
    }
}

impl Kept {
    /// Its code, if its source is lost.
    pub fn code(self) -> Option<Code> {
        match self {
            Self::Alive => None,
            Self::PolicyRetains { .. } => Some(Code::KeptByPolicy),
            Self::Answers | Self::NotProbed | Self::LastOfService => Some(Code::KeptWithoutProbe),
        }
    }
}

impl ImportReady {
    /// Its code.
    pub fn code(&self) -> Code {
        match self {
            Self::Ready => Code::Imported,
            Self::IpFamilyNotSupported { .. } => Code::IPFamilyNotSupported,
            Self::NamesTaken { .. } => Code::DerivedServiceNamesTaken,
            Self::NoPortAsked { .. } => Code::NoSuchPort,
        }
    }
}

impl ImportNote {
    /// Its code.
    pub fn code(&self) -> Code {
        match self {
            Self::LocalWithoutOwnEndpoints => Code::LocalWithoutOwnEndpoints,
            Self::PlainNameTaken { .. } => Code::DerivedServiceRenamed,
            Self::FamiliesLeftOut(_) => Code::FamiliesLeftOut,
            Self::TrafficDistributionLeftOut(_) => Code::TrafficDistributionIgnored,
            Self::NoSuchPort(_) => Code::NoSuchPort,
        }
    }
}

impl SliceNote {
    /// Its code.
    pub fn code(&self) -> Code {
        match self {
            Self::AddressRefused { .. } => Code::AddressRefused,
            Self::PortRenamed { .. } => Code::PortRenamed,
            Self::PortDropped { why: PortDropped::NameClash { .. }, .. } => Code::PortClash,
            Self::PortDropped { why: PortDropped::NotOfTheService, .. } => Code::PortNotOfService,
            Self::PortDropped { why: PortDropped::NotAsked, .. } => Code::PortNotAsked,
        }
    }
}

impl CrossNote {
    /// Its code.
    pub fn code(&self) -> Code {
        match self {
            Self::NotAMember { .. } => Code::NotAMember,
            Self::KubernetesApi => Code::KubernetesApi,
            Self::NoService { .. } => Code::NoService,
            Self::ExternalName { .. } => Code::ExternalName,
            Self::NoSuchPort { .. } => Code::NoSuchPort,
            Self::NoNamespace { .. } => Code::NoNamespace,
            Self::Closed(why) | Self::Fenced { why, .. } => why.code(),
            Self::TooMuch { .. } => Code::LimitExceeded,
            Self::AddressRefused { .. } => Code::EndpointsRefused,
        }
    }
}
