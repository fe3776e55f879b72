//! Garbage: objects whose owners are gone. Who owns what is read off `ownerReferences`, and kept as an index by uid.
//!
//! An owner is looked for where it must be: in the object's own namespace, or in none. What has the right uid elsewhere is no
//! owner: it keeps nothing and holds nothing up.

mod graph;

use super::discard::drop_finalizer;
use crate::api::ApiState;
use crate::http::encode::{Owner, PartialObject};
use crate::http::request::Propagation;
use crate::resources::resource::Resource;
use crate::resources::strategy::take_out;
use crate::storage::store::{Event, EventKind, Key, Object, WriteError};
use crate::verbs::{FOREGROUND, ORPHAN};
use graph::Graph;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// Collects garbage, for ever.
pub(super) async fn run(state: Arc<ApiState>) {
    loop {
        let mut graph = Graph::default();
        let Ok(page) = state.store.list("/", None, None, None) else { return };
        let Ok(mut watch) = state.store.watch("/", Some(page.revision)) else { continue };
        let mut concerned = Vec::new();
        for object in &page.objects {
            let partial = PartialObject::of(&object.body);
            let owners = partial.metadata.owner_references.unwrap_or_default();
            if !owners.is_empty() || partial.metadata.deletion_timestamp.is_some() {
                concerned.push(object.clone());
            }
            graph.put(&object.key, &owners);
        }
        drop(page);
        for object in concerned {
            seen(&state, &mut graph, &object).await;
        }
        // Falling behind means to look at everything again.
        while let Ok(event) = watch.next().await {
            take(&state, &mut graph, &event).await;
        }
    }
}

async fn take(state: &ApiState, graph: &mut Graph, event: &Event) {
    let object = &event.object;
    if event.kind != EventKind::Deleted {
        seen(state, graph, object).await;
        return;
    }
    let uid = PartialObject::of(&object.body).metadata.uid.into_owned();
    let owners = graph.remove(&object.key);
    graph.done(&uid);
    for key in graph.owned_by(&uid) {
        judge(state, graph, &key).await;
    }
    // Its owners may have waited for nothing else.
    for owner in owners {
        finish(state, graph, &owner).await;
    }
}

/// An object is there, or is another.
async fn seen(state: &ApiState, graph: &mut Graph, object: &Object) {
    let partial = PartialObject::of(&object.body);
    let uid = partial.metadata.uid.into_owned();
    let owners = partial.metadata.owner_references.unwrap_or_default();
    let finalizers = partial.metadata.finalizers.unwrap_or_default();
    // Owners that it named before may have waited for that.
    for owner in graph.put(&object.key, &owners) {
        finish(state, graph, &owner).await;
    }
    if partial.metadata.deletion_timestamp.is_some() {
        let has = |name: &str| finalizers.iter().any(|one| one == name);
        if has(ORPHAN) {
            orphan(state, graph, &object.key, &uid).await;
            return;
        }
        if has(FOREGROUND) {
            foreground(state, graph, &object.key, &uid).await;
            return;
        }
    }
    if !owners.is_empty() {
        judge(state, graph, &object.key).await;
    }
}

/// What is owned stays, and forgets its owner; then the owner goes.
async fn orphan(state: &ApiState, graph: &Graph, key: &Key, uid: &str) {
    for dependent in graph.dependents(key, uid) {
        let forget = |object: &mut Value| forget_owners(object, &HashSet::from([uid.to_owned()]));
        amend(state, &dependent, forget).await;
    }
    amend(state, key, |object| drop_finalizer(object, ORPHAN)).await;
}

/// What is owned goes first; then the owner goes. What is owned is looked at once: afterwards each that goes, or is changed,
/// tells.
async fn foreground(state: &ApiState, graph: &mut Graph, key: &Key, uid: &str) {
    if graph.wait(uid, key) {
        for dependent in graph.dependents(key, uid) {
            judge(state, graph, &dependent).await;
        }
    }
    finish(state, graph, uid).await;
}

/// Lets an owner go that waited and that nothing holds up any more.
async fn finish(state: &ApiState, graph: &mut Graph, uid: &str) {
    if let Some(key) = graph.is_free(uid) {
        graph.done(uid);
        amend(state, &key, |object| drop_finalizer(object, FOREGROUND)).await;
    }
}

/// Has this object an owner left?
async fn judge(state: &ApiState, graph: &Graph, key: &Key) {
    let Some(object) = state.store.get(key) else { return };
    let partial = PartialObject::of(&object.body);
    let owners = partial.metadata.owner_references.unwrap_or_default();
    let finalizers = partial.metadata.finalizers.unwrap_or_default();
    if owners.is_empty() || partial.metadata.deletion_timestamp.is_some() {
        return;
    }
    let (mut solid, mut gone, mut going) = (0, HashSet::new(), HashSet::new());
    for owner in &owners {
        match find(state, key, owner) {
            Found::There => solid += 1,
            Found::Going => {
                going.insert(owner.uid.clone());
            }
            Found::Gone => {
                gone.insert(owner.uid.clone());
            }
            // While one of its owners can't be told, nothing is decided about it.
            Found::Unknown => return,
        }
    }
    let Some(resource) = resource_of(state, key) else { return };
    if solid > 0 {
        gone.extend(going);
        if !gone.is_empty() {
            amend(state, key, |object| forget_owners(object, &gone)).await;
        }
        return;
    }
    let policy = if !going.is_empty() && graph.owns(&partial.metadata.uid) {
        Propagation::Foreground
    } else if finalizers.iter().any(|one| one == ORPHAN) {
        Propagation::Orphan
    } else if finalizers.iter().any(|one| one == FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    if let Err(error) = state.discard(&resource, key, Some(policy)).await {
        tracing::warn!(%key, %error, "cannot delete an object whose owners are gone");
    }
}

/// Is an owner there?
enum Found {
    There,
    /// It waits for what it owns to go.
    Going,
    Gone,
    /// It can't be told: a kind that is not served may come back, and what is in no namespace can't belong to what is in one.
    Unknown,
}

fn find(state: &ApiState, dependent: &Key, owner: &Owner) -> Found {
    let registry = state.served.now();
    let Some(resource) = registry.of_kind(&owner.api_version, &owner.kind) else { return Found::Unknown };
    if resource.namespaced && dependent.namespace().is_empty() {
        return Found::Unknown;
    }
    let Some(object) = state.store.get(&resource.key(dependent.namespace(), &owner.name)) else {
        return Found::Gone;
    };
    let partial = PartialObject::of(&object.body);
    if partial.metadata.uid != owner.uid {
        return Found::Gone;
    }
    let foreground = partial.metadata.finalizers.unwrap_or_default().iter().any(|one| one == FOREGROUND);
    if partial.metadata.deletion_timestamp.is_some() && foreground { Found::Going } else { Found::There }
}

fn resource_of(state: &ApiState, key: &Key) -> Option<Arc<Resource>> {
    let group = if key.group() == "core" { "" } else { key.group() };
    state.served.now().any_version(group, key.resource()).cloned()
}

async fn amend(state: &ApiState, key: &Key, change: impl Fn(&mut Value) -> bool) {
    let Some(resource) = resource_of(state, key) else { return };
    match state.amend(&resource, key, change).await {
        Ok(()) | Err(WriteError::Missing) => {}
        Err(error) => tracing::warn!(%key, %error, "cannot remove an owner reference"),
    }
}

fn forget_owners(object: &mut Value, uids: &HashSet<String>) -> bool {
    let forgotten = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| uids.contains(uid));
    take_out(&mut object["metadata"], "ownerReferences", forgotten)
}
