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

/// The owner of fields that a person applies with `atoll apply`. Not the same as ours: what a person leaves out of a file
/// must not take away what the hub wrote.
pub const CLI_FIELD_MANAGER: &str = "atoll-apply";
