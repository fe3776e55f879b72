//! Garbage: objects whose owners are gone. Who owns what is read off `ownerReferences`, and kept as an index by uid.

use super::discard::drop_finalizer;
use crate::api::ApiState;
use crate::http::encode::{Owner, PartialObject};
use crate::http::request::Propagation;
use crate::resources::resource::Resource;
use crate::resources::strategy::take_out;
use crate::storage::store::{Event, EventKind, Key, Object, WriteError};
use crate::verbs::{FOREGROUND, ORPHAN};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Who owns what.
#[derive(Default)]
struct Graph {
    /// The objects that name an owner of this uid.
    owned: HashMap<String, BTreeSet<Key>>,
    /// The uids that an object names.
    owners: BTreeMap<Key, Vec<String>>,
    /// Owners that wait until what they own is gone.
    waiting: HashMap<String, Key>,
}

impl Graph {
    /// Learns what an object says.
    fn put(&mut self, key: &Key, owners: &[Owner]) {
        self.remove(key);
        if owners.is_empty() {
            return;
        }
        for owner in owners {
            self.owned.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        self.owners.insert(key.clone(), owners.iter().map(|owner| owner.uid.clone()).collect());
    }

    /// Forgets what an object said; gives the uids that it named.
    fn remove(&mut self, key: &Key) -> Vec<String> {
        let uids = self.owners.remove(key).unwrap_or_default();
        for uid in &uids {
            if let Some(keys) = self.owned.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.owned.remove(uid);
                }
            }
        }
        uids
    }

    fn owned_by(&self, uid: &str) -> Vec<Key> {
        self.owned.get(uid).into_iter().flatten().cloned().collect()
    }
}

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
    graph.waiting.remove(&uid);
    for key in graph.owned_by(&uid) {
        judge(state, graph, &key).await;
    }
    // Its owners may have waited for nothing else.
    for owner in owners {
        if let Some(key) = graph.waiting.get(&owner).cloned() {
            foreground(state, graph, &key, &owner).await;
        }
    }
}

/// An object is there, or is another.
async fn seen(state: &ApiState, graph: &mut Graph, object: &Object) {
    let partial = PartialObject::of(&object.body);
    let uid = partial.metadata.uid.into_owned();
    let owners = partial.metadata.owner_references.unwrap_or_default();
    let finalizers = partial.metadata.finalizers.unwrap_or_default();
    graph.put(&object.key, &owners);
    if partial.metadata.deletion_timestamp.is_some() {
        let has = |name: &str| finalizers.iter().any(|one| one == name);
        if has(ORPHAN) {
            orphan(state, graph, &object.key, &uid).await;
            return;
        }
        if has(FOREGROUND) {
            graph.waiting.insert(uid.clone(), object.key.clone());
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
    for dependent in graph.owned_by(uid) {
        let forget = |object: &mut Value| forget_owners(object, &[uid.to_owned()]);
        amend(state, &dependent, forget).await;
    }
    amend(state, key, |object| drop_finalizer(object, ORPHAN)).await;
}

/// What is owned goes first; then the owner goes.
async fn foreground(state: &ApiState, graph: &mut Graph, key: &Key, uid: &str) {
    let mut blocked = false;
    for dependent in graph.owned_by(uid) {
        judge(state, graph, &dependent).await;
        let Some(object) = state.store.get(&dependent) else { continue };
        let owners = PartialObject::of(&object.body).metadata.owner_references.unwrap_or_default();
        blocked |= owners.iter().any(|owner| owner.uid == uid && owner.block_owner_deletion == Some(true));
    }
    if !blocked {
        graph.waiting.remove(uid);
        amend(state, key, |object| drop_finalizer(object, FOREGROUND)).await;
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
    let (mut solid, mut gone, mut going) = (0, Vec::new(), Vec::new());
    for owner in &owners {
        match find(state, key, owner) {
            Found::There => solid += 1,
            Found::Going => going.push(owner.uid.clone()),
            Found::Gone => gone.push(owner.uid.clone()),
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
    let owns = !graph.owned_by(&partial.metadata.uid).is_empty();
    let policy = if !going.is_empty() && owns {
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
    /// Yes, or it can't be told.
    There,
    /// It waits for what it owns to go.
    Going,
    Gone,
}

fn find(state: &ApiState, dependent: &Key, owner: &Owner) -> Found {
    let registry = state.served.now();
    // A kind that is not served may come back: an owner of an unknown kind is not gone.
    let Some(resource) = registry.of_kind(&owner.api_version, &owner.kind) else { return Found::There };
    if resource.namespaced && dependent.namespace().is_empty() {
        return Found::There;
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

fn forget_owners(object: &mut Value, uids: &[String]) -> bool {
    let forgotten = |owner: &Value| uids.iter().any(|uid| owner["uid"] == uid.as_str());
    take_out(&mut object["metadata"], "ownerReferences", forgotten)
}
