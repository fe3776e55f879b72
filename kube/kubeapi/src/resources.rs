//! What is served: kinds and their rules, discovery, OpenAPI.

pub(crate) mod addresses;
pub(crate) mod cached;
pub(crate) mod discovery;
pub(crate) mod openapi;
pub(crate) mod registry;
pub(crate) mod resource;
pub(crate) mod strategy;
pub(crate) mod view;
