//! Events and leases, and other kinds that are only kept.

use serde_json::{Value, json};

use crate::fixtures::{container, core, deployment, grouped};
use crate::suite::cases;
use crate::target::Target;

cases! {
    an_event_is_kept,
    an_event_must_be_of_its_namespace,
    an_event_is_seen_in_both_groups,
    a_new_event_needs_its_fields,
    a_lease_is_kept,
    a_lease_is_taken_with_its_version,
    a_lease_needs_sane_durations,
    times_have_microseconds,
    a_deployment_is_filled_in,
    a_deployment_needs_a_fitting_selector,
    a_deployment_needs_containers,
    a_job_is_kept,
    a_cron_job_needs_a_schedule,
    a_stateful_set_is_kept,
    a_replica_set_scales,
    a_deployment_scales,
    a_network_policy_is_kept,
    an_ingress_is_kept,
    a_quota_is_kept,
    a_claim_is_kept,
    a_node_is_kept,
    a_new_node_brings_its_status,
    a_pod_template_is_kept,
    a_disruption_budget_is_kept,
    an_autoscaler_is_kept,
    a_priority_class_is_kept,
    a_storage_class_is_kept,
}

fn event(ns: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "Tested", "message": "it was", "type": "Normal",
        "involvedObject": {"kind": "ConfigMap", "namespace": ns, "name": "a"}, "source": {"component": "tests"}, "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    })
}

async fn an_event_is_kept(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&core(&ns, "events"), event(&ns)).await;
    answer.created();
    answer.has("/reason", "Tested").has("/count", 1).has("/eventTime", Value::Null);
    api.merge(&format!("{}/e", core(&ns, "events")), json!({"count": 2})).await.has("/count", 2);
}

async fn an_event_must_be_of_its_namespace(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&core(&ns, "events"), event("default")).await;
    answer.refused(422, "Invalid", "Event \"e\" is invalid: involvedObject.namespace: Invalid value: \"default\": does not match event.namespace");
}

async fn an_event_is_seen_in_both_groups(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&core(&ns, "events"), event(&ns)).await;
    let answer = api.get(&format!("{}/e", grouped("events.k8s.io/v1", &ns, "events"))).await;
    answer.ok();
    answer.has("/apiVersion", "events.k8s.io/v1").has("/metadata/uid", made.at("/metadata/uid"));
    answer
        .has("/note", "it was")
        .has("/regarding/name", "a")
        .has("/deprecatedCount", 1)
        .has("/deprecatedSource/component", "tests");
}

async fn a_new_event_needs_its_fields(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("events.k8s.io/v1", &ns, "events");
    let body = json!({"metadata": {"name": "n"}, "eventTime": "2026-01-01T00:00:00.123456Z", "regarding": {"kind": "ConfigMap", "namespace": ns, "name": "a"}});
    let answer = api.post(&path, body.clone()).await;
    answer.refused_with(422, "Invalid", "reportingController: Required value");
    let whole = crate::fixtures::with(
        body,
        json!({"reportingController": "example.com/tests", "reportingInstance": "one", "action": "Test", "reason": "Tested", "type": "Normal", "note": "n"}),
    );
    let answer = api.post(&path, whole).await;
    answer.created();
    answer.has("/eventTime", "2026-01-01T00:00:00.123456Z");
}

fn lease(spec: Value) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec})
}

fn leases(ns: &str) -> String {
    grouped("coordination.k8s.io/v1", ns, "leases")
}

async fn a_lease_is_kept(api: Target) {
    let ns = api.namespace().await;
    let spec = json!({"holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:01.500000Z", "leaseTransitions": 1});
    let answer = api.post(&leases(&ns), lease(spec.clone())).await;
    answer.created();
    answer.has("/spec", spec);
}

async fn a_lease_is_taken_with_its_version(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&leases(&ns), lease(json!({"holderIdentity": "one"}))).await;
    let path = format!("{}/l", leases(&ns));
    let take = |who: &str| {
        let mut body = made.body.clone();
        body["spec"]["holderIdentity"] = json!(who);
        body
    };
    api.put(&path, take("two")).await.ok();
    api.put(&path, take("three")).await.is(409);
    api.get(&path).await.has("/spec/holderIdentity", "two");
}

async fn a_lease_needs_sane_durations(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&leases(&ns), lease(json!({"leaseDurationSeconds": 0}))).await;
    answer.refused(422, "Invalid", "Lease.coordination.k8s.io \"l\" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0");
    let answer = api.post(&leases(&ns), lease(json!({"leaseTransitions": -1}))).await;
    answer.refused_with(
        422,
        "Invalid",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    );
}

