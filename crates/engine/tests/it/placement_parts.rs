//! What of a template travels, what it needs, and what its copies say together.

use std::collections::BTreeMap;

use atoll_engine::placement::aggregate::{aggregate, healthy};
use atoll_engine::placement::dependencies::dependencies;
use atoll_engine::placement::prune::prune;
use serde_json::{Value, json};

use crate::placement::id;

#[test]
fn what_a_cluster_gave_out_stays_there() {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "uid": "u", "finalizers": ["x"], "ownerReferences": [{}], "creationTimestamp": "t",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration":
                "{\"spec\":{\"ports\":[{\"port\":80,\"nodePort\":30080},{\"port\":81}]}}"}},
        "spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"], "healthCheckNodePort": 31000,
            "ports": [{"port": 80, "nodePort": 30080}, {"port": 81, "nodePort": 30999}]},
        "status": {"loadBalancer": {}},
    });
    let want = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80, "nodePort": 30080}, {"port": 81}]},
    });
    assert_eq!(prune(&service), want, "a node port that the user asked for is kept");
    let headless = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"clusterIP": "None"}});
    assert_eq!(prune(&headless)["spec"]["clusterIP"], "None");
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
        "template": {"metadata": {"labels": {"controller-uid": "u", "app": "j"}}}}});
    assert_eq!(prune(&job)["spec"], json!({"template": {"metadata": {"labels": {"app": "j"}}}}));
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "type": "kubernetes.io/service-account-token", "data": {"token": "x"}});
    assert_eq!(prune(&token)["data"], Value::Null);
}

#[test]
fn a_pods_needs_are_found_wherever_they_stand() {
    let pod = json!({
        "serviceAccountName": "runner", "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "key"}}}]}],
        "containers": [{"envFrom": [{"configMapRef": {"name": "env"}}], "env": [{"valueFrom": {"configMapKeyRef": {"name": "one"}}}]}],
        "volumes": [{"configMap": {"name": "files"}}, {"secret": {"secretName": "certs"}},
            {"projected": {"sources": [{"configMap": {"name": "merged"}}, {"secret": {"name": "both"}}]}},
            {"persistentVolumeClaim": {"claimName": "disk"}}, {"persistentVolumeClaim": {"claimName": "data"}}],
    });
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"template": {"spec": pod}, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}});
    let found: Vec<String> =
        dependencies(&set).iter().map(|key| format!("{} {}", key.kind.kind, key.name)).collect();
    let want = [
        "ConfigMap env",
        "ConfigMap files",
        "ConfigMap merged",
        "ConfigMap one",
        "PersistentVolumeClaim disk",
        "Secret both",
        "Secret certs",
        "Secret key",
        "Secret pull",
        "ServiceAccount runner",
    ];
    assert_eq!(found, want);
    assert!(dependencies(&set).iter().all(|key| key.namespace == "shop"));
    assert!(
        dependencies(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}})).is_empty()
    );
}

#[test]
fn copies_speak_together() {
    let said =
        |statuses: [Value; 2]| [id("one"), id("two")].into_iter().zip(statuses).collect::<BTreeMap<_, _>>();
    let of = |api: &str, kind: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"generation": 4}});
    let sum = aggregate(
        &of("apps/v1", "Deployment"),
        &said([json!({"replicas": 2, "readyReplicas": 2}), json!({"replicas": 1})]),
    );
    let sum = sum.unwrap();
    assert_eq!(
        (&sum["replicas"], &sum["readyReplicas"], &sum["observedGeneration"]),
        (&json!(3), &json!(2), &json!(4))
    );

    let done = |at: &str| {
        json!({"succeeded": 1, "startTime": "2026-01-01T00:00:00Z", "completionTime": at,
        "conditions": [{"type": "Complete", "status": "True"}]})
    };
    let job = aggregate(
        &of("batch/v1", "Job"),
        &said([done("2026-01-01T00:01:00Z"), done("2026-01-01T00:02:00Z")]),
    )
    .unwrap();
    assert_eq!((&job["succeeded"], &job["completionTime"]), (&json!(2), &json!("2026-01-01T00:02:00Z")));
    let half = aggregate(&of("batch/v1", "Job"), &said([done("2026-01-01T00:01:00Z"), json!({"active": 1})]))
        .unwrap();
    assert_eq!(half.get("conditions"), None, "one of them is not done");

    let at = |ip: &str| json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
    let both = aggregate(&of("v1", "Service"), &said([at("192.0.2.1"), at("192.0.2.2")])).unwrap();
    assert_eq!(both["loadBalancer"]["ingress"], json!([{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]));
    assert_eq!(aggregate(&of("v1", "ConfigMap"), &said([json!({}), json!({})])), None);
}

#[test]
fn a_workload_is_healthy_when_all_its_replicas_are() {
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}});
    assert_eq!(healthy(&web, &json!({"availableReplicas": 2})), Some(true));
    assert_eq!(healthy(&web, &json!({"availableReplicas": 1})), Some(false));
    assert_eq!(healthy(&json!({"apiVersion": "v1", "kind": "ConfigMap"}), &Value::Null), None);
}
