//! One request each: what the state machine asks for, as calls of the API.

use std::future::Future;

use atoll_api::names::{FIELD_MANAGER, kind};
use atoll_api::types::{ClusterProperty, ServiceExport, ServiceImport};
use atoll_engine::names::{Namespace, Uid};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::DeserializeGuard;
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource};
use serde_json::json;

use super::{failure, free};
use crate::Permit;
use crate::clients::WRITE_DEADLINE;
use crate::core::event::{Answer, Failure, Request, Seen};
use crate::core::object::{ConditionBody, Target, Version};
use crate::edge::{self, Edge, Readable};

/// Sends a write, if the hub may write at this moment.
pub(super) async fn write(
    client: &Client,
    edge: &Edge,
    permit: &Permit,
    request: &Request,
) -> Result<Answer, Failure> {
    if !permit.holds() {
        return Err(Failure::NotPermitted);
    }
    in_time(send(client, edge, request)).await
}

async fn send(client: &Client, edge: &Edge, request: &Request) -> Result<Answer, Failure> {
    let hub = &*edge.hub;
    match request {
        Request::Service { body, ips, onto } => {
            if onto.is_none() {
                free::check(client, ips).await?;
            }
            let object = edge::service::write(body, ips, hub, onto.as_ref());
            put(client, edge, body.of.namespace.as_str(), &object, onto.is_some()).await
        }
        Request::Import(body, onto) => {
            let object = edge::import::write(body, hub, onto.as_ref());
            put(client, edge, body.key.namespace.as_str(), &object, onto.is_some()).await
        }
        Request::Slice(body, onto) => {
            let object = edge::slice::write(body, hub, onto.as_ref());
            put(client, edge, body.of.namespace.as_str(), &object, onto.is_some()).await
        }
        Request::Attach { of, name, attached, onto } => {
            let api: Api<EndpointSlice> = Api::namespaced(client.clone(), of.namespace.as_str());
            let patch = edge::slice::attach(attached, onto);
            let answer = api.patch(name.as_str(), &plain(), &Patch::Merge(patch)).await;
            written(&answer.map_err(|error| failure::of(&error))?, edge)
        }
        Request::ImportStatus(key, body, onto) => {
            let api: Api<ServiceImport> = Api::namespaced(client.clone(), key.namespace.as_str());
            let object = edge::import::write_status(key, body, onto);
            let bytes = serde_json::to_vec(&object).map_err(|error| Failure::Invalid(error.to_string()))?;
            let mut request = kube::core::Request::new(api.resource_url())
                .replace_subresource("status", key.name.as_str(), &posting(), bytes)
                .map_err(|error| Failure::Invalid(error.to_string()))?;
            request.extensions_mut().insert("replace_import_status");
            let answer = client.request::<ServiceImport>(request).await;
            written(&answer.map_err(|error| failure::of(&error))?, edge)
        }
        Request::ExportStatus(key, uid, conditions) => {
            let api: Api<ServiceExport> = Api::namespaced(client.clone(), key.namespace.as_str());
            export_status(api, &key.namespace, key.name.as_str(), uid, conditions, edge).await
        }
        Request::MisnamedStatus(namespace, name, uid, conditions) => {
            let api: Api<ServiceExport> = Api::namespaced(client.clone(), namespace.as_str());
            export_status(api, namespace, name, uid, conditions, edge).await
        }
        Request::Property(name, value, onto) => {
            let api: Api<ClusterProperty> = Api::all(client.clone());
            let object = property(name.as_str(), value, hub, onto.as_ref());
            let object: ClusterProperty =
                serde_json::from_value(object).map_err(|error| Failure::Invalid(error.to_string()))?;
            let answer = match onto {
                None => api.create(&posting(), &object).await,
                Some(_) => api.replace(name.as_str(), &posting(), &object).await,
            };
            written(&answer.map_err(|error| failure::of(&error))?, edge)
        }
        Request::Delete(target, version) => delete(client, edge, target, version).await,
    }
}

async fn export_status(
    api: Api<ServiceExport>,
    namespace: &Namespace,
    name: &str,
    uid: &Uid,
    conditions: &[ConditionBody],
    edge: &Edge,
) -> Result<Answer, Failure> {
    let object = edge::export::write_status(namespace, name, Some(uid), conditions);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let answer = api.patch_status(name, &params, &Patch::Apply(object)).await;
    written(&answer.map_err(|error| failure::of(&error))?, edge)
}

