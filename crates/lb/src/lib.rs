//! One address for backends in many clusters, at layer 4.
//!
//! ```text
//!   a file, or the hub ─▶ Config ─▶ Desired ─▶ Balancer: reconcile, a pool per listener (balance) ─▶ view, swapped whole
//!                                                ▲ checks, failed connections            │ read without a lock
//!   client ─▶ userspace: a thread per processor, tcp and udp ◀────────────────────────────┤ ─▶ backend
//!   client ─▶ kernel: rules of nftables, where there is root ◀────────────────────────────┘ ─▶ backend
//! ```
//!
//! Start at [`Balancer`]: it is told what is [`Desired`], as often as that changes, and goes on with what it was told last.

mod announce;
mod balancer;
mod check;
pub mod config;
pub mod controller;
mod desired;
mod error;
pub mod file;
mod http;
mod kernel;
mod limits;
mod metrics;
mod near;
mod path;
pub mod provider;
mod proxy_protocol;
mod userspace;
mod vips;

pub use balancer::{Balancer, Unbound};
pub use desired::{Desired, Limits, Listener, Protocol, Source};
pub use error::LbError;
pub use http::{listen_pages, serve_pages};
pub use limits::allow_many_files;
pub use path::DataPath;
