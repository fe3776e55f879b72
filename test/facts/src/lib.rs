//! Facts about Kubernetes' own kinds, read off a real API server and its sources, in files that the product compiles in.
//!
//! ```text
//!   a lab's API server ─┬─ openapi  ─▶ kube/apimachinery/facts/openapi.tsv     compiled in
//!   Kubernetes' sources ┴─ protobuf ─▶ kube/apimachinery/facts/protobuf.tsv    compiled in
//!   a lab's API server ─── answers  ─▶ kube/apimachinery/tests/golden/*.json   compared with by pure tests
//! ```

pub mod answers;
mod error;
mod go_structs;
pub mod openapi;
pub mod protobuf;

pub use error::{Error, Result};
