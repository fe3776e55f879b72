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

mod addresses;
mod admission;
mod answer;
mod api;
pub mod authn;
pub mod backup;
mod cached;
mod collector;
mod decode;
mod discovery;
mod encode;
pub mod environment;
pub mod hosted;
mod negotiate;
mod openapi;
pub mod pki;
pub mod pods;
pub mod rbac;
mod refusal;
mod registry;
mod request;
mod resource;
mod reviews;
pub mod server;
pub mod store;
mod strategy;
mod verbs;
mod view;
pub mod websocket;
mod write;

pub use answer::Body;
pub use api::{Api, Options, Service, StartError};
