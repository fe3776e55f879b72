//! The Service `kubernetes`: clients in a cluster find their API by it, so it is created again when it is deleted.

use std::sync::Arc;

use crate::api::ApiState;
use crate::api::bootstrap::KUBERNETES;
use crate::storage::store::{EventKind, Key};

/// Creates it again, each time.
pub(super) async fn run(state: Arc<ApiState>) {
    let (namespace, name) = KUBERNETES;
    let service = Key::new("", "services", namespace, name);
    let prefix = Key::namespace_prefix("", "services", namespace);
    loop {
        let Ok(mut watch) = state.store.watch(&prefix, None) else { continue };
        // It may have gone before the watch began.
        restore(&state).await;
        // Falling behind means to start over.
        while let Ok(event) = watch.next().await {
            if event.kind == EventKind::Deleted && event.object.key == service {
                restore(&state).await;
            }
        }
    }
}

async fn restore(state: &ApiState) {
    if let Err(error) = state.ensure_service().await {
        tracing::warn!(%error, "cannot create the Service `default/kubernetes` again");
    }
}
