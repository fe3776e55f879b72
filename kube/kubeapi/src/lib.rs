//! A Kubernetes API in one process, with no etcd and no kube-apiserver beside it.
//!
//! ```text
//!   request ──▶ http ──▶ api (dispatch) ──▶ access ──▶ verbs ──▶ storage ──▶ one file
//!                                                       │  ▲        │
//!                        resources: kinds, their rules ◀┘  │        └──watch──▶ controllers
//!                        pods: logs, exec, attach ◀────────┘                    (CRDs, namespaces, garbage)
//! ```
//!
//! One folder for each layer; the file of the same name beside it has the layer's own picture. [`Api`] is the whole: start at
//! `api/dispatch.rs`. What is decided about an object (patches, ownership, schemas, selectors) is in `atoll-apimachinery`, which does no
//! I/O.
//!
//! `flow` keeps any one user from taking more than a share of all this.
//!
//! [`hosted`] is an API with a data directory and a socket; [`store`] keeps objects by revision, in memory or durably, [`encryption`] its keys; [`pki`] makes the
//! certificates and keys; [`authn`] says who asks, [`rbac`] whether they may; [`backup`] copies a data directory while it is in use;
//! [`pods`] is the trait of what runs pods; [`aggregated`] that of what answers for resources that are not stored, and [`extension`] serves those
//! behind another API server.

mod access;
pub mod aggregated;
mod api;
mod controllers;
pub mod environment;
pub mod extension;
mod flow;
pub mod hosted;
mod http;
pub mod pods;
mod resources;
mod storage;
mod verbs;

pub use access::{authn, author, pki, rbac};
pub use api::{Api, Options, Service, StartError};
pub use http::answer::Body;
pub use http::{server, websocket};
pub use storage::{backup, encryption, store};
