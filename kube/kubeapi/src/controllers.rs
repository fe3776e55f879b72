//! What the server does by itself, one task for each subject. On a real cluster kube-apiserver and kube-controller-manager do it.
//!
//! ```text
//!   store ──watch──▶ crds                 registers what CRDs serve; deletes their objects with them
//!                    namespaces           empties namespaces that are being deleted
//!                    garbage              deletes objects whose owners are gone
//!                    roles                aggregates ClusterRoles
//!                    events               deletes Events after an hour
//!                    kubernetes_service   creates the Service `kubernetes` again
//!                       └──▶ discard ──▶ storage::write
//! ```

mod crds;
mod discard;
mod events;
mod garbage;
mod kubernetes_service;
mod namespaces;
mod roles;

pub(crate) use crds::{is_accepted, set_condition};

use crate::api::ApiState;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The work that goes on beside requests; it ends with this value.
pub(crate) struct Tasks(Vec<JoinHandle<()>>);

impl Tasks {
    /// Starts it.
    pub(crate) fn start(state: &Arc<ApiState>) -> Self {
        Self(vec![
            tokio::spawn(crds::run(Arc::clone(state))),
            tokio::spawn(namespaces::run(Arc::clone(state))),
            tokio::spawn(garbage::run(Arc::clone(state))),
            tokio::spawn(roles::run(Arc::clone(state))),
            tokio::spawn(events::run(Arc::clone(state))),
            tokio::spawn(kubernetes_service::run(Arc::clone(state))),
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
