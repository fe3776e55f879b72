//! Member clusters in this process, for trying things out: no root, no Kubernetes, IPv4 only.
//!
//! ```text
//!                 ┌─────────────── one member ───────────────┐
//!   kubectl ────▶ │ atoll_kubeapi::Api on its data directory │
//!                 │     ▲               ▲                    │
//!                 │     │ watch, write  │                    │
//!                 │ controllers       node, proxy, DNS       │
//!                 └──────────────────────────────────────────┘
//! ```
//!
//! [`member`] is one whole. [`controllers`] make pods of workloads and EndpointSlices of Services, as kube-controller-manager does;
//! [`node`] runs the pods, which are [`programs`] of this process or commands of this machine; [`proxy`] is the Services' way to
//! endpoints, [`network`] how pods and Services are reached, and [`block`] says which addresses a member has.

pub mod block;
pub mod controllers;
pub mod member;
pub mod network;
pub mod node;
pub mod programs;
pub mod proxy;
mod tokens;
