//! SharingPolicy: the operator's word on which clusters export and import the services of some namespaces.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who shares the services of which namespaces.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "atoll.dev",
    version = "v1alpha1",
    kind = "SharingPolicy",
    plural = "sharingpolicies",
    doc = "SharingPolicy says which clusters may export and import the services of the namespaces that it selects. A namespace that is \
           selected by at least one SharingPolicy is closed but for what the SharingPolicies that select it allow; others are not \
           concerned. System namespaces are shared only if they are named here in full.",
    shortname = "shp",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Namespaces", "type": "string", "jsonPath": ".spec.namespaces"}"#,
    printcolumn = r#"{"name": "Export-From", "type": "string", "jsonPath": ".spec.exportFrom"}"#,
    printcolumn = r#"{"name": "Import-Into", "type": "string", "jsonPath": ".spec.importInto"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SharingPolicySpec {
    /// The namespaces that this policy selects: names, or names in which * stands for any part.
    #[schemars(length(min = 1, max = 256), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,

    /// The clusters that may export services of these namespaces: names, or names in which * stands for any part. None if it is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)))]
    pub export_from: Vec<String>,

    /// The clusters that may import services of these namespaces: names, or names in which * stands for any part. None if it is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)))]
    pub import_into: Vec<String>,

    /// How much each cluster may export from these namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<SharingQuota>,
}

/// How much each cluster may export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharingQuota {
    /// So many services, in all of these namespaces together. Those that came first stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub services: Option<i32>,

    /// So many endpoints of each service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub endpoints_per_service: Option<i32>,
}
