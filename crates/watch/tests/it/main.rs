//! Watches of a Kubernetes API in this process, behind a gate that breaks and refuses.

#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod gate;
mod silence;
mod stories;
