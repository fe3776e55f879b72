//! The balancer on real sockets of this machine.
#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod datagrams;
mod faults;
mod streams;
mod world;
