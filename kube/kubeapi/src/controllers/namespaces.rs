//! Namespaces that go: first all that is in them, then they themselves.

use super::crds::set_condition;
use super::discard::Fate;
use crate::api::ApiState;
use crate::http::encode::PartialObject;
use crate::resources::resource::Resource;
use crate::resources::strategy::take_out;
use crate::storage::store::{EventKind, Key, Object};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Names of namespaces that are being emptied.
type Emptying = Arc<Mutex<BTreeSet<String>>>;

/// Empties namespaces that are on their way out, for ever.
pub(super) async fn run(state: Arc<ApiState>) {
    let prefix = Key::resource_prefix("", "namespaces");
    let emptying = Emptying::default();
    loop {
        let Ok(page) = state.store.list(&prefix, None, None, None) else { return };
        let Ok(mut watch) = state.store.watch(&prefix, Some(page.revision)) else { continue };
        for object in &page.objects {
            consider(&state, &emptying, object.key.name(), &object.body);
        }
        while let Ok(event) = watch.next().await {
            if event.kind != EventKind::Deleted {
                consider(&state, &emptying, event.object.key.name(), &event.object.body);
            }
        }
    }
}

fn consider(state: &Arc<ApiState>, emptying: &Emptying, name: &str, body: &[u8]) {
    if PartialObject::of(body).metadata.deletion_timestamp.is_none() {
        return;
    }
    let mut known = emptying.lock().unwrap_or_else(PoisonError::into_inner);
    if known.insert(name.to_owned()) {
        let (state, emptying, name) = (Arc::clone(state), Arc::clone(emptying), name.to_owned());
        tokio::spawn(async move {
            empty(&state, &name).await;
            emptying.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
        });
    }
}

/// Empties a namespace and deletes it.
async fn empty(state: &Arc<ApiState>, name: &str) {
    loop {
        let Ok(mut watch) = state.store.watch("/", None) else { continue };
        let mut left = Left::default();
        for resource in contents(state) {
            let Ok(page) = state.store.list(&resource.prefix(name), None, None, None) else { return };
            for object in &page.objects {
                if !matches!(state.discard(&resource, &object.key, None).await, Ok(Fate::Gone)) {
                    left.add(&resource, state.store.get(&object.key).as_ref());
                }
            }
        }
        if left.is_empty() && finish(state, name).await {
            return;
        }
        tell(state, name, &left).await;
        // A finalizer holds something: wait until anything happens in here.
        while let Ok(event) = watch.next().await {
            let key = &event.object.key;
            if key.namespace() == name || (key.resource() == "namespaces" && key.name() == name) {
                break;
            }
        }
        if state.store.get(&Key::new("", "namespaces", "", name)).is_none() {
            return;
        }
    }
}

/// What holds a namespace.
#[derive(Default)]
struct Left {
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

impl Left {
    fn add(&mut self, resource: &Resource, object: Option<&Object>) {
        let Some(object) = object else { return };
        let group = if resource.group.is_empty() { "." } else { &format!(".{}", resource.group) };
        *self.resources.entry(format!("{}{group}", resource.names.plural)).or_default() += 1;
        for finalizer in PartialObject::of(&object.body).metadata.finalizers.unwrap_or_default() {
            *self.finalizers.entry(finalizer).or_default() += 1;
        }
    }

    fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }
}

/// Says in the namespace's status what it waits for.
async fn tell(state: &ApiState, name: &str, left: &Left) {
    let registry = state.served.now();
    let Some(resource) = registry.find("", "v1", "namespaces") else { return };
    let stamp = state.environment.stamp();
    let list = |parts: &BTreeMap<String, usize>, verb: &str| {
        let parts: Vec<String> =
            parts.iter().map(|(what, count)| format!("{what} {verb} {count} resource instances")).collect();
        parts.join(", ")
    };
    let content = format!("Some resources are remaining: {}", list(&left.resources, "has"));
    let finalizers =
        format!("Some content in the namespace has finalizers remaining: {}", list(&left.finalizers, "in"));
    let key = Key::new("", "namespaces", "", name);
    let amended = state
        .amend(resource, &key, |namespace| {
            let before = namespace["status"].clone();
            let mut say = |kind: &str, status: &str, reason: &str, message: &str| {
                set_condition(namespace, kind, status, reason, message, &stamp);
            };
            say(
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            );
            say(
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            );
            say(
                "NamespaceDeletionContentFailure",
                "False",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            );
            if left.is_empty() {
                return before != namespace["status"];
            }
            say("NamespaceContentRemaining", "True", "SomeResourcesRemain", &content);
            if left.finalizers.is_empty() {
                say(
                    "NamespaceFinalizersRemaining",
                    "False",
                    "ContentHasNoFinalizers",
                    "All content-preserving finalizers finished",
                );
            } else {
                say("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", &finalizers);
            }
            before != namespace["status"]
        })
        .await;
    if let Err(error) = amended {
        tracing::warn!(namespace = name, %error, "cannot write the namespace's status");
    }
}

fn contents(state: &ApiState) -> Vec<Arc<Resource>> {
    state.served.now().stores().into_iter().filter(|resource| resource.namespaced).cloned().collect()
}

/// Deletes an empty namespace. False if it is not empty.
async fn finish(state: &Arc<ApiState>, name: &str) -> bool {
    // Nothing is created while this is held.
    let _alone = state.namespaces.write().await;
    let holds = |resource: &Arc<Resource>| {
        state
            .store
            .list(&resource.prefix(name), None, None, Some(1))
            .is_ok_and(|page| !page.objects.is_empty())
    };
    if contents(state).iter().any(holds) {
        return false;
    }
    let registry = state.served.now();
    let Some(resource) = registry.find("", "v1", "namespaces") else { return true };
    let key = Key::new("", "namespaces", "", name);
    let amended = state
        .amend(resource, &key, |namespace| {
            take_out(&mut namespace["spec"], "finalizers", |one| one == "kubernetes")
        })
        .await;
    if let Err(error) = amended {
        tracing::warn!(namespace = name, %error, "cannot delete the namespace");
    }
    true
}
