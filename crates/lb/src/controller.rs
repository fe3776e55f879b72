//! Keeps the balancers of services what they should be: get, then update or ensure; the status; deletion that arrives.
//!
//! ```text
//!   what services say ─▶ core (decides, per service one thing at a time) ─▶ commands
//!   answers, writes ───▶   ▲ time                                            │
//!                          └──────────── shell (calls, writes, waits) ◀──────┘
//! ```
//!
//! [`Core`] knows no socket and no clock; [`run`] carries out what it commands. Where services come from is open: whoever watches them sends
//! [`Event`]s and implements [`Services`].

mod core;
mod shell;

pub use self::core::{Call, Command, Core, Event, Note, Object, Outcome, Write};
pub use shell::{Services, run};
