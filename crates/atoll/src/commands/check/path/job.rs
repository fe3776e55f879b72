//! The probe's pod: a Job for a few seconds. It is deleted at the end, also when the command is interrupted; if the command dies, the
//! Job's own deadline ends it, and its TTL deletes it.

use std::net::IpAddr;
use std::time::Duration;

use atoll_api::names::label;
use atoll_hub::connect;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, LogParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::probe::LONGEST_OUTPUT;
use crate::signals;

/// How long the pod may take to start and to end; the image may have to be pulled.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a pod may run. It needs about three seconds.
const RUNS: u32 = 45;
/// After how many seconds a finished Job that was not deleted goes by itself.
const STAYS: u32 = 60;
const PAUSE: Duration = Duration::from_millis(100);

/// What came of it.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) text: String,
    /// The addresses of the pod.
    pub(super) from: Vec<IpAddr>,
}

/// Why nothing came of it.
#[derive(Debug)]
pub(super) enum NoOutput {
    /// This user lacks a right.
    Forbidden(String),
    /// Something else.
    Failed(String),
    /// The user ended the command.
    Interrupted,
}

/// What is needed in the namespace.
pub(super) const NEEDS: &str = "create and delete jobs.batch, list pods, get pods/log";

/// A name that no other run has.
pub(super) fn name() -> String {
    let mut bytes = [0; 5];
    // Without randomness the API refuses a second one of the name, which says enough.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    let suffix: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("atoll-check-{suffix}")
}

/// The labels of the pod.
pub(super) fn labels(name: &str) -> std::collections::BTreeMap<String, String> {
    [(label::CHECK.to_owned(), name.to_owned())].into()
}

/// Runs the script in a pod of the namespace.
pub(super) async fn run(
    client: &Client,
    namespace: &str,
    name: &str,
    image: &str,
    script: &str,
) -> Result<Output, NoOutput> {
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let stop = async {
        match signals::shutdown() {
            Ok(stop) => stop.await,
            Err(_) => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        outcome = carry_out(client, &jobs, namespace, name, image, script) => outcome,
        () = stop => Err(NoOutput::Interrupted),
    };
    if !matches!(outcome, Err(NoOutput::Forbidden(_))) {
        // Should this fail, the Job goes by itself.
        let _ = tokio::time::timeout(Duration::from_secs(5), jobs.delete(name, &DeleteParams::background()))
            .await;
    }
    outcome
}

async fn carry_out(
    client: &Client,
    jobs: &Api<Job>,
    namespace: &str,
    name: &str,
    image: &str,
    script: &str,
) -> Result<Output, NoOutput> {
    let failed = |error: &kube::Error| match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
            NoOutput::Forbidden(connect::why(error))
        }
        _ => NoOutput::Failed(connect::why(error)),
    };
    let job: Job = serde_json::from_value(manifest(name, image, script))
        .map_err(|error| NoOutput::Failed(error.to_string()))?;
    jobs.create(&PostParams::default(), &job).await.map_err(|error| failed(&error))?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let ours = ListParams::default().labels(&format!("{}={name}", label::CHECK));
    let begun = Instant::now();
    let pod = loop {
        let listed = pods.list(&ours).await.map_err(|error| failed(&error))?;
        let pod = listed.items.into_iter().next();
        let phase = pod.as_ref().and_then(|pod| pod.status.as_ref()?.phase.clone()).unwrap_or_default();
        match (pod, phase.as_str()) {
            (Some(pod), "Succeeded" | "Failed") => break pod,
            (pod, _) if begun.elapsed() > PATIENCE => {
                let why = pod.as_ref().map_or(
                    "the Job has no pod; a quota or an admission policy may refuse it".to_owned(),
                    waits,
                );
                return Err(NoOutput::Failed(format!(
                    "the pod did not end within {} s: {why}",
                    PATIENCE.as_secs()
                )));
            }
            _ => tokio::time::sleep(PAUSE).await,
        }
    };
    let bound = i64::try_from(LONGEST_OUTPUT).unwrap_or(i64::MAX);
    let params = LogParams { limit_bytes: Some(bound), ..LogParams::default() };
    let text = pods.logs(&pod.name_any(), &params).await.map_err(|error| failed(&error))?;
    let ips = pod.status.and_then(|status| status.pod_ips).unwrap_or_default();
    Ok(Output { text, from: ips.iter().filter_map(|one| one.ip.parse().ok()).collect() })
}

/// What a pod that does not start waits for.
fn waits(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.unwrap_or_default();
    let waiting = containers.into_iter().find_map(|one| one.state?.waiting);
    let waiting =
        waiting.map(|one| [one.reason, one.message].into_iter().flatten().collect::<Vec<_>>().join(": "));
    let unscheduled = || {
        status
            .conditions
            .iter()
            .flatten()
            .find(|one| one.status == "False")
            .and_then(|one| one.message.clone())
    };
    waiting.or_else(unscheduled).or(status.phase).unwrap_or_else(|| "no status".to_owned())
}

/// The least that a pod can be: also where Pod Security is `restricted`.
fn manifest(name: &str, image: &str, script: &str) -> serde_json::Value {
    let labels = labels(name);
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": RUNS, "ttlSecondsAfterFinished": STAYS,
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "restartPolicy": "Never", "automountServiceAccountToken": false, "enableServiceLinks": false,
                    "terminationGracePeriodSeconds": 1,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "probe", "image": image, "command": ["sh", "-c", script],
                        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
                        "securityContext": {
                            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_ends_and_goes_by_itself_and_may_nothing() {
        let job: Job = serde_json::from_value(manifest("a", "busybox", "true")).unwrap();
        let spec = job.spec.unwrap();
        assert!(spec.active_deadline_seconds.is_some() && spec.ttl_seconds_after_finished.is_some());
        let pod = spec.template.spec.unwrap();
        assert_eq!(
            (pod.automount_service_account_token, pod.restart_policy.as_deref()),
            (Some(false), Some("Never"))
        );
        assert_eq!(
            pod.containers[0].security_context.as_ref().unwrap().allow_privilege_escalation,
            Some(false)
        );
    }

    #[test]
    fn a_pod_that_does_not_start_says_why() {
        let pod: Pod = serde_json::from_value(
            json!({"metadata": {}, "status": {"phase": "Pending", "containerStatuses": [{
            "name": "probe", "image": "x", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]}}),
        )
        .unwrap();
        assert_eq!(waits(&pod), "ErrImagePull: no such image");
    }
}
