//! From manifests to a request: objects as the cluster's API would have them, and what is there of their Services.

use std::collections::BTreeSet;

use atoll_api::explain::plan::{Action, PlanRequest, Supposed, There};
use atoll_api::names::kind::{mcs, own, policy};
use atoll_api::names::label;
use kube::Error;
use serde_json::{Value, json};

use crate::commands::apply::{Kinds, namespace_of};
use crate::failure::Failure;
use crate::objects::catalog::Resource;
use crate::objects::manifests::Manifest;
use crate::objects::rest::{Apply, Form, Rest, subject, with_query};
use crate::objects::text;

/// Adds the objects to the request; gives back those that the API would refuse.
pub(super) async fn gather(
    place: &Rest,
    cluster: Option<&str>,
    namespace: Option<&str>,
    action: Action,
    manifests: &[Manifest],
    request: &mut PlanRequest,
) -> anyhow::Result<Vec<Failure>> {
    let mut kinds = Kinds::discover(place.clone()).await?;
    // What is made first is there for the rest, and a dry run leaves nothing behind.
    let made: BTreeSet<&str> = manifests
        .iter()
        .filter(|manifest| text(&manifest.object, "/kind") == "Namespace")
        .map(|manifest| text(&manifest.object, "/metadata/name"))
        .collect();
    let (mut refused, mut services) = (Vec::new(), BTreeSet::new());
    for manifest in manifests {
        let resource = kinds.of(manifest).await?;
        let at = namespace_of(&resource, manifest, namespace, place)?;
        let mut object = manifest.object.clone();
        if resource.namespaced {
            object["metadata"]["namespace"] = at.clone().into();
        }
        services.extend(service_of(&object).map(|name| (at.clone(), name)));
        let name = text(&object, "/metadata/name").to_owned();
        let path = resource.object(&at, &name);
        if cluster.is_none() && resource.group == own::GROUP && resource.kind == own::SHARING_POLICY {
            let there =
                place.find(&path).await.map_err(|error| unreadable(place, &resource, &name, &error))?;
            request.current.extend(there.map(|object| There { cluster: None, object }));
        }
        if action == Action::Apply {
            let how = Apply { force: true, dry_run: true };
            object = match place.apply(&path, &object, how).await {
                Ok(object) => object,
                Err(error) if is_untried(&error, made.contains(at.as_str())) => {
                    let there = place.find(&path).await.ok().flatten();
                    overlaid(there, object)
                }
                Err(error) => {
                    let what =
                        format!("{} ({}) would be refused", subject(&resource, &name), manifest.source);
                    refused.push(place.failure(&what, &error, &resource.group_resource()));
                    continue;
                }
            };
        }
        request.changes.push(Supposed { cluster: cluster.map(str::to_owned), action, object });
    }
    if cluster.is_none() {
        for change in request.changes.clone() {
            selected(place, &mut kinds, &change.object, request).await?;
        }
    }
    if cluster.is_some() {
        for (namespace, name) in services {
            current(place, cluster, &namespace, &name, request).await?;
        }
    }
    Ok(refused)
}

/// Whether the answer says nothing of the object: trying is not allowed to us, or the namespace is only about to be made.
fn is_untried(error: &Error, namespace_is_made: bool) -> bool {
    match error {
        Error::Api(status) => {
            status.code == 403 && !status.message.contains("denied the request")
                || status.code == 404 && namespace_is_made
        }
        _ => false,
    }
}

/// The manifest on what is there: close to what applying it makes, where that can't be tried.
fn overlaid(there: Option<Value>, manifest: Value) -> Value {
    match (there, manifest) {
        (Some(Value::Object(mut all)), Value::Object(new)) => {
            for (key, value) in new {
                let old = all.remove(&key);
                all.insert(key, overlaid(old, value));
            }
            Value::Object(all)
        }
        (_, manifest) => manifest,
    }
}

/// The Service that an object is, exports, or is a slice of.
fn service_of(object: &Value) -> Option<String> {
    let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let name = match (group, kind) {
        ("", "Service") | (mcs::GROUP, mcs::SERVICE_EXPORT) => text(object, "/metadata/name"),
        (_, "EndpointSlice") => object.pointer("/metadata/labels")?.get(label::SERVICE_NAME)?.as_str()?,
        _ => return None,
    };
    Some(name.to_owned())
}

