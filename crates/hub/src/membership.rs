//! Who is a member of the clusterset: joining, identity, health, networks, leaving.

pub(crate) mod annotations;
pub(crate) mod clean;
pub(crate) mod clusterset;
pub mod connect;
pub(crate) mod credentials;
pub(crate) mod health;
pub(crate) mod identify;
pub mod join;
pub(crate) mod members;
pub mod networks;
pub(crate) mod own;
pub(crate) mod pin;
pub mod reach;
pub(crate) mod renew;
pub mod revoke;
pub(crate) mod roster;
pub(crate) mod session;
pub mod unjoin;
pub(crate) mod watch;
