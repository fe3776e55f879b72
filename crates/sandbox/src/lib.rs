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
//! [`controllers`] make pods of workloads and EndpointSlices of Services, as kube-controller-manager does; [`node`] runs
//! pods, which are [`programs`] of this process or commands of this machine; [`proxy`] leads from Services to endpoints,
//! and [`network`] is how everybody reaches everybody. [`block`] says which addresses a member has.

pub mod block;
pub mod controllers;
mod follow;
pub mod network;
pub mod node;
pub mod programs;
pub mod proxy;
