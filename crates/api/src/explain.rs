//! What the hub answers under `/apis/explain.atoll.dev`: plain data, in the manner of Kubernetes objects. Nothing of it is stored.
//!
//! Fields are added and never change their meaning within a version. Prose (`message`) may change; codes do not.

mod address;
mod clusterset;
mod list;
mod service;
mod subject;

pub use address::{AddressExplanation, EndpointOf, RangeOf};
pub use clusterset::{ClusterSetStatus, Member, Totals, Trouble};
pub use list::{ListMetadata, ServiceLine, ServiceList};
pub use service::{
    Candidate, ClusterPart, CrossCluster, Endpoints, Export, Import, Placement, PolicyPart, Port,
    ServiceExplanation, Source, Template,
};
pub use subject::{BadSubject, Subject};

use serde::{Deserialize, Serialize};

use crate::names::code::{Code, Severity};
use crate::names::kind::explain;

/// One reason, with its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remark {
    /// The code: `docs/reasons.md` says what it means.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What happened, in words.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<String>,
    /// Since when, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<String>,
}

impl Remark {
    /// A reason in the code's own words.
    pub fn of(code: Code) -> Self {
        Self::new(code, code.meaning())
    }

    /// A reason in other words.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let next = Some(code.next()).filter(|next| !next.is_empty()).map(str::to_owned);
        Self { code, severity: code.severity(), message: message.into(), next, since: None }
    }

    /// The same, with this next step.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The same, since a time.
    #[must_use]
    pub fn since(mut self, since: impl Into<String>) -> Self {
        self.since = Some(since.into());
        self
    }
}

/// The worst of some reasons; the first of those that are equally bad.
pub fn worst<'a>(remarks: impl IntoIterator<Item = &'a Remark>) -> Option<&'a Remark> {
    remarks.into_iter().fold(None, |worst: Option<&Remark>, next| match worst {
        Some(worst) if worst.severity >= next.severity => Some(worst),
        _ => Some(next),
    })
}

/// `apiVersion`, `kind` and the name: what every object has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The name.
    pub metadata: Metadata,
}

/// Which object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub namespace: Option<String>,
}

impl Header {
    /// Of an object of the group `explain.atoll.dev`.
    pub fn new(kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            api_version: format!("{}/{}", explain::GROUP, explain::VERSION),
            kind: kind.to_owned(),
            metadata: Metadata { name: name.to_owned(), namespace: namespace.map(str::to_owned) },
        }
    }
}
