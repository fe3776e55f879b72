//! Store, keys, authentication and authorisation from outside.

mod authn;
mod killed;
mod pki;
mod rbac;
mod server;
mod torn;
mod twins;
mod watching;
