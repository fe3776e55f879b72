//! An audit log in Kubernetes' format (`audit.k8s.io/v1`): one JSON object per line.
//!
//! ```text
//!   request ──▶ Event ──▶ Log::push (never waits; what finds no room is counted) ──▶ one thread ──▶ file ──▶ rotation
//! ```
//!
//! Who asks makes an [`Event`] and pushes it; nothing of a request ever waits for the disk. Whatever is lost is counted
//! ([`Log::dropped`]), logged, and said on the next line that is written. No event has the body of a request or an answer.

mod event;
mod file;
mod log;
mod rotation;

pub use event::{Event, ObjectRef, Outcome, Stage, UserInfo, verb};
pub use file::{FileOptions, OpenError};
pub use log::{Log, Sink};
