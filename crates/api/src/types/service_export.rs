//! ServiceExport: a user's wish to have the Service of the same name in every cluster of the clusterset.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the exporter adds to the Service. Usually absent: the name says which Service is meant.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "multicluster.x-k8s.io",
    version = "v1beta1",
    kind = "ServiceExport",
    doc = "ServiceExport makes the Service of the same name and namespace available in every cluster of the clusterset.",
    namespaced,
    shortname = "svcex",
    shortname = "svcexport",
    status = "ServiceExportStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
        "description": "Whether other clusters get the service"}"#,
    printcolumn = r#"{"name": "Conflict", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Conflict\")].status",
        "description": "Whether clusters disagree about the service"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason",
        "description": "Why it is ready or not"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message",
        "description": "Who imports the service, and what is wrong", "priority": 1}"#
)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct ServiceExportSpec {
    /// Labels that the ServiceImport gets. Where exports differ, the oldest export's whole set is taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exported_labels: BTreeMap<String, String>,

    /// Annotations that the ServiceImport gets. Where exports differ, the oldest export's whole set is taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exported_annotations: BTreeMap<String, String>,
}

super::absent::spec_may_be_absent!(ServiceExportSpec);

/// What became of the export. Written by the controller only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExportStatus {
    /// Valid: the Service can be exported. Ready: it was handed to the other clusters. Conflict: clusters disagree
    /// about it; the message names the field and the cluster that prevails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::schema::conditions")]
    pub conditions: Vec<Condition>,
}
