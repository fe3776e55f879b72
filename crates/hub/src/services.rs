//! Exported services: one engine between all members, what it remembers, and its copies in the hub's API.

pub(crate) mod brain;
pub(crate) mod fences;
pub(crate) mod imports;
pub(crate) mod memory_store;
pub(crate) mod mirror;
