//! Requests and answers: sockets, bodies, content types, errors.

pub(crate) mod answer;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod negotiate;
pub(crate) mod refusal;
pub(crate) mod request;
pub mod server;
pub mod websocket;
