//! Pods and pod templates.

use super::field::{each, set_default as set};
use serde_json::{Value, json};

/// A pod by itself.
pub(super) fn default_pod(object: &mut Value) {
    default_spec(object, "spec");
    if object["spec"].is_object() {
        set(object, "spec.enableServiceLinks", true);
        for list in ["spec.containers", "spec.initContainers"] {
            each(object, list).for_each(request_limits);
        }
    }
}

/// The pod that a workload makes.
pub(super) fn default_template(object: &mut Value, path: &str) {
    default_spec(object, &format!("{path}.spec"));
}

fn default_spec(object: &mut Value, path: &str) {
    let spec = path.split('.').try_fold(object, |value, step| value.get_mut(step));
    let Some(spec) = spec.filter(|spec| spec.is_object()) else { return };
    set(spec, "restartPolicy", "Always");
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "schedulerName", "default-scheduler");
    set(spec, "terminationGracePeriodSeconds", 30);
    set(spec, "securityContext", json!({}));
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        set(spec, "serviceAccount", account);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list).for_each(default_container);
    }
    each(spec, "volumes").for_each(default_volume);
}

fn default_container(container: &mut Value) {
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    let policy = pull_policy(container["image"].as_str().unwrap_or_default());
    set(container, "imagePullPolicy", policy);
    set(container, "resources", json!({}));
    for port in each(container, "ports") {
        set(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        set(variable, "valueFrom.fieldRef.apiVersion", "v1");
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) else { continue };
        set(probe, "timeoutSeconds", 1);
        set(probe, "periodSeconds", 10);
        set(probe, "successThreshold", 1);
        set(probe, "failureThreshold", 3);
        set(probe, "httpGet.path", "/");
        set(probe, "httpGet.scheme", "HTTP");
        set(probe, "grpc.service", "");
    }
    for hook in ["lifecycle.postStart", "lifecycle.preStop"] {
        set(container, &format!("{hook}.httpGet.path"), "/");
        set(container, &format!("{hook}.httpGet.scheme"), "HTTP");
    }
}

/// A limit without a request asks for as much.
fn request_limits(container: &mut Value) {
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (name, amount) in limits {
        let resources = &mut container["resources"];
        set(resources, "requests", json!({}));
        if let Some(requests) = resources["requests"].as_object_mut() {
            requests.entry(name).or_insert(amount);
        }
    }
}

fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let latest = !image.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    if latest { "Always" } else { "IfNotPresent" }
}

fn default_volume(volume: &mut Value) {
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        set(volume, &format!("{source}.defaultMode"), 0o644);
    }
    set(volume, "hostPath.type", "");
    let alone = volume.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key("name"));
    if alone {
        volume["emptyDir"] = json!({});
    }
}

/// A new pod waits for a scheduler.
pub(super) fn prepare_create(object: &mut Value) {
    object["status"] = json!({"phase": "Pending", "qosClass": quality(object)});
}

fn quality(object: &Value) -> &'static str {
    let containers = object["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let of = |container: &Value, which: &str, name: &str| container["resources"][which].get(name).cloned();
    let said = |container: &Value| {
        let any = |which: &str| ["cpu", "memory"].iter().any(|name| of(container, which, name).is_some());
        any("limits") || any("requests")
    };
    let guaranteed = |container: &Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = of(container, "limits", name);
            limit.is_some() && limit == of(container, "requests", name)
        })
    };
    match containers.as_slice() {
        all if !all.iter().any(said) => "BestEffort",
        all if all.iter().all(guaranteed) => "Guaranteed",
        _ => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_version_is_always_pulled() {
        for (image, want) in [
            ("web", "Always"),
            ("web:latest", "Always"),
            ("web:1", "IfNotPresent"),
            ("host:5000/web", "Always"),
            ("web@sha256:00", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), want, "{image}");
        }
    }
}