/// A property as we write it.
pub(crate) fn property(name: &str, value: &str, hub: &str, onto: Option<&Version>) -> serde_json::Value {
    let mut object = json!({
        "apiVersion": format!("{}/{}", kind::about::GROUP, kind::about::V1BETA1),
        "kind": kind::about::CLUSTER_PROPERTY,
        "metadata": {"name": name, "labels": {atoll_api::names::label::HUB: hub}},
        "spec": {"value": value},
    });
    if let Some(version) = onto {
        object["metadata"]["uid"] = version.uid.as_str().into();
        object["metadata"]["resourceVersion"] = version.revision.to_string().into();
        if let Some(others) = &version.others {
            object["metadata"]["finalizers"] = json!(others.finalizers);
            object["metadata"]["ownerReferences"] = json!(edge::meta::owners(None, onto));
        }
    }
    object
}

async fn put<K>(
    client: &Client,
    edge: &Edge,
    namespace: &str,
    object: &K,
    replace: bool,
) -> Result<Answer, Failure>
where
    K: Resource<Scope = NamespaceResourceScope> + Readable + Clone + std::fmt::Debug,
    K: serde::Serialize + serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let answer = if replace {
        api.replace(object.meta().name.as_deref().unwrap_or_default(), &posting(), object).await
    } else {
        api.create(&posting(), object).await
    };
    written(&answer.map_err(|error| failure::of(&error))?, edge)
}

fn written<K: Readable>(object: &K, edge: &Edge) -> Result<Answer, Failure> {
    match object.read(edge, &mut Vec::new()) {
        Ok(Some(seen)) => Ok(Answer::Written(Box::new(seen))),
        Ok(None) => Err(Failure::Invalid("the response contains another object".to_owned())),
        Err(error) => Err(Failure::Invalid(error.to_string())),
    }
}

async fn delete(client: &Client, edge: &Edge, target: &Target, version: &Version) -> Result<Answer, Failure> {
    let namespace = target.service().map(|key| key.namespace.as_str()).unwrap_or_default();
    match target {
        Target::Service(..) => delete_as::<Service>(client, edge, namespace, target, version).await,
        Target::Slice(..) => delete_as::<EndpointSlice>(client, edge, namespace, target, version).await,
        Target::Import(_) => delete_as::<ServiceImport>(client, edge, namespace, target, version).await,
        Target::ImportStatus(_)
        | Target::ExportStatus(_)
        | Target::MisnamedStatus(..)
        | Target::Property(_) => Err(Failure::Invalid("its deletion does not finish".to_owned())),
    }
}

async fn delete_as<K>(
    client: &Client,
    edge: &Edge,
    namespace: &str,
    target: &Target,
    version: &Version,
) -> Result<Answer, Failure>
where
    K: Resource<Scope = NamespaceResourceScope> + Readable + Clone + std::fmt::Debug,
    K: serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let params = exactly(version.uid.as_str(), &version.revision.to_string());
    match api.delete(target.name(), &params).await {
        // A finalizer of another owner holds it up.
        Ok(either) => match either.left() {
            Some(object) if object.meta().finalizers.as_ref().is_some_and(|list| !list.is_empty()) => {
                written(&object, edge)
            }
            Some(_) | None => Ok(Answer::Deleted),
        },
        Err(error) => Err(failure::of(&error)),
    }
}

/// Deletes this very state of an object, and no other.
pub(crate) fn exactly(uid: &str, revision: &str) -> DeleteParams {
    DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: Some(revision.to_owned()),
        }),
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    }
}

/// Reads an object; none if there is none.
pub(super) async fn read(client: &Client, edge: &Edge, target: &Target) -> Result<Option<Seen>, Failure> {
    let namespace = target.namespace().map(Namespace::as_str).unwrap_or_default();
    let client = client.clone();
    let name = target.name();
    in_time(async {
        match target {
            Target::Service(..) => get(Api::<Service>::namespaced(client, namespace), name, edge).await,
            Target::Slice(..) => get(Api::<EndpointSlice>::namespaced(client, namespace), name, edge).await,
            Target::Import(_) | Target::ImportStatus(_) => {
                get(Api::<DeserializeGuard<ServiceImport>>::namespaced(client, namespace), name, edge).await
            }
            Target::ExportStatus(_) | Target::MisnamedStatus(..) => {
                get(Api::<DeserializeGuard<ServiceExport>>::namespaced(client, namespace), name, edge).await
            }
            Target::Property(_) => get(Api::<ClusterProperty>::all(client), name, edge).await,
        }
    })
    .await
}

async fn get<K>(api: Api<K>, name: &str, edge: &Edge) -> Result<Option<Seen>, Failure>
where
    K: Readable + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    match api.get(name).await {
        Ok(object) => object.read(edge, &mut Vec::new()).map_err(|error| Failure::Invalid(error.to_string())),
        Err(error) if failure::is_absent(&error) => Ok(None),
        Err(error) => Err(failure::of(&error)),
    }
}

async fn in_time<T>(request: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    match tokio::time::timeout(WRITE_DEADLINE, request).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::Unreachable("no answer within 5 s".to_owned())),
    }
}

fn posting() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

fn plain() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
