//! Default values of built-in kinds that no schema tells.

use super::field::{each, set_default as set};
use super::pod;
use serde_json::{Value, json};

/// Fills in what is not said.
pub(super) fn apply(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("", "Namespace") => namespace(object),
        ("", "Secret") => {
            super::secret::merge_plain(object);
            set(object, "type", "Opaque");
        }
        ("", "Service") => super::service::default(object),
        ("", "Pod") => pod::default_pod(object),
        ("", "PodTemplate") => pod::default_template(object, "template"),
        ("", "Endpoints") => {
            for subset in each(object, "subsets") {
                each(subset, "ports").for_each(|port| set(port, "protocol", "TCP"));
            }
        }
        ("", "ReplicationController") => {
            set(object, "spec.replicas", 1);
            pod::default_template(object, "spec.template");
            let labels = object["spec"]["template"]["metadata"].get("labels").cloned();
            if let Some(labels) = labels {
                set(object, "spec.selector", labels.clone());
                set(object, "metadata.labels", labels);
            }
        }
        ("", "PersistentVolumeClaim") => set(object, "spec.volumeMode", "Filesystem"),
        ("", "PersistentVolume") => {
            set(object, "spec.volumeMode", "Filesystem");
            set(object, "spec.persistentVolumeReclaimPolicy", "Retain");
        }
        ("discovery.k8s.io", "EndpointSlice") => {
            for port in each(object, "ports") {
                set(port, "name", "");
                set(port, "protocol", "TCP");
            }
        }
        ("apps", _) => workload(kind, object),
        ("batch", "Job") => job(object, "spec"),
        ("batch", "CronJob") => {
            set(object, "spec.concurrencyPolicy", "Allow");
            set(object, "spec.suspend", false);
            set(object, "spec.successfulJobsHistoryLimit", 3);
            set(object, "spec.failedJobsHistoryLimit", 1);
            if let Some(template) = object.get_mut("spec").and_then(|spec| spec.get_mut("jobTemplate")) {
                job(template, "spec");
            }
        }
        ("rbac.authorization.k8s.io", _) => rbac(object),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("autoscaling", "HorizontalPodAutoscaler") => set(object, "spec.minReplicas", 1),
        ("storage.k8s.io", "StorageClass") => {
            set(object, "reclaimPolicy", "Delete");
            set(object, "volumeBindingMode", "Immediate");
        }
        ("scheduling.k8s.io", "PriorityClass") => set(object, "preemptionPolicy", "PreemptLowerPriority"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => super::definition::default(object),
        ("admissionregistration.k8s.io", _) => admission(kind, object),
        _ => {}
    }
}

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if !name.is_empty() {
        if !object["metadata"]["labels"].is_object() {
            object["metadata"]["labels"] = json!({});
        }
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
    }
}

fn workload(kind: &str, object: &mut Value) {
    pod::default_template(object, "spec.template");
    match kind {
        "Deployment" => {
            set(object, "spec.replicas", 1);
            set(object, "spec.revisionHistoryLimit", 10);
            set(object, "spec.progressDeadlineSeconds", 600);
            rolling(object, "strategy", &json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
        }
        "DaemonSet" => {
            set(object, "spec.revisionHistoryLimit", 10);
            rolling(object, "updateStrategy", &json!({"maxUnavailable": 1, "maxSurge": 0}));
        }
        "StatefulSet" => {
            set(object, "spec.replicas", 1);
            set(object, "spec.revisionHistoryLimit", 10);
            set(object, "spec.podManagementPolicy", "OrderedReady");
            rolling(object, "updateStrategy", &json!({"partition": 0}));
            let retention = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
            set(object, "spec.persistentVolumeClaimRetentionPolicy", retention);
            for claim in each(object, "spec.volumeClaimTemplates") {
                set(claim, "kind", "PersistentVolumeClaim");
                set(claim, "apiVersion", "v1");
                set(claim, "spec.volumeMode", "Filesystem");
                set(claim, "status", json!({"phase": "Pending"}));
            }
        }
        "ReplicaSet" => set(object, "spec.replicas", 1),
        _ => {}
    }
}

/// How pods are replaced: one after the other unless it is said.
fn rolling(object: &mut Value, field: &str, parameters: &Value) {
    if !object["spec"].is_object() {
        return;
    }
    set(object, &format!("spec.{field}"), json!({}));
    let strategy = &mut object["spec"][field];
    set(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        set(strategy, "rollingUpdate", json!({}));
        for (name, value) in parameters.as_object().into_iter().flatten() {
            set(&mut strategy["rollingUpdate"], name, value.clone());
        }
    }
}

fn job(object: &mut Value, spec: &str) {
    pod::default_template(object, &format!("{spec}.template"));
    let Some(spec) = object.get_mut(spec) else { return };
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    set(spec, "backoffLimit", 6);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "podReplacementPolicy", "TerminatingOrFailed");
}

fn rbac(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    set(object, "roleRef.apiGroup", GROUP);
    for subject in each(object, "subjects") {
        if let Some("User" | "Group") = subject["kind"].as_str() {
            set(subject, "apiGroup", GROUP);
        }
    }
}

fn network_policy(object: &mut Value) {
    for direction in ["spec.ingress", "spec.egress"] {
        for rule in each(object, direction) {
            each(rule, "ports").for_each(|port| set(port, "protocol", "TCP"));
        }
    }
    let mut types = vec!["Ingress"];
    if object["spec"]["egress"].as_array().is_some_and(|rules| !rules.is_empty()) {
        types.push("Egress");
    }
    set(object, "spec.policyTypes", types);
}

fn admission(kind: &str, object: &mut Value) {
    let constraints = |spec: &mut Value, field: &str| {
        set(spec, &format!("{field}.namespaceSelector"), json!({}));
        set(spec, &format!("{field}.objectSelector"), json!({}));
        set(spec, &format!("{field}.matchPolicy"), "Equivalent");
        for list in ["resourceRules", "excludeResourceRules"] {
            each(spec, &format!("{field}.{list}")).for_each(|rule| set(rule, "scope", "*"));
        }
    };
    match kind {
        "ValidatingAdmissionPolicy" => {
            set(object, "spec.failurePolicy", "Fail");
            if let Some(spec) = object.get_mut("spec") {
                constraints(spec, "matchConstraints");
            }
        }
        "ValidatingAdmissionPolicyBinding" => {
            if let Some(spec) = object.get_mut("spec") {
                constraints(spec, "matchResources");
            }
        }
        _ => {
            for webhook in each(object, "webhooks") {
                set(webhook, "failurePolicy", "Fail");
                set(webhook, "matchPolicy", "Equivalent");
                set(webhook, "namespaceSelector", json!({}));
                set(webhook, "objectSelector", json!({}));
                set(webhook, "timeoutSeconds", 10);
                set(webhook, "clientConfig.service.port", 443);
                if kind == "MutatingWebhookConfiguration" {
                    set(webhook, "reinvocationPolicy", "Never");
                }
                each(webhook, "rules").for_each(|rule| set(rule, "scope", "*"));
            }
        }
    }
}
