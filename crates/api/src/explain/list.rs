//! The services of a clusterset, briefly: to complete names, and to find what is wrong.

use serde::{Deserialize, Serialize};

use super::Metadata;
use crate::names::code::{Code, Severity};
use crate::names::kind::explain;

/// Some services, in order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceList {
    /// The group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Whether there are more.
    pub metadata: ListMetadata,
    /// The services.
    pub items: Vec<ServiceLine>,
}

/// Whether a list goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListMetadata {
    /// Given as `continue`, the list goes on here. Nothing if this is its end.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none", default)]
    pub next: Option<String>,
}

/// A service, briefly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceLine {
    /// Which service.
    pub metadata: Metadata,
    /// The verdict's code.
    pub code: Code,
    /// How bad that is.
    pub severity: Severity,
    /// The verdict in words.
    pub message: String,
}

impl ServiceList {
    /// A list that goes on at `next`, if anywhere.
    pub fn new(items: Vec<ServiceLine>, next: Option<String>) -> Self {
        Self {
            api_version: format!("{}/{}", explain::GROUP, explain::VERSION),
            kind: explain::SERVICE_EXPLANATION_LIST.to_owned(),
            metadata: ListMetadata { next },
            items,
        }
    }
}