async fn times_have_microseconds(api: Target) {
    let ns = api.namespace().await;
    let answer =
        api.post(&leases(&ns), lease(json!({"renewTime": "2026-01-01T01:00:00.500000+01:00"}))).await;
    answer.has("/spec/renewTime", "2026-01-01T00:00:00.500000Z");
    let answer = api.post(&leases(&ns), lease(json!({"renewTime": "yesterday"}))).await;
    answer.refused_with(
        400,
        "BadRequest",
        "Lease in version \"v1\" cannot be handled as a Lease: parsing time \"yesterday\"",
    );
}

async fn a_deployment_is_filled_in(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}},
    }});
    let answer = api.post(&grouped("apps/v1", &ns, "deployments"), body).await;
    answer.created();
    let mut want = deployment(
        "d",
        json!([crate::fixtures::with(
            container("c", "i"),
            json!({"imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "TCP"}]})
        )]),
    );
    let differences = crate::recording::differences(&want["spec"].take(), &answer.at("/spec"));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

async fn a_deployment_needs_a_fitting_selector(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let mut body = deployment("d", json!([container("c", "i:1")]));
    body["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let answer = api.post(&path, body).await;
    answer.refused_with(422, "Invalid", "spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template `labels`");
}

async fn a_deployment_needs_containers(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let answer = api.post(&path, deployment("d", json!([]))).await;
    answer.refused(
        422,
        "Invalid",
        "Deployment.apps \"d\" is invalid: spec.template.spec.containers: Required value",
    );
    let answer = api.post(&path, deployment("d", json!([{"name": "c"}]))).await;
    answer.refused_with(422, "Invalid", "spec.template.spec.containers[0].image: Required value");
}

async fn a_job_is_kept(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "j"}, "spec": {"suspend": true, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    let answer = api.post(&grouped("batch/v1", &ns, "jobs"), body).await;
    answer.created();
    answer.has("/spec/suspend", true).has("/spec/template/spec/containers/0/name", "c");
}

async fn a_cron_job_needs_a_schedule(api: Target) {
    let ns = api.namespace().await;
    let body = |schedule: &str| json!({"metadata": {"name": "j"}, "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}});
    api.post(&grouped("batch/v1", &ns, "cronjobs"), body("*/5 * * * *")).await.created();
    let answer = api.post(&grouped("batch/v1", &ns, "cronjobs"), body("")).await;
    assert!(matches!(answer.code, 409 | 422), "{answer}");
}

async fn a_stateful_set_is_kept(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "statefulsets");
    let body = json!({"metadata": {"name": "s"}, "spec": {"serviceName": "s", "selector": {"matchLabels": {"app": "s"}}, "template": {"metadata": {"labels": {"app": "s"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    api.post(&path, body).await.created();
    api.get(&format!("{path}/s")).await.has("/spec/serviceName", "s");
}

async fn a_replica_set_scales(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "replicasets");
    let body = json!({"metadata": {"name": "r"}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "r"}}, "template": {"metadata": {"labels": {"app": "r"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    api.post(&path, body).await.created();
    let scale = api.get(&format!("{path}/r/scale")).await;
    scale.has("/kind", "Scale").has("/spec/replicas", 2).has("/status/selector", "app=r");
}

async fn a_deployment_scales(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let made = api.post(&path, deployment("d", json!([container("c", "i:1")]))).await;
    let scale = api.get(&format!("{path}/d/scale")).await;
    scale
        .has("/apiVersion", "autoscaling/v1")
        .has("/spec/replicas", 1)
        .has("/status", json!({"replicas": 0, "selector": "app=d"}));
    scale.has("/metadata/name", "d").has("/metadata/uid", made.at("/metadata/uid"));
    let mut body = scale.body.clone();
    body["spec"]["replicas"] = json!(7);
    api.put(&format!("{path}/d/scale"), body).await.has("/spec/replicas", 7);
    api.get(&format!("{path}/d")).await.has("/spec/replicas", 7).has("/metadata/generation", 2);
    let answer = api.merge(&format!("{path}/d/scale"), json!({"spec": {"replicas": -1}})).await;
    answer.refused_with(
        422,
        "Invalid",
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    );
}

async fn kept(api: &Target, path: &str, body: Value) {
    let spec = body["spec"].clone();
    let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    api.post(path, body).await.created();
    let got = api.get(&format!("{path}/{name}")).await;
    got.ok();
    // Whatever the server adds, what was said is there.
    let lost: Vec<_> = crate::recording::differences(&spec, &got.at("/spec"))
        .into_iter()
        .filter(|line| !line.contains("too much"))
        .collect();
    assert!(lost.is_empty(), "{}", lost.join("\n"));
    api.delete(&format!("{path}/{name}")).await.ok();
}

async fn a_network_policy_is_kept(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "n"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]}});
    kept(&api, &grouped("networking.k8s.io/v1", &ns, "networkpolicies"), body).await;
}

async fn an_ingress_is_kept(api: Target) {
    let ns = api.namespace().await;
    let rule = json!({"host": "example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}});
    kept(
        &api,
        &grouped("networking.k8s.io/v1", &ns, "ingresses"),
        json!({"metadata": {"name": "i"}, "spec": {"rules": [rule]}}),
    )
    .await;
}

async fn a_quota_is_kept(api: Target) {
    let ns = api.namespace().await;
    // Of what no case counts.
    kept(
        &api,
        &core(&ns, "resourcequotas"),
        json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "10", "requests.cpu": "4"}}}),
    )
    .await;
    let range =
        json!({"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}});
    kept(&api, &core(&ns, "limitranges"), range).await;
}

async fn a_claim_is_kept(api: Target) {
    let ns = api.namespace().await;
    let path = core(&ns, "persistentvolumeclaims");
    let body = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}});
    let answer = api.post(&path, body).await;
    answer.created();
    answer.has("/spec/resources/requests/storage", "1Gi").has("/status/phase", "Pending");
}

async fn a_node_is_kept(api: Target) {
    let name = api.label();
    let answer = api.post("/api/v1/nodes", json!({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}})).await;
    answer.created();
    answer.has("/spec/podCIDR", "10.0.0.0/24");
    let status =
        json!({"status": {"capacity": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}});
    api.merge(&format!("/api/v1/nodes/{name}/status"), status).await.has("/status/capacity/cpu", "4");
    api.delete(&format!("/api/v1/nodes/{name}")).await.ok();
}

async fn a_pod_template_is_kept(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "t"}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}});
    let answer = api.post(&core(&ns, "podtemplates"), body).await;
    answer.created();
    answer.has("/template/spec/containers/0/image", "i");
}

