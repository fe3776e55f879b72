//! What a hub and a member say to each other: plain data, versioned.
//!
//! ```text
//!   hub ── Down: who you are, what to hold, copies, lease, questions ──▶ member
//!   hub ◀── Up: facts, what became of all that, health, answers ──────── member
//! ```
//!
//! [`Up`] and [`Down`] are all there is: whoever can carry them can be a link. In one process they are values, and share what
//! importers share; over a stream each is a [`Frame`] of JSON ([`frame::encode`], [`frame::decode`]), after a [`Hello`] of
//! either side ([`agree`]). JSON, because the facts and templates inside come from and go to Kubernetes as JSON, a person can
//! read a recorded stream, and a peer skips what it does not know without a schema. The frames are behind TLS and few: a
//! change costs microseconds to encode, and a write to an API server milliseconds.
//!
//! Rules for changes:
//! - New fields have a default. Who does not know a field ignores it.
//! - A new kind of message is skipped, and counted, by a peer that does not know it. One that must not be skipped, or a new
//!   variant inside a message, needs a new [`Version`].
//! - No clocks are compared: times are ages and remaining spans. From when a span counts is said by [`ledger::Ledger`].
//! - Names, addresses, ports and keys are checked while they are read. Whatever came in is of its type.

mod checked;
pub mod copies;
pub mod down;
pub mod frame;
pub mod ledger;
pub mod object;
pub mod problem;
pub mod up;
pub mod version;

pub use copies::{CopyReport, CopyState, Order, WhyNot};
pub use down::{Assignment, Down, Identity, Lease};
pub use frame::{BadFrame, Frame, Inbox, Incoming, Message};
pub use ledger::Ledger;
pub use object::{Kind, ObjectName, PropertyName};
pub use problem::{Access, Field, Problem};
pub use up::{Called, Dispatched, Health, Up, Verb, Written};
pub use version::{CannotSpeak, Hello, Side, Version, Versions, agree};
