//! Two members and a tiny hub, on Kubernetes APIs in this process.

#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod audit;
mod clusters;
mod copies;
mod dispatch;
mod hub;
mod link;
mod stories;
