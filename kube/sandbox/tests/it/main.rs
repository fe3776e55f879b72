//! A member's parts on a Kubernetes API in this process.

#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod accounts;
#[path = "../shared/cluster.rs"]
mod cluster;
mod deployments;
mod jobs;
mod member;
mod pods;
mod services;
mod slices;
mod stateful;
