//! Without privilege: connections are carried by this process.
//!
//! One thread per processor with its own sockets (`SO_REUSEPORT`), so that a connection stays where it was accepted and nothing
//! is locked on its way.

pub(crate) mod live;
mod pipes;
mod relay;
mod sockets;
mod tcp;
pub(crate) mod threads;
mod udp;
