//! A hub's process: waiting for the lease, leading, and what it says of itself.

pub(crate) mod election;
pub(crate) mod http;
pub(crate) mod lead;
pub(crate) mod metrics;
pub(crate) mod run;
