//! Store, keys, backups, authentication and authorisation from outside.
#![allow(clippy::unwrap_used)]

mod audit;
mod authn;
mod backup;
mod encryption;
mod extension;
mod killed;
mod pki;
mod rbac;
mod rotation;
mod server;
mod torn;
mod twins;
mod watching;
