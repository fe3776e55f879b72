//! What is served: kinds and their rules, discovery, OpenAPI.
//!
//! ```text
//!   built-in kinds ─┐                 ┌─▶ discovery, openapi: documents for clients
//!   CRDs ───────────┴─▶ registry ─▶ resource ─▶ strategy: defaults, generations, validation of a kind
//!                                     │
//!                                     └─▶ view: the stored object as one version shows it
//! ```
//!
//! [`addresses`] allocates the cluster IPs and node ports of Services.

pub(crate) mod addresses;
pub(crate) mod discovery;
pub(crate) mod openapi;
pub(crate) mod registry;
pub(crate) mod resource;
pub(crate) mod strategy;
pub(crate) mod view;
