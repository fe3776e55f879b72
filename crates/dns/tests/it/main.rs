//! What a client sees of the answers, read by another project's parser.

#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod changes;
mod names;
mod negatives;
mod packets;
mod transport;
mod world;
