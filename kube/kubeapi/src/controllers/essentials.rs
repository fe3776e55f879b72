//! The Service `kubernetes`: clients in a cluster find their API by it, so it comes back when somebody deletes it.

use std::sync::Arc;

use crate::api::Core;
use crate::storage::store::{EventKind, Key};

/// Brings it back, for ever.
pub(super) async fn run(core: Arc<Core>) {
    let service = Key::new("", "services", "default", "kubernetes");
    let prefix = Key::namespace_prefix("", "services", "default");
    loop {
        let Ok(mut watch) = core.store.watch(&prefix, None) else { continue };
        // It may have gone while nobody watched.
        restore(&core).await;
        // Falling behind means to start over.
        while let Ok(event) = watch.next().await {
            if event.kind == EventKind::Deleted && event.object.key == service {
                restore(&core).await;
            }
        }
    }
}

async fn restore(core: &Core) {
    if let Err(refusal) = core.ensure_service().await {
        tracing::warn!(%refusal, "cannot bring back the Service `kubernetes`");
    }
}
