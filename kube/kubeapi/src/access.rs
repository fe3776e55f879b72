//! Who asks, and what they may do: certificates, tokens, roles, admission policies.
//!
//! ```text
//!   certificate, token ──▶ authn ──▶ User ──▶ rbac ──▶ verb ──▶ admission ──▶ storage
//!          ▲                └──── filters ─────┘         ├──▶ reviews: SubjectAccessReview, TokenReview, …
//!          └── pki: the CA and keys that sign them ◀─────┘     TokenRequest
//! ```
//!
//! [`authn`], [`rbac`] and [`pki`] decide and know no server; [`filters`] asks them for each request, and reads `Impersonate-*`
//! with [`impersonation`]; [`admission`] and [`escalation`] are asked for each write; [`author`] writes down who made one.

pub(crate) mod admission;
pub(crate) mod audit;
pub mod authn;
pub mod author;
mod escalation;
pub(crate) mod filters;
mod impersonation;
pub mod pki;
pub mod rbac;
pub(crate) mod reviews;
