//! One request each about an object of any kind.

use atoll_api::names::{annotation, label};
use atoll_engine::placement::object::ObjectKey;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::discovery::{ApiCapabilities, Scope};
use serde_json::{Value, json};

use super::core::{Answer, Request};
use super::live::{Live, MANAGER, as_applied};
use crate::Permit;
use crate::clients::WRITE_DEADLINE;
use crate::core::event::Failure;
use crate::shell::failure;
use crate::shell::requests::exactly;

/// How a kind is reached.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) resource: ApiResource,
    pub(super) capabilities: ApiCapabilities,
}

impl Route {
    pub(super) fn api(&self, client: &Client, key: &ObjectKey) -> Api<DynamicObject> {
        match self.capabilities.scope {
            Scope::Namespaced => Api::namespaced_with(client.clone(), &key.namespace, &self.resource),
            Scope::Cluster => Api::all_with(client.clone(), &self.resource),
        }
    }
}

/// Sends a request, if the hub may write at this moment.
pub(super) async fn send(
    client: &Client,
    permit: &Permit,
    hub: &str,
    route: &Route,
    key: &ObjectKey,
    request: &Request,
) -> Result<Answer, Failure> {
    if !permit.holds() {
        return Err(Failure::NotPermitted);
    }
    let api = route.api(client, key);
    match tokio::time::timeout(WRITE_DEADLINE, carry_out(&api, hub, key, request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failure::of(&error)),
        Err(_) => Err(Failure::Unreachable("no answer within 5 s".to_owned())),
    }
}

async fn carry_out(
    api: &Api<DynamicObject>,
    hub: &str,
    key: &ObjectKey,
    request: &Request,
) -> Result<Answer, kube::Error> {
    let posting = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let plain = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let answer = match request {
        Request::Look => match api.get_opt(&key.name).await? {
            Some(found) => found,
            None => return Ok(Answer::Absent),
        },
        Request::Create(object) => {
            let object =
                serde_json::from_value(marked(object, hub, false)).map_err(kube::Error::SerdeError)?;
            api.create(&posting, &object).await?
        }
        Request::Replace { object, uid, revision } => {
            let mut object = marked(object, hub, false);
            let meta = &mut object["metadata"];
            (meta["uid"], meta["resourceVersion"]) = (uid.as_str().into(), revision.as_str().into());
            let object = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
            api.replace(&key.name, &posting, &object).await?
        }
        Request::Apply { object, uid, adopt, replicas } => {
            let mut object = marked(object, hub, *adopt);
            object["metadata"]["uid"] = uid.as_str().into();
            if let Some(replicas) = replicas {
                object["spec"]["replicas"] = replicas.clone();
            }
            let params = PatchParams::apply(MANAGER).force();
            api.patch(&key.name, &params, &Patch::Apply(object)).await?
        }
        Request::Migrate { uid, revision, managed } => {
            let meta =
                json!({ "uid": uid, "resourceVersion": revision, "managedFields": as_applied(managed) });
            api.patch(&key.name, &plain, &Patch::Merge(json!({ "metadata": meta }))).await?
        }
        Request::Release { uid, revision } => {
            let meta = json!({
                "uid": uid,
                "resourceVersion": revision,
                "labels": { label::PROPAGATED: null },
                "annotations": { annotation::ADOPTED: null },
            });
            api.patch(&key.name, &plain, &Patch::Merge(json!({ "metadata": meta }))).await?
        }
        Request::Delete { uid, revision } => {
            match api.delete(&key.name, &exactly(uid, revision)).await?.left() {
                // A finalizer of another owner holds it up.
                Some(left) if left.metadata.finalizers.as_ref().is_some_and(|list| !list.is_empty()) => left,
                Some(_) | None => return Ok(Answer::Absent),
            }
        }
    };
    let answer = serde_json::to_value(&answer).map_err(kube::Error::SerdeError)?;
    Ok(Answer::There(Box::new(Live::read(&answer, hub))))
}

/// The object with our marks on it.
fn marked(object: &Value, hub: &str, adopted: bool) -> Value {
    let mut object = object.clone();
    let meta = &mut object["metadata"];
    meta["labels"][label::PROPAGATED] = hub.into();
    if adopted {
        meta["annotations"][annotation::ADOPTED] = "true".into();
    }
    object
}
