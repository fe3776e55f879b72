//! Who asks, and what they may do: certificates, tokens, roles, admission policies.

pub(crate) mod admission;
pub mod authn;
pub mod pki;
pub mod rbac;
pub(crate) mod reviews;
