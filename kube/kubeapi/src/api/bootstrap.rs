//! What every API has from its first start on: a few namespaces, and the default roles.

use super::ApiState;
use crate::access::rbac;
use crate::http::encode;
use crate::http::encode::PartialObject;
use crate::http::status_error::StatusError;
use crate::resources::strategy;
use crate::storage::store::{Key, WriteError};
use futures_util::future::{try_join, try_join_all};
use serde_json::{Value, json};
use std::net::Ipv4Addr;

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl ApiState {
    /// Makes what is missing.
    pub(super) async fn bootstrap(&self) -> Result<(), StatusError> {
        let namespaces = NAMESPACES.map(|name| {
            ("namespaces", "", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        });
        let roles =
            rbac::defaults::objects().into_iter().map(|(resource, object)| (resource, rbac::GROUP, object));
        // All at once: they share a sync of the disk.
        let all = namespaces.into_iter().chain(roles);
        let all = try_join_all(all.map(|(plural, group, object)| self.ensure(plural, group, object)));
        try_join(all, self.ensure_service()).await?;
        // The CRDs of an earlier run are served before the first request is.
        let prefix = Key::resource_prefix("apiextensions.k8s.io", "customresourcedefinitions");
        let page = self
            .store
            .list(&prefix, None, None, None)
            .map_err(|error| StatusError::internal(&error.to_string()))?;
        self.served.change(|served| {
            for object in &page.objects {
                let definition = encode::read(&object.body);
                if crate::controllers::is_accepted(&definition) {
                    served.define(object.key.name(), &definition, page.revision);
                }
            }
        });
        Ok(())
    }

    /// Makes the Service that clients in a cluster find their API by, if it is missing.
    pub(crate) async fn ensure_service(&self) -> Result<(), StatusError> {
        self.ensure("services", "", kubernetes_service(self.addresses.network().first())).await
    }

    async fn ensure(&self, plural: &str, group: &str, mut object: Value) -> Result<(), StatusError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let key = Key::new(group, plural, namespace, &name);
        if self.store.get(&key).is_some_and(|found| !PartialObject::of(&found.body).metadata.uid.is_empty()) {
            return Ok(());
        }
        object["metadata"]["uid"] = self.environment.uid().into();
        object["metadata"]["creationTimestamp"] = self.environment.stamp().into();
        let registry = self.served.now();
        let Some(resource) = registry.any_version(group, plural) else { return Ok(()) };
        strategy::default(resource, &mut object);
        strategy::prepare_create(resource, &mut object);
        if let Ok(reservation) = self.addresses.reserve(resource, &mut object, None, &self.environment) {
            reservation.keep();
        }
        match self.write(resource, key, &object, None).await {
            Ok(_) | Err(WriteError::Exists(_)) => Ok(()),
            Err(error) => Err(StatusError::internal(&error.to_string())),
        }
    }
}

/// The namespace and the name of the Service by which clients in a cluster find its API.
pub(crate) const KUBERNETES: (&str, &str) = ("default", "kubernetes");

fn kubernetes_service(address: Ipv4Addr) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": KUBERNETES.1, "namespace": KUBERNETES.0,
            "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": address.to_string(), "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
    })
}
