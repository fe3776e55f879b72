//! The control plane: what is read of the hub and the members, all at once, and judged by `judge`.

pub(super) mod facts;
mod judge;
mod read;

pub(super) use judge::judge;
pub(super) use read::{hub, member};
