//! The built-in load balancer and the hub's API. Both ends of what is published for a service are here, and neither knows the hub.
//!
//! ```text
//!   atoll_lb::controller ─▶ BuiltIn: an address of the pool ─▶ render ─▶ Config ─▶ ConfigMap, one per service
//!                                                                                  │ watched, here or on another machine
//!   atoll_lb::Balancer ◀── Desired ◀── merge: all services ◀── Config ◀── follow ◀─┘   state: a file, for a restart without the hub
//! ```
//!
//! What is written and what is read is one type: [`atoll_lb::config::Config`]. [`BuiltIn`] is the writer, [`follow()`] the reader.

mod builtin;
mod client;
mod configmap;
mod follow;
mod merge;
mod pool;
mod render;
pub mod role;
mod sharing;
mod state;

pub use builtin::{BuiltIn, Host, News};
pub use client::{ClientError, client};
pub use follow::{Follow, follow};
pub use pool::{BadPool, Pool};
pub use sharing::Sharing;

/// The namespace in the hub's API where the `ConfigMaps` are, if none is named.
pub const NAMESPACE: &str = atoll_api::names::namespace::HUB;
