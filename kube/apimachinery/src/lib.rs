//! Kubernetes API machinery without I/O: what an API server decides about an object, as functions of the object.
//!
//! ```text
//!   body ──▶ schema (default, prune, validate) ──▶ object
//!   object + patch ──▶ patch, apply ──▶ object + managedFields
//!   objects + query ──▶ selector, table ──▶ what a client sees
//! ```
//!
//! Pure: no clock, no randomness, no store. Start at [`schema::Schema`]; the server around it is the crate `kubeapi`.

pub mod admission;
pub mod apply;
pub mod builtin;
mod cel;
pub mod conditions;
mod duration;
mod go;
pub mod invalid;
pub mod meta;
pub mod names;
pub mod patch;
pub mod protobuf;
pub mod schema;
pub mod selector;
pub mod strict;
pub mod table;