/// The objects of the hub that a propagation policy selects: the hub has not looked for kinds that no policy has selected so far.
async fn selected(
    place: &Rest,
    kinds: &mut Kinds,
    object: &Value,
    request: &mut PlanRequest,
) -> Result<(), Failure> {
    let propagation = [policy::PROPAGATION_POLICY, policy::CLUSTER_PROPAGATION_POLICY];
    if !propagation.contains(&text(object, "/kind")) {
        return Ok(());
    }
    for selector in object.pointer("/spec/resourceSelectors").and_then(Value::as_array).into_iter().flatten()
    {
        let (version, kind, name) =
            (text(selector, "/apiVersion"), text(selector, "/kind"), text(selector, "/name"));
        // A kind that the hub does not serve has no objects.
        let Some(resource) = kinds.known(version, kind) else { continue };
        let said = [text(selector, "/namespace"), text(object, "/metadata/namespace")];
        let namespace = said.into_iter().find(|said| !said.is_empty()).filter(|_| resource.namespaced);
        let failed = |error: Error| unreadable(place, &resource, name, &error);
        let found: Vec<Value> = match namespace {
            _ if name.is_empty() => items(place, &resource, namespace).await.map_err(failed)?,
            None if resource.namespaced => {
                let all = items(place, &resource, None).await.map_err(failed)?;
                all.into_iter().filter(|one| text(one, "/metadata/name") == name).collect()
            }
            _ => {
                let path = resource.object(namespace.unwrap_or_default(), name);
                place.find(&path).await.map_err(failed)?.into_iter().collect()
            }
        };
        request.current.extend(found.into_iter().map(|object| There { cluster: None, object }));
    }
    Ok(())
}

/// All objects of a kind.
async fn items(place: &Rest, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, Error> {
    let list = place.get(&resource.collection(namespace), Form::Objects).await?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    // Lists leave these to the list.
    let whole = |mut object: Value| {
        object["apiVersion"] = json!(resource.api_version());
        object["kind"] = json!(resource.kind);
        object
    };
    Ok(items.into_iter().map(whole).collect())
}

/// The Service and its slices, as they are: the hub knows only those that are exported.
async fn current(
    place: &Rest,
    cluster: Option<&str>,
    namespace: &str,
    name: &str,
    request: &mut PlanRequest,
) -> Result<(), Failure> {
    let failed = |error: Error| {
        let what = format!("cannot read the Service {namespace}/{name} and its EndpointSlices");
        place.failure(&what, &error, "services,endpointslices.discovery.k8s.io")
    };
    let service = Resource {
        version: "v1".to_owned(),
        plural: "services".to_owned(),
        namespaced: true,
        ..Resource::default()
    };
    let slices = Resource {
        group: "discovery.k8s.io".to_owned(),
        version: "v1".to_owned(),
        plural: "endpointslices".to_owned(),
        namespaced: true,
        ..Resource::default()
    };
    let mut found: Vec<Value> =
        place.find(&service.object(namespace, name)).await.map_err(failed)?.into_iter().collect();
    let of_service = format!("{}={name}", label::SERVICE_NAME);
    let path = with_query(&slices.collection(Some(namespace)), &[("labelSelector", &of_service)]);
    let list = place.get(&path, Form::Objects).await.map_err(failed)?;
    for slice in list["items"].as_array().into_iter().flatten() {
        let mut slice = slice.clone();
        // Lists leave these to the list.
        slice["apiVersion"] = json!(slices.api_version());
        slice["kind"] = json!("EndpointSlice");
        found.push(slice);
    }
    let cluster = cluster.map(str::to_owned);
    request.current.extend(found.into_iter().map(|object| There { cluster: cluster.clone(), object }));
    Ok(())
}

fn unreadable(place: &Rest, resource: &Resource, name: &str, error: &Error) -> Failure {
    place.failure(&format!("cannot read {}", subject(resource, name)), error, &resource.group_resource())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_about_a_service_or_about_none() {
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}}});
        let named = |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web"}});
        for (object, want) in [
            (slice, Some("web")),
            (named("v1", "Service"), Some("web")),
            (named("multicluster.x-k8s.io/v1alpha1", "ServiceExport"), Some("web")),
            (named("serving.knative.dev/v1", "Service"), None),
            (named("discovery.k8s.io/v1", "EndpointSlice"), None),
            (named("v1", "Namespace"), None),
        ] {
            assert_eq!(service_of(&object).as_deref(), want, "{object}");
        }
    }

    #[test]
    fn a_manifest_that_can_not_be_tried_is_laid_over_what_is_there() {
        let there =
            json!({"metadata": {"name": "a", "uid": "u"}, "spec": {"ports": [1], "type": "ClusterIP"}});
        let new = json!({"metadata": {"name": "a"}, "spec": {"ports": [2]}});
        let want =
            json!({"metadata": {"name": "a", "uid": "u"}, "spec": {"ports": [2], "type": "ClusterIP"}});
        assert_eq!(overlaid(Some(there), new.clone()), want);
        assert_eq!(overlaid(None, new.clone()), new);
    }
}
