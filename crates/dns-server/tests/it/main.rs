//! The server as its clients see it, on an API that lives in memory.
#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod answering;
mod api;
mod cluster_zone;
mod floods;
mod server;
mod staleness;
