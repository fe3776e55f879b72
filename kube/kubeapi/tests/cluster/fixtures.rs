//! Objects and paths that cases begin with.

use serde_json::{Value, json};

use crate::target::Target;

/// The path of a core resource in a namespace.
pub(crate) fn core(namespace: &str, resource: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{resource}")
}

/// The path of a resource of `group`, `apps/v1` say, in a namespace.
pub(crate) fn grouped(group: &str, namespace: &str, resource: &str) -> String {
    format!("/apis/{group}/namespaces/{namespace}/{resource}")
}

/// The path of a namespace's config maps.
pub(crate) fn maps(namespace: &str) -> String {
    core(namespace, "configmaps")
}

/// A config map with `data`.
pub(crate) fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A config map with labels.
pub(crate) fn labelled(name: &str, labels: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}})
}

/// A Deployment in which everything stands that a server would fill in.
pub(crate) fn deployment(name: &str, containers: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": containers,
                    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                    "securityContext": {}, "terminationGracePeriodSeconds": 30,
                },
            },
        },
    })
}

/// A container in which everything stands that a server would fill in.
pub(crate) fn container(name: &str, image: &str) -> Value {
    json!({
        "name": name, "image": image, "imagePullPolicy": "IfNotPresent", "resources": {},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    })
}

/// A pod that runs as an account, on no node.
pub(crate) fn pod(name: &str, account: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"serviceAccountName": account, "automountServiceAccountToken": false, "containers": [container("c", "i:1")]}})
}

/// `value` with the members of `more`.
pub(crate) fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

/// The path of custom kinds' definitions.
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind of a case's own: `Widget` in a group that no other case uses.
pub(crate) struct Kind {
    target: Target,
    pub(crate) group: String,
}

impl Kind {
    pub(crate) fn of(target: &Target) -> Self {
        Self { target: target.clone(), group: format!("{}.contract.test", target.label()) }
    }

    /// The definition with one version, `v1`, whose `spec` has this schema.
    pub(crate) fn crd(&self, spec: Value) -> Value {
        self.crd_of(json!([version("v1", true, spec)]))
    }

    pub(crate) fn crd_of(&self, versions: Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.crd_name()},
            "spec": {
                "group": self.group, "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": versions,
            },
        })
    }

    pub(crate) fn crd_name(&self) -> String {
        format!("widgets.{}", self.group)
    }

    pub(crate) fn crd_path(&self) -> String {
        format!("{CRDS}/{}", self.crd_name())
    }

    /// Makes it and waits until it is served in `default`.
    pub(crate) async fn install(&self, crd: Value) {
        self.target.post(CRDS, crd).await.created();
        self.served().await;
    }

    /// As [`Kind::install`], of a schema of `spec`.
    pub(crate) async fn with_spec(&self, spec: Value) {
        self.install(self.crd(spec)).await;
    }

    pub(crate) async fn served(&self) {
        let path = self.crd_path();
        let served = self.target.until(&path, |crd| {
            let conditions = crd.at("/status/conditions");
            let conditions = conditions.as_array().cloned().unwrap_or_default();
            conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True")
        });
        let crd = served.await;
        for version in crd.at("/spec/versions").as_array().into_iter().flatten() {
            if version["served"] == true {
                let name = version["name"].as_str().unwrap_or_default();
                let list = format!("/apis/{}/{name}/widgets", self.group);
                self.target.until(&list, |answer| answer.code == 200).await;
            }
        }
    }

    /// The path of its objects in `namespace`.
    pub(crate) fn path(&self, namespace: &str) -> String {
        self.path_in("v1", namespace)
    }

    pub(crate) fn path_in(&self, version: &str, namespace: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{namespace}/widgets", self.group)
    }

    /// An object with this `spec`.
    pub(crate) fn object(&self, name: &str, spec: Value) -> Value {
        self.object_in("v1", name, spec)
    }

    pub(crate) fn object_in(&self, version: &str, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": format!("{}/{version}", self.group), "kind": "Widget",
            "metadata": {"name": name}, "spec": spec,
        })
    }
}

/// A version of a CRD, served; `spec` is the schema of its objects' `spec`.
pub(crate) fn version(name: &str, storage: bool, spec: Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": spec,
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    })
}

/// An object schema with these properties.
pub(crate) fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// A service account and a token of it.
pub(crate) async fn account(target: &Target, namespace: &str, name: &str) -> String {
    let path = core(namespace, "serviceaccounts");
    target.post(&path, json!({"metadata": {"name": name}})).await.created();
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = target.post(&format!("{path}/{name}/token"), request).await;
    answer.created()["status"]["token"].as_str().expect("a token comes with it").to_owned()
}
