//! Member clusters in this process, for trying things out: no root, no Kubernetes, IPv4 only.
//!
//! ```text
//!                 ┌──────────── one member ────────────┐
//!   kubectl ────▶ │ kubeapi::Api on its data directory │
//!                 │     ▲               ▲              │
//!                 │     │ watch, write  │              │
//!                 │ controllers       node, proxy      │
//!                 └────────────────────────────────────┘
//! ```
//!
//! [`block`] says which addresses a member has.

pub mod block;
