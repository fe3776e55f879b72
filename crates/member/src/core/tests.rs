//! The state machine against an API that lives in memory; no clock, no socket.

mod cluster;
mod deletes;
mod facts;
mod notices;
mod ownership;
mod repair;
mod writes;
