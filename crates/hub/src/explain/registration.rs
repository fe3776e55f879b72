//! What brings questions from another API server to the leader: an `APIService`, a Service without a selector, and its `EndpointSlice`
//! with the leader's address. The leader writes them, repairs them, and takes them away when it stops. What others wrote stays as it is.

mod objects;

use std::time::Duration;

use atoll_api::names::{FIELD_MANAGER, label};
use atoll_member::Permit;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::task::JoinSet;

use super::roles;
use crate::membership::connect::{code, why};

pub(crate) use objects::Place;

/// How often they are looked at.
const AGAIN: Duration = Duration::from_secs(30);
/// The same, while something could not be written.
const SOON: Duration = Duration::from_secs(5);

/// An object that the API server itself changes meanwhile, such as a status, is read again and deleted.
const TRIES: usize = 5;

/// What a leader keeps in the hub's API.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    /// The hub's namespace.
    pub(crate) namespace: String,
    /// Where questions go; none if the hub's API answers by itself.
    pub(crate) place: Option<Place>,
}

/// Keeps a registration; where there is to be none, takes away what an earlier hub left.
pub(crate) fn spawn(
    client: &Client,
    registration: Option<Registration>,
    namespace: &str,
    permit: &Permit,
    tasks: &mut JoinSet<()>,
) {
    let client = client.clone();
    match registration {
        Some(registration) => tasks.spawn(keep(client, registration, permit.clone())),
        None => {
            let namespace = namespace.to_owned();
            tasks.spawn(async move { clear(&client, &namespace).await })
        }
    };
}

/// Keeps everything as it should be, for as long as it is let.
async fn keep(client: Client, registration: Registration, permit: Permit) {
    let mut said = Vec::new();
    loop {
        let problems = if permit.holds() { registration.ensure(&client).await } else { Vec::new() };
        if problems != said {
            problems
                .iter()
                .for_each(|problem| tracing::warn!("cannot make explanations available: {problem}"));
        }
        let pause = if problems.is_empty() { AGAIN } else { SOON };
        said = problems;
        tokio::time::sleep(pause).await;
    }
}

impl Registration {
    fn wanted(&self) -> Vec<Value> {
        let roles = roles::wanted(&self.namespace).into_iter();
        let place = self.place.iter().flat_map(|place| objects::wanted(&self.namespace, place));
        roles.chain(place).collect()
    }

    /// Writes what is not as it should be; says what did not work.
    async fn ensure(&self, client: &Client) -> Vec<String> {
        let mut problems = Vec::new();
        for want in self.wanted() {
            if let Err(problem) = ensure(client, &self.namespace, &want).await {
                problems.push(problem);
            }
        }
        problems
    }

    /// Takes away what leads to us; what leads to another leader by now stays.
    pub(crate) async fn withdraw(&self, client: &Client) {
        let Some(place) = &self.place else { return };
        let [service, slice, registered] = objects::wanted(&self.namespace, place);
        let api = api(client, &registered);
        let name = registered["metadata"]["name"].as_str().unwrap_or_default();
        for _ in 0..TRIES {
            let Ok(Some(found)) = api.get_opt(name).await else { return };
            let value = serde_json::to_value(&found).unwrap_or_default();
            if !is_ours(&found, &self.namespace)
                || value["spec"]["caBundle"] != registered["spec"]["caBundle"]
            {
                return;
            }
            if remove(client, &self.namespace, &registered, Some(found)).await {
                remove(client, &self.namespace, &slice, None).await;
                remove(client, &self.namespace, &service, None).await;
                return;
            }
        }
    }
}

/// Takes away what an earlier hub registered here, when this one does not: an `APIService` that leads nowhere slows every client down.
async fn clear(client: &Client, namespace: &str) {
    for object in objects::wanted(namespace, &Place::nowhere()).iter().rev() {
        remove(client, namespace, object, None).await;
    }
}

/// Deletes an object as it was read, if it is ours. False: it has changed since, or can't be deleted.
async fn remove(client: &Client, namespace: &str, object: &Value, found: Option<DynamicObject>) -> bool {
    let (api, name) = (api(client, object), object["metadata"]["name"].as_str().unwrap_or_default());
    let found = match found {
        Some(found) => Some(found),
        None => api.get_opt(name).await.ok().flatten(),
    };
    let Some(found) = found.filter(|found| is_ours(found, namespace)) else { return true };
    let preconditions = Preconditions { uid: found.uid(), resource_version: found.resource_version() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match api.delete(name, &params).await {
        Ok(_) => {
            tracing::info!(kind = object["kind"].as_str(), name, "removed: this hub does not answer there");
            true
        }
        Err(error) if code(&error) == Some(404) => true,
        Err(error) if code(&error) == Some(409) => false,
        Err(error) => {
            tracing::warn!(kind = object["kind"].as_str(), name, why = why(&error), "cannot remove it");
            false
        }
    }
}

async fn ensure(client: &Client, namespace: &str, want: &Value) -> Result<(), String> {
    let (kind, name) =
        (want["kind"].as_str().unwrap_or_default(), want["metadata"]["name"].as_str().unwrap_or_default());
    let api = api(client, want);
    let failed = |error: &kube::Error| format!("{kind} {name}: {}", why(error));
    let make = || async {
        let object = serde_json::from_value(want.clone()).map_err(kube::Error::SerdeError)?;
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        api.create(&params, &object).await
    };
    let Some(found) = api.get_opt(name).await.map_err(|error| failed(&error))? else {
        return make().await.map(drop).map_err(|error| failed(&error));
    };
    if !is_ours(&found, namespace) {
        let label = format!("{}={namespace}", label::EXPLAIN);
        return Err(format!("{kind} {name} exists and has no label {label}; delete it if it is not needed"));
    }
    let value = serde_json::to_value(&found).unwrap_or_default();
    if objects::covers(&value, want) {
        return Ok(());
    }
    // As it was read, or not at all: another leader may have written it since.
    let mut patch = want.clone();
    patch["metadata"]["resourceVersion"] = found.resource_version().into();
    match api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        // Some fields are for life, such as the family of addresses.
        Err(error) if code(&error) == Some(422) => {
            remove(client, namespace, want, Some(found)).await;
            make().await.map(drop).map_err(|error| failed(&error))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn is_ours(found: &DynamicObject, namespace: &str) -> bool {
    found.labels().get(label::EXPLAIN).is_some_and(|owner| owner == namespace)
}

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap_or_default();
    let plural = format!("{}s", kind.to_lowercase());
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &plural);
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

#[cfg(test)]
mod tests;
