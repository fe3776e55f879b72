//! Where objects are kept: the store, the way into it, backups.

pub mod backup;
pub mod store;
pub(crate) mod write;
