//! The balancer on real sockets of this machine.
#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod announce;
mod controller;
mod datagrams;
mod faults;
mod kernel;
mod liar;
mod providers;
mod secrecy;
mod streams;
mod world;
