//! Amounts of resources: what Karmada's scheduler counts with. We keep them for their users and do not read them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// An amount such as `500m` or `4Gi`, or a plain number.
///
/// Not k8s-openapi's `Quantity`, which refuses the number that `min: 0` in a manifest is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// A plain number.
    Number(i64),
    /// A number with a unit.
    Text(String),
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true })
    }
}

/// Amounts by the name of the resource, such as `cpu`.
type Amounts = BTreeMap<String, Quantity>;

/// One grade of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceModel {
    /// The grade's number, from 0.
    pub grade: i32,
    /// How much of each resource a node of this grade has.
    pub ranges: Vec<ResourceModelRange>,
}

/// How much of one resource a node of some grade has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceModelRange {
    /// The resource: cpu, memory, storage or ephemeral-storage.
    pub name: String,
    /// At least so much.
    pub min: Quantity,
    /// Less than that. Without effect in the last grade.
    pub max: Quantity,
}

/// How much a member has to give.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSummary {
    /// What all nodes together can give to pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: Amounts,

    /// What pods ask for that are not scheduled yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocating: Amounts,

    /// What pods have that are scheduled.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocated: Amounts,

    /// How many nodes there are of each grade.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocatable_modelings: Vec<AllocatableModeling>,
}

/// How many nodes there are of one grade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllocatableModeling {
    /// The grade's number.
    pub grade: i32,
    /// How many nodes are of it.
    pub count: i32,
}
