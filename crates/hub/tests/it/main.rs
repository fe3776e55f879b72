//! A whole hub and its members, each an API in this process; the members behind sockets on the loopback, as the hub dials them.

#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod authors;
mod balancing;
mod containment;
mod explaining;
mod imports;
mod joining;
mod mcs;
mod objects;
mod plan;
mod policies;
mod sharing;
mod world;
