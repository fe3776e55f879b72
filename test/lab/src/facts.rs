//! Facts about Kubernetes' own kinds, read off a real API server and its sources, in files that the product compiles in.

pub mod answers;
pub mod go_structs;
pub mod openapi;
pub mod protobuf;
pub mod sources;
