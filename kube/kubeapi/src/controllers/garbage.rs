//! Garbage: objects whose owners are gone. Who owns what is read off `ownerReferences`, and kept as an index by uid.

use super::discard::drop_finalizer;
use crate::api::Core;
use crate::http::encode::{Glance, Owner};
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
pub(super) async fn run(core: Arc<Core>) {
    loop {
        let mut graph = Graph::default();
        let Ok(page) = core.store.list("/", None, None, None) else { return };
        let Ok(mut watch) = core.store.watch("/", Some(page.revision)) else { continue };
        let mut concerned = Vec::new();
        for object in &page.objects {
            let glance = Glance::of(&object.body);
            let owners = glance.metadata.owner_references.unwrap_or_default();
            if !owners.is_empty() || glance.metadata.deletion_timestamp.is_some() {
                concerned.push(object.clone());
            }
            graph.put(&object.key, &owners);
        }
        drop(page);
        for object in concerned {
            seen(&core, &mut graph, &object).await;
        }
        // Falling behind means to look at everything again.
        while let Ok(event) = watch.next().await {
            take(&core, &mut graph, &event).await;
        }
    }
}

async fn take(core: &Core, graph: &mut Graph, event: &Event) {
    let object = &event.object;
    if event.kind != EventKind::Deleted {
        seen(core, graph, object).await;
        return;
    }
    let uid = Glance::of(&object.body).metadata.uid.into_owned();
    let owners = graph.remove(&object.key);
    graph.waiting.remove(&uid);
    for key in graph.owned_by(&uid) {
        judge(core, graph, &key).await;
    }
    // Its owners may have waited for nothing else.
    for owner in owners {
        if let Some(key) = graph.waiting.get(&owner).cloned() {
            foreground(core, graph, &key, &owner).await;
        }
    }
}

/// An object is there, or is another.
async fn seen(core: &Core, graph: &mut Graph, object: &Object) {
    let glance = Glance::of(&object.body);
    let uid = glance.metadata.uid.into_owned();
    let owners = glance.metadata.owner_references.unwrap_or_default();
    let finalizers = glance.metadata.finalizers.unwrap_or_default();
    graph.put(&object.key, &owners);
    if glance.metadata.deletion_timestamp.is_some() {
        let has = |name: &str| finalizers.iter().any(|one| one == name);
        if has(ORPHAN) {
            orphan(core, graph, &object.key, &uid).await;
            return;
        }
        if has(FOREGROUND) {
            graph.waiting.insert(uid.clone(), object.key.clone());
            foreground(core, graph, &object.key, &uid).await;
            return;
        }
    }
    if !owners.is_empty() {
        judge(core, graph, &object.key).await;
    }
}

/// What is owned stays, and forgets its owner; then the owner goes.
async fn orphan(core: &Core, graph: &Graph, key: &Key, uid: &str) {
    for dependent in graph.owned_by(uid) {
        let forget = |object: &mut Value| forget_owners(object, &[uid.to_owned()]);
        amend(core, &dependent, forget).await;
    }
    amend(core, key, |object| drop_finalizer(object, ORPHAN)).await;
}

/// What is owned goes first; then the owner goes.
async fn foreground(core: &Core, graph: &mut Graph, key: &Key, uid: &str) {
    let mut blocked = false;
    for dependent in graph.owned_by(uid) {
        judge(core, graph, &dependent).await;
        let Some(object) = core.store.get(&dependent) else { continue };
        let owners = Glance::of(&object.body).metadata.owner_references.unwrap_or_default();
        blocked |= owners.iter().any(|owner| owner.uid == uid && owner.block_owner_deletion == Some(true));
    }
    if !blocked {
        graph.waiting.remove(uid);
        amend(core, key, |object| drop_finalizer(object, FOREGROUND)).await;
    }
}

/// Has this object an owner left?
async fn judge(core: &Core, graph: &Graph, key: &Key) {
    let Some(object) = core.store.get(key) else { return };
    let glance = Glance::of(&object.body);
    let owners = glance.metadata.owner_references.unwrap_or_default();
    let finalizers = glance.metadata.finalizers.unwrap_or_default();
    if owners.is_empty() || glance.metadata.deletion_timestamp.is_some() {
        return;
    }
    let (mut solid, mut gone, mut going) = (0, Vec::new(), Vec::new());
    for owner in &owners {
        match find(core, key, owner) {
            Found::There => solid += 1,
            Found::Going => going.push(owner.uid.clone()),
            Found::Gone => gone.push(owner.uid.clone()),
        }
    }
    let Some(resource) = resource_of(core, key) else { return };
    if solid > 0 {
        gone.extend(going);
        if !gone.is_empty() {
            amend(core, key, |object| forget_owners(object, &gone)).await;
        }
        return;
    }
    let owns = !graph.owned_by(&glance.metadata.uid).is_empty();
    let policy = if !going.is_empty() && owns {
        Propagation::Foreground
    } else if finalizers.iter().any(|one| one == ORPHAN) {
        Propagation::Orphan
    } else if finalizers.iter().any(|one| one == FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    if let Err(error) = core.discard(&resource, key, Some(policy)).await {
        tracing::warn!(%key, %error, "cannot delete what nobody owns");
    }
}

/// Is an owner there?
enum Found {
    /// Yes, or nobody can tell.
    There,
    /// It waits for what it owns to go.
    Going,
    Gone,
}

fn find(core: &Core, dependent: &Key, owner: &Owner) -> Found {
    let registry = core.served.now();
    // A kind that is not served may come back: what nobody knows is not gone.
    let Some(resource) = registry.of_kind(&owner.api_version, &owner.kind) else { return Found::There };
    if resource.namespaced && dependent.namespace().is_empty() {
        return Found::There;
    }
    let Some(object) = core.store.get(&resource.key(dependent.namespace(), &owner.name)) else {
        return Found::Gone;
    };
    let glance = Glance::of(&object.body);
    if glance.metadata.uid != owner.uid {
        return Found::Gone;
    }
    let foreground = glance.metadata.finalizers.unwrap_or_default().iter().any(|one| one == FOREGROUND);
    if glance.metadata.deletion_timestamp.is_some() && foreground { Found::Going } else { Found::There }
}

fn resource_of(core: &Core, key: &Key) -> Option<Arc<Resource>> {
    let group = if key.group() == "core" { "" } else { key.group() };
    core.served.now().any_version(group, key.resource()).cloned()
}

async fn amend(core: &Core, key: &Key, change: impl Fn(&mut Value) -> bool) {
    let Some(resource) = resource_of(core, key) else { return };
    match core.amend(&resource, key, change).await {
        Ok(()) | Err(WriteError::Missing) => {}
        Err(error) => tracing::warn!(%key, %error, "cannot change what an owner left"),
    }
}

fn forget_owners(object: &mut Value, uids: &[String]) -> bool {
    let forgotten = |owner: &Value| uids.iter().any(|uid| owner["uid"] == uid.as_str());
    take_out(&mut object["metadata"], "ownerReferences", forgotten)
}
