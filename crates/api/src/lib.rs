//! The names that Atoll and its neighbours agree on, and the CRD types made of them. Nothing else lives here.
//!
//! ```text
//!   names      groups, conditions, reasons, labels, annotations      ◀── engine (no features, no dependencies)
//!   revision   may an installed CRD be replaced by ours?             ◀── engine, member
//! ```
//!
//! Start at [`names`]: a string that another program reads stands there, and only there.
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
