//! What a member runs, as objects: two servers, the least rights that they need, and the address that CoreDNS forwards to.

use atoll_api::names::kind::{about, mcs};
use serde_json::{Value, json};

use crate::options::Options;

/// The name of everything.
pub const NAME: &str = "atoll-dns";
/// The port of the Service.
pub const PORT: u16 = 53;

/// What is to be chosen.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The namespace for what is in one.
    pub namespace: String,
    /// The image with the program `atoll`.
    pub image: String,
    /// How many servers.
    pub replicas: u32,
}

impl Manifest {
    /// Everything, in the order in which it should be made.
    pub fn objects(&self) -> Vec<Value> {
        let mut objects = vec![json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace},
        })];
        objects.extend(self.rights());
        objects.extend([self.service(), self.deployment(), self.budget()]);
        objects
    }

    /// The account of the servers, and what it may: read, and nothing else.
    pub fn rights(&self) -> Vec<Value> {
        let rule = |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": ["list", "watch"]});
        vec![
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata()}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": NAME},
                "rules": [
                    rule(mcs::GROUP, mcs::SERVICE_IMPORTS),
                    rule("discovery.k8s.io", "endpointslices"),
                    rule(about::GROUP, about::CLUSTER_PROPERTIES),
                ],
            }),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": NAME},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
                "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": self.namespace}],
            }),
        ]
    }

    fn metadata(&self) -> Value {
        json!({"name": NAME, "namespace": self.namespace, "labels": labels()})
    }

    fn service(&self) -> Value {
        let port = |name: &str, protocol: &str| json!({"name": name, "protocol": protocol, "port": PORT, "targetPort": Options::PORT});
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": self.metadata(),
            "spec": {
                "selector": labels(), "ipFamilyPolicy": "PreferDualStack",
                "ports": [port("dns", "UDP"), port("dns-tcp", "TCP")],
            },
        })
    }

    fn deployment(&self) -> Value {
        let page = |path: &str| json!({"httpGet": {"path": path, "port": "metrics"}});
        let container = json!({
            "name": "dns", "image": self.image,
            "command": ["atoll", "dns"],
            "args": [
                format!("--listen=[::]:{}", Options::PORT),
                format!("--metrics-address=[::]:{}", Options::METRICS_PORT),
                "--log-format=json",
            ],
            "ports": [
                {"name": "dns", "protocol": "UDP", "containerPort": Options::PORT},
                {"name": "dns-tcp", "protocol": "TCP", "containerPort": Options::PORT},
                {"name": "metrics", "protocol": "TCP", "containerPort": Options::METRICS_PORT},
            ],
            "livenessProbe": page("/healthz"),
            "readinessProbe": page("/readyz"),
            "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
                "runAsUser": 65532, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
            },
        });
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": self.metadata(),
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels()},
                "template": {
                    "metadata": {"labels": labels()},
                    "spec": {
                        "serviceAccountName": NAME,
                        "priorityClassName": "system-cluster-critical",
                        "topologySpreadConstraints": [{
                            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": labels()},
                        }],
                        "containers": [container],
                    },
                },
            },
        })
    }

    fn budget(&self) -> Value {
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": self.metadata(),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels()}},
        })
    }
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME})
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Service;
    use k8s_openapi::api::rbac::v1::ClusterRole;

    use super::*;

    fn objects() -> Vec<Value> {
        Manifest { namespace: "atoll-system".into(), image: "atoll:test".into(), replicas: 2 }.objects()
    }

    fn one<T: serde::de::DeserializeOwned>(kind: &str) -> T {
        let found = objects().into_iter().find(|object| object["kind"] == kind);
        serde_json::from_value(found.unwrap()).unwrap()
    }

    #[test]
    fn the_servers_may_read_and_nothing_else() {
        let role: ClusterRole = one("ClusterRole");
        assert!(role.rules.unwrap().iter().all(|rule| rule.verbs == ["list", "watch"]));
    }

    #[test]
    fn the_service_leads_to_the_ports_that_are_listened_on() {
        let service = one::<Service>("Service").spec.unwrap();
        let pod = one::<Deployment>("Deployment").spec.unwrap().template.spec.unwrap();
        let open: Vec<_> = pod.containers[0]
            .ports
            .iter()
            .flatten()
            .map(|port| (port.protocol.clone(), port.container_port))
            .collect();
        for port in service.ports.unwrap() {
            assert_eq!(port.port, i32::from(PORT));
            assert!(open.contains(&(port.protocol, i32::from(Options::PORT))));
        }
        assert!(
            pod.containers[0].args.as_ref().unwrap().contains(&format!("--listen=[::]:{}", Options::PORT))
        );
    }
}
