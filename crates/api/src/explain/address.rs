//! Whose an address is.

use serde::{Deserialize, Serialize};

use super::{Header, Remark};

/// Whose an address is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressExplanation {
    /// Which address.
    #[serde(flatten)]
    pub header: Header,
    /// Whose it is.
    pub verdict: Remark,
    /// The ranges that it is in.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ranges: Vec<RangeOf>,
    /// The endpoints that have it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub endpoints: Vec<EndpointOf>,
    /// Whether there are more than are listed.
    #[serde(default)]
    pub more: bool,
}

/// An endpoint with an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointOf {
    /// Its service, as `namespace/name`.
    pub service: String,
    /// The cluster that has it.
    pub cluster: String,
    /// Its `EndpointSlice` there.
    pub slice: String,
    /// Whether it is ready.
    pub ready: bool,
}

/// A range that an address is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RangeOf {
    /// The range.
    pub range: String,
    /// The member; nothing if it is the hub's, or the balancers'.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cluster: Option<String>,
    /// What it is for: `pods`, `nodes`, `services`, `api`, `endpoints`, `hub` or `pool`.
    pub used_for: String,
    /// How it is known: `declared`, `observed` or `learnt`.
    pub known: String,
}
