//! A Kubernetes API in one process, with no etcd and no kube-apiserver beside it.
//!
//! ```text
//!   request ──▶ authn ──▶ rbac ──▶ server (apimachinery decides) ──▶ store ──▶ one file
//!                                        ▲                             │
//!                                        └───────── watch ─────────────┘
//! ```
//!
//! [`store`] keeps objects by revision, in memory or durably; [`pki`] makes the certificates and keys of a data
//! directory; [`authn`] says who asks, [`rbac`] whether they may; [`backup`] copies a data directory while it is in use.

pub mod authn;
pub mod backup;
pub mod pki;
pub mod rbac;
pub mod store;
