//! The machinery against what a real API server did.

mod replay;
#[path = "../scenario/mod.rs"]
mod scenario;
