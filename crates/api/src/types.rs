//! The kinds themselves, in the version that is stored; one module per kind.
//!
//! ```text
//!   member   ServiceExport ─▶ (hub) ─▶ ServiceImport      ClusterProperty: who am I
//!   hub      SharingPolicy: who shares what
//!            Cluster: who is a member                     MultiClusterService, ServiceExport, ServiceImport as intents
//! ```
//!
//! Values that the published schema leaves open (protocol, IP family, session affinity) are strings: an enum would
//! make one unknown word in one object break the list it is in. To read objects that a CRD of another owner let in, wrap
//! the type in `kube::core::DeserializeGuard`.

#![allow(
    clippy::doc_markdown,
    reason = "docs of fields are what `kubectl explain` prints, which knows no markdown"
)]

mod absent;
pub mod cluster;
pub mod cluster_property;
pub mod multi_cluster_service;
mod schema;
pub mod service_export;
pub mod service_import;
pub mod sharing_policy;

pub use cluster::{Cluster, ClusterSpec, ClusterStatus};
pub use cluster_property::{ClusterProperty, ClusterPropertySpec};
pub use multi_cluster_service::{MultiClusterService, MultiClusterServiceSpec, MultiClusterServiceStatus};
pub use service_export::{ServiceExport, ServiceExportSpec, ServiceExportStatus};
pub use service_import::{ServiceImport, ServiceImportSpec, ServiceImportStatus};
pub use sharing_policy::{SharingPolicy, SharingPolicySpec, SharingQuota};
