//! What the server does by itself: it serves CRDs, empties namespaces, collects what belongs to nobody, forgets events, brings back what
//! every API has.

mod definitions;
mod discard;
mod essentials;
mod events;
mod garbage;
mod namespaces;
mod roles;

pub(crate) use definitions::{is_accepted, set_condition};

use crate::api::Core;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The work that goes on beside requests; it ends with this value.
pub(crate) struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    /// Starts it.
    pub(crate) fn start(core: &Arc<Core>) -> Self {
        Self(vec![
            tokio::spawn(definitions::run(Arc::clone(core))),
            tokio::spawn(namespaces::run(Arc::clone(core))),
            tokio::spawn(garbage::run(Arc::clone(core))),
            tokio::spawn(roles::run(Arc::clone(core))),
            tokio::spawn(events::run(Arc::clone(core))),
            tokio::spawn(essentials::run(Arc::clone(core))),
        ])
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}
