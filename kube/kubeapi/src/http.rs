//! Requests and answers: sockets, bodies, content types, errors.
//!
//! ```text
//!   socket ──▶ server (TLS) ──▶ request: verb, resource, query ──▶ decode: body ──▶ object ──▶ verbs
//!                 │             negotiate: Accept, Content-Type                                 │
//!                 └── websocket (exec, attach)     bytes ◀── encode ◀── answer, status_error ◀──┘
//! ```
//!
//! Nothing in here knows the store. [`status_error`] has every error that a client can get, worded as kube-apiserver words it.

pub(crate) mod answer;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod negotiate;
pub(crate) mod request;
pub mod server;
pub(crate) mod status_error;
pub mod websocket;
