//! Writes into the hub's API: per object one at a time, the latest wins.

use std::time::Duration;

use atoll_api::names::FIELD_MANAGER;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_member::Permit;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, Preconditions,
};
use kube::{Api, Client, ResourceExt, discovery};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::binding;
use super::core::Event;
use crate::api::write_queue as latest;
use crate::membership::connect::{code, why};

const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One write.
#[derive(Debug, Clone)]
pub(super) enum Write {
    /// A binding, with the template that it is of.
    Put {
        object: Box<Value>,
        of: ObjectKey,
        /// What stands in its place is not ours, and goes first: an apply would leave its fields.
        anew: bool,
    },
    /// A status.
    Status(Box<Value>),
    /// No binding.
    Delete,
}

/// What a write is about: two of the same replace each other. They come in this order: members wait for bindings, and not for the rest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WriteKey {
    /// The object itself, or its status.
    pub(super) part: Part,
    pub(super) object: ObjectKey,
}

/// Which part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Itself,
    Status,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Itself => "the object",
            Self::Status => "its status",
        })
    }
}

/// Carries out writes until all senders are gone.
pub(super) async fn write_all(
    client: Client,
    permit: Permit,
    wanted: UnboundedReceiver<(WriteKey, Write)>,
    events: UnboundedSender<Event>,
) {
    // A binding and its status wait for each other; a status comes second.
    let together = |one: &WriteKey, other: &WriteKey| one.object == other.object;
    latest::carry_out_all(wanted, std::convert::identity, together, move |key, write| {
        let (client, permit, events) = (client.clone(), permit.clone(), events.clone());
        async move { until_done(&client, &permit, &key, &write, &events).await.then_some(write) }
    })
    .await;
}

/// Tries a few times; true if it has to be tried again later.
async fn until_done(
    client: &Client,
    permit: &Permit,
    key: &WriteKey,
    write: &Write,
    events: &UnboundedSender<Event>,
) -> bool {
    let mut pause = PAUSE;
    for _ in 0..3 {
        if permit.holds() {
            match carry_out(client, &key.object, write).await {
                Ok(()) => {
                    if let Write::Put { object, of, .. } = write {
                        let _ = events.send(Event::Written(of.clone(), object.clone()));
                    }
                    return false;
                }
                Err(error) if matches!(code(&error), Some(400 | 404 | 422)) => {
                    // It will not get better: the object is gone, or takes no such thing.
                    tracing::warn!(object = %key.object, part = %key.part, why = why(&error), "cannot write to the hub's API");
                    return false;
                }
                Err(error) => {
                    tracing::debug!(object = %key.object, why = why(&error), "cannot write to the hub's API yet");
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 4).min(LONGEST_PAUSE);
    }
    true
}

async fn carry_out(client: &Client, key: &ObjectKey, write: &Write) -> Result<(), kube::Error> {
    match write {
        Write::Put { object, anew, .. } => {
            let params = PatchParams::apply(FIELD_MANAGER).force();
            let api = api(client, key).await?;
            if *anew {
                remove(&api, key).await?;
            }
            api.patch(&key.name, &params, &Patch::Apply(object)).await.map(drop)
        }
        Write::Status(status) => {
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let patch = json!({ "status": status });
            match api(client, key).await?.patch_status(&key.name, &params, &Patch::Merge(patch)).await {
                Err(error) if code(&error) == Some(404) => Ok(()),
                other => other.map(drop),
            }
        }
        Write::Delete => match delete(&api(client, key).await?, key).await {
            Err(error) if code(&error) == Some(404) => Ok(()),
            other => other,
        },
    }
}

/// Deletes a binding, also one that was deleted already and waits for us.
async fn delete(api: &Api<DynamicObject>, key: &ObjectKey) -> Result<(), kube::Error> {
    let Some(waits) = api.delete(&key.name, &DeleteParams::default()).await?.left() else { return Ok(()) };
    let all = waits.finalizers();
    let others: Vec<&String> = all.iter().filter(|one| *one != binding::finalizer_of(key)).collect();
    if others.len() == all.len() {
        return Ok(());
    }
    let meta = json!({ "resourceVersion": waits.resource_version(), "finalizers": others });
    api.patch(&key.name, &PatchParams::default(), &Patch::Merge(json!({ "metadata": meta }))).await.map(drop)
}

/// Removes a binding that is not ours, whatever holds it up.
async fn remove(api: &Api<DynamicObject>, key: &ObjectKey) -> Result<(), kube::Error> {
    let Some(there) = api.get_opt(&key.name).await? else { return Ok(()) };
    if !there.finalizers().is_empty() {
        let meta = json!({ "resourceVersion": there.resource_version(), "finalizers": [] });
        api.patch(&key.name, &PatchParams::default(), &Patch::Merge(json!({ "metadata": meta }))).await?;
    }
    let preconditions = Preconditions { uid: there.uid(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(&key.name, &params).await {
        Err(error) if code(&error) == Some(404) => Ok(()),
        other => other.map(drop),
    }
}

/// The API of an object's kind. Bindings are ours, and need not be asked for.
async fn api(client: &Client, key: &ObjectKey) -> Result<Api<DynamicObject>, kube::Error> {
    let Kind { kind, .. } = &key.kind;
    let gvk = GroupVersionKind::gvk(key.kind.group(), key.kind.version(), kind);
    let resource = if key.kind.group() == atoll_api::names::kind::work::GROUP {
        ApiResource::from_gvk(&gvk)
    } else {
        discovery::oneshot::pinned_kind(client, &gvk).await?.0
    };
    Ok(if key.namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), &key.namespace, &resource)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binding_goes_before_every_status() {
        let key = |part, name: &str| WriteKey {
            part,
            object: ObjectKey {
                kind: Kind::new("v1", "ConfigMap"),
                namespace: "shop".to_owned(),
                name: name.to_owned(),
            },
        };
        let order =
            [key(Part::Itself, "a"), key(Part::Itself, "z"), key(Part::Status, "a"), key(Part::Status, "z")];
        assert!(order.is_sorted());
    }
}
