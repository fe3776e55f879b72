//! What a member can't mend by itself.

use std::fmt;

use atoll_api::names::annotation;
use atoll_engine::names::ServiceKey;
use serde::{Deserialize, Serialize};

use crate::object::{Kind, ObjectName, PropertyName};

/// Something that a person must do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error, Serialize, Deserialize)]
pub enum Problem {
    /// We lack a right in the member.
    #[error("may not {verb} {kind}: {why}", kind = .kind.plural())]
    Forbidden {
        /// What we wanted to do.
        verb: Access,
        /// With what.
        kind: Kind,
        /// The API server's words.
        why: String,
    },
    /// The member's API does not know a kind.
    #[error("the API does not serve {kind}; install the CRDs (`atoll crds`)", kind = .0.plural())]
    KindAbsent(Kind),
    /// What we should write has another owner.
    #[error("{object} is not managed by Atoll and is not changed; delete or rename it to import {service}")]
    Foreign {
        /// The service that needs it.
        service: ServiceKey,
        /// The object.
        object: ObjectName,
    },
    /// The API server does not take what we write.
    #[error("{object} was rejected: {why}")]
    Refused {
        /// The object.
        object: ObjectName,
        /// The API server's words.
        why: String,
    },
    /// A part of an object can't be carried to other clusters.
    #[error("{object}: {field} is ignored: {why}")]
    Unrepresentable {
        /// The object.
        object: ObjectName,
        /// The part.
        field: Field,
        /// What is wrong with it.
        why: String,
    },
    /// A property of the cluster says something else than its membership, and is not ours.
    #[error("ClusterProperty {name} is {theirs:?} and should be {ours:?}; delete it, or unjoin this cluster")]
    OtherProperty {
        /// Its name.
        name: PropertyName,
        /// Its value.
        theirs: String,
        /// What it should be.
        ours: String,
    },
}

/// What may be done to objects of a kind, as in an RBAC rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Access {
    /// One is read.
    Get,
    /// All are read.
    List,
    /// All are read, then followed.
    ListAndWatch,
    /// One is made.
    Create,
    /// One is replaced.
    Update,
    /// One is changed in part.
    Patch,
    /// One is deleted.
    Delete,
}

impl Access {
    /// Its verbs, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::ListAndWatch => "list and watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    /// Each of its verbs.
    pub fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Get => &["get"],
            Self::List => &["list"],
            Self::ListAndWatch => &["list", "watch"],
            Self::Create => &["create"],
            Self::Update => &["update"],
            Self::Patch => &["patch"],
            Self::Delete => &["delete"],
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A part of an object that can't be carried to other clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Field {
    /// All of it.
    WholeObject,
    /// One of its ports.
    Port,
    /// One of its endpoints.
    Endpoint,
    /// What it says of lost clusters.
    Liveness,
    /// What it says of near and far.
    Locality,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WholeObject => "the whole object",
            Self::Port => "a port",
            Self::Endpoint => "an endpoint",
            Self::Liveness => annotation::LIVENESS,
            Self::Locality => annotation::LOCALITY,
        })
    }
}
