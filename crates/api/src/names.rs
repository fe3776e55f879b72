//! Every name that Atoll shares with somebody: written in one place, each with who reads it.
//!
//! A name that other programs read is theirs: it changes only when they change it. The names under
//! `atoll.dev` are ours, but a rename strands what is already written in members.

pub mod annotation;
pub mod condition;
pub mod event;
pub mod finalizer;
pub mod kind;
pub mod label;
pub mod managed_by;
pub mod property;
pub mod reason;
pub mod secret;

/// The owner of our fields in server-side apply, in the hub and in members. The API server reads it; so does whoever
/// asks `kubectl get --show-managed-fields`.
pub const FIELD_MANAGER: &str = "atoll";
