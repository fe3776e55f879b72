//! A Kubernetes API in one process, with no etcd and no kube-apiserver beside it.
//!
//! ```text
//!   request ──▶ authn ──▶ rbac ──▶ server (apimachinery decides) ──▶ store ──▶ one file
//!                                        ▲                             │
//!                                        └───────── watch ─────────────┘
//! ```
//!
//! [`store`] keeps objects by revision, in memory or durably; [`pki`] makes the certificates and keys of a data
//! directory; [`authn`] says who asks, [`rbac`] whether they may; [`backup`] copies a data directory while it is in use;
//! [`pods`] is how something that runs pods answers for them.

mod access;
mod api;
mod controllers;
pub mod environment;
pub mod hosted;
mod http;
pub mod pods;
mod resources;
mod storage;
mod verbs;

pub use access::{authn, pki, rbac};
pub use api::{Api, Options, Service, StartError};
pub use http::answer::Body;
pub use http::{server, websocket};
pub use storage::{backup, store};
