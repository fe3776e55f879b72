//! Copies of the hub's templates, of any kind, in one member: made, kept as they should be, taken away.
//!
//! ```text
//!   hub ── Order per object ──▶ core.step(event, now) ──▶ requests: create, apply, delete, release ──▶ member's API
//!   hub ◀── CopyState per object ──┘   ▲ kinds by discovery; watches of what carries our label ◀────────┘
//! ```
//!
//! `core` decides and knows no socket; `shell` carries out. An object is ours if it carries the label
//! [`atoll_api::names::label::PROPAGATED`] with our hub's uid: nothing else is changed or deleted, unless the policy says that it
//! is taken over. Nothing is ever deleted because an order is missing: only because the hub says so.
//!
//! Copies are created by POST, which fails where something is there already, and changed by server-side apply, which leaves alone
//! what others set. A `ConfigMap` or a Secret of which only we have set fields is replaced whole: one write, where apply would need a
//! second one, once, to take over from the POST. What the API server notes as our fields tells drift: whoever changes one of them takes it from us.

pub(crate) mod core;
mod leave;
mod live;
mod requests;
mod shell;

pub use leave::{LeaveCopiesError, leave_copies};
pub use shell::{Copies, spawn};
