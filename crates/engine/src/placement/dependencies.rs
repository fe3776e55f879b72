//! What a workload needs beside itself: `ConfigMap`s, Secrets, service accounts and claims that its pods name.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::{Kind, ObjectKey, group_of, pod_spec};

/// The objects that a template needs, all of them of its own namespace.
pub fn dependencies(template: &Value) -> BTreeSet<ObjectKey> {
    let mut found = Names::default();
    if let Some((_, pod)) = pod_spec(template) {
        found.of_pod(pod);
    }
    if group_of(template) == "networking.k8s.io" && template["kind"] == "Ingress" {
        list(&template["spec"]["tls"]).for_each(|tls| found.secret(&tls["secretName"]));
    }
    // The claims of a StatefulSet's own templates are made by its controller.
    let own: Vec<_> = list(&template["spec"]["volumeClaimTemplates"])
        .filter_map(|claim| claim["metadata"]["name"].as_str())
        .collect();
    let namespace = template["metadata"]["namespace"].as_str().unwrap_or_default();
    let key = |(kind, name): (&str, String)| ObjectKey {
        kind: Kind::new("v1", kind),
        namespace: namespace.to_owned(),
        name,
    };
    let found = found.0.into_iter();
    found.filter(|(kind, name)| *kind != CLAIM || !own.contains(&name.as_str())).map(key).collect()
}

const CLAIM: &str = "PersistentVolumeClaim";

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[derive(Default)]
struct Names(BTreeSet<(&'static str, String)>);

impl Names {
    fn add(&mut self, kind: &'static str, name: &Value) {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            self.0.insert((kind, name.to_owned()));
        }
    }

    fn secret(&mut self, name: &Value) {
        self.add("Secret", name);
    }

    fn config_map(&mut self, name: &Value) {
        self.add("ConfigMap", name);
    }

    fn of_pod(&mut self, pod: &Value) {
        if pod["serviceAccountName"] != "default" {
            self.add("ServiceAccount", &pod["serviceAccountName"]);
        }
        list(&pod["imagePullSecrets"]).for_each(|one| self.secret(&one["name"]));
        for kind in ["containers", "initContainers", "ephemeralContainers"] {
            for container in list(&pod[kind]) {
                for from in list(&container["envFrom"]) {
                    self.config_map(&from["configMapRef"]["name"]);
                    self.secret(&from["secretRef"]["name"]);
                }
                for variable in list(&container["env"]) {
                    self.config_map(&variable["valueFrom"]["configMapKeyRef"]["name"]);
                    self.secret(&variable["valueFrom"]["secretKeyRef"]["name"]);
                }
            }
        }
        for volume in list(&pod["volumes"]) {
            self.add(CLAIM, &volume["persistentVolumeClaim"]["claimName"]);
            self.source(volume, "secretName");
            for source in list(&volume["projected"]["sources"]) {
                self.source(source, "name");
            }
            for driver in ["azureFile", "cephfs", "csi", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"]
            {
                let of = &volume[driver];
                self.secret(&of["secretName"]);
                self.secret(&of["secretRef"]["name"]);
                self.secret(&of["nodePublishSecretRef"]["name"]);
            }
        }
    }

    fn source(&mut self, volume: &Value, secret_name: &str) {
        self.config_map(&volume["configMap"]["name"]);
        self.secret(&volume["secret"][secret_name]);
    }
}
