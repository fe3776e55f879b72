//! Cluster roles that gather the rules of others.

use crate::access::rbac;
use crate::api::ApiState;
use crate::storage::store::Key;
use serde_json::json;
use std::sync::Arc;

/// Keeps the rules of gathering roles up to date, for ever.
pub(super) async fn run(state: Arc<ApiState>) {
    let prefix = Key::resource_prefix(rbac::GROUP, "clusterroles");
    loop {
        let Ok(mut watch) = state.store.watch(&prefix, None) else { continue };
        gather(&state).await;
        while let Ok(_changed) = watch.next().await {
            // Several changes at once need one look.
            while let Ok(Some(_)) = watch.try_next() {}
            gather(&state).await;
        }
    }
}

async fn gather(state: &ApiState) {
    // The one that changed may have been written without a request.
    state.rbac.changed();
    let access = state.rbac.now(&state.store);
    let registry = state.served.now();
    let Some(resource) = registry.find(rbac::GROUP, "v1", "clusterroles") else { return };
    for name in access.aggregating() {
        let Some(rules) = access.aggregated(name) else { continue };
        let rules = json!(rules);
        let key = Key::new(rbac::GROUP, "clusterroles", "", name);
        let amended = state
            .amend(resource, &key, |role| {
                let none = json!([]);
                let old = role.get("rules").filter(|rules| !rules.is_null()).unwrap_or(&none);
                let changed = *old != rules;
                role["rules"] = rules.clone();
                changed
            })
            .await;
        if let Err(error) = amended {
            tracing::warn!(role = name, %error, "cannot write the aggregated rules of the ClusterRole");
        }
    }
}