async fn a_disruption_budget_is_kept(api: Target) {
    let ns = api.namespace().await;
    kept(&api, &grouped("policy/v1", &ns, "poddisruptionbudgets"), json!({"metadata": {"name": "p"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}})).await;
}

async fn an_autoscaler_is_kept(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "h"}, "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "minReplicas": 1, "maxReplicas": 5, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
    kept(&api, &grouped("autoscaling/v2", &ns, "horizontalpodautoscalers"), body).await;
}

async fn a_new_node_brings_its_status(api: Target) {
    let name = api.label();
    let addresses = json!([{"type": "InternalIP", "address": "192.168.7.7"}]);
    let node = json!({"metadata": {"name": name}, "status": {"addresses": addresses}});
    let answer = api.post("/api/v1/nodes", node).await;
    answer.created();
    answer.has("/status/addresses/0/address", "192.168.7.7");
    api.delete(&format!("/api/v1/nodes/{name}")).await.ok();
}

async fn a_priority_class_is_kept(api: Target) {
    let (name, path) = (api.label(), "/apis/scheduling.k8s.io/v1/priorityclasses");
    api.post(path, json!({"metadata": {"name": name}, "value": 100, "description": "d"}))
        .await
        .has("/value", 100)
        .has("/preemptionPolicy", "PreemptLowerPriority");
    let answer = api.merge(&format!("{path}/{name}"), json!({"value": 200})).await;
    answer.refused_with(422, "Invalid", "value: Forbidden: may not be changed in an update.");
    api.delete(&format!("{path}/{name}")).await.ok();
}

async fn a_storage_class_is_kept(api: Target) {
    let (name, path) = (api.label(), "/apis/storage.k8s.io/v1/storageclasses");
    let answer = api.post(path, json!({"metadata": {"name": name}, "provisioner": "example.com/none"})).await;
    answer.created();
    answer.has("/reclaimPolicy", "Delete").has("/volumeBindingMode", "Immediate");
    api.delete(&format!("{path}/{name}")).await.ok();
}
