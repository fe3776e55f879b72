//! Where objects are kept: the store, the way into it, backups.
//!
//! ```text
//!   verbs, controllers ──▶ write ──▶ store ──▶ one file
//!                            │         ├──▶ watches
//!                            │         ├──▶ backup: all objects of one revision, and the keys
//!                            │         └── encryption: of the file and of backups
//!                            └──▶ cache: what is derived from objects (roles, policies) is computed anew
//! ```

pub mod backup;
pub(crate) mod cache;
pub mod encryption;
pub mod store;
pub(crate) mod write;
