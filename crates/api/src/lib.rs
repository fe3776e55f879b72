//! The names that Atoll and its neighbours agree on, and the CRD types made of them. Nothing else lives here.
//!
//! ```text
//!   names      groups, conditions, reasons, labels, annotations      ◀── engine (no features, no dependencies)
//!   revision   may an installed CRD be replaced by ours?             ◀── engine, member
//!   ─────────────────────────── feature `types` ────────────────────────────
//!   types      ServiceExport, ServiceImport, ClusterProperty, Cluster ◀── member, hub
//!   crds       the same as CustomResourceDefinitions, and as YAML     ◀── join, the embedded API, deploy/
//! ```
//!
//! Start at [`names`]: a string that another program reads stands there, and only there. A CRD is always taken from
//! `crds`, not from the derived `crd()`: only there it is as published.
//!
//! ```
//! use atoll_api::names::{annotation, condition, label, managed_by, reason};
//!
//! assert_eq!(label::SOURCE_CLUSTER, "multicluster.kubernetes.io/source-cluster");
//! assert_eq!((condition::export::VALID, reason::export::NO_SERVICE), ("Valid", "NoService"));
//! assert_eq!(annotation::liveness::PROBE, "Probe");
//! assert!(managed_by::is_multicluster("endpointslice-mesh-controller.cilium.io"));
//! ```

pub mod names;
pub mod revision;

#[cfg(feature = "types")]
pub mod crds;
#[cfg(feature = "types")]
pub mod explain;
#[cfg(feature = "types")]
pub mod types;
