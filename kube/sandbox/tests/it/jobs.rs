//! Jobs, with pods that end.

use crate::cluster::{Cluster, EXIT};
use serde_json::{Value, json};

const JOB: (&str, &str, &str) = ("batch/v1", "Job", "sum");

fn sum(exit: &str, spec: &Value) -> Value {
    let mut job = json!({"metadata": {"name": "sum"}, "spec": spec});
    job["spec"]["template"] = json!({"metadata": {"annotations": {EXIT: exit}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "web"}]}});
    job
}

fn is(job: &Value, kind: &str) -> bool {
    let all = job["status"]["conditions"].as_array();
    all.is_some_and(|all| all.iter().any(|one| one["type"] == kind && one["status"] == "True"))
}

#[tokio::test(start_paused = true)]
async fn a_job_completes_when_its_pods_succeed() {
    let cluster = Cluster::start().await;
    cluster.create("batch/v1", "Job", sum("0", &json!({"completions": 3, "parallelism": 2}))).await;
    let job = cluster.until(JOB, |job| is(job, "Complete")).await;
    assert_eq!(job["status"]["succeeded"], 3);
    let pods = cluster.pods().await;
    assert_eq!(pods.len(), 3);
    for pod in pods {
        assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], "sum");
        assert_eq!(pod["metadata"]["labels"]["batch.kubernetes.io/controller-uid"], job["metadata"]["uid"]);
    }
    cluster.delete("batch/v1", "Job", "sum").await;
    cluster.until_all(("v1", "Pod"), <[Value]>::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_when_its_pods_fail_too_often() {
    let cluster = Cluster::start().await;
    cluster.create("batch/v1", "Job", sum("1", &json!({"backoffLimit": 1}))).await;
    cluster.until(JOB, |job| job["status"]["failed"] == 1).await;
    // It waits before it tries again.
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let job = cluster.until(JOB, |job| is(job, "Failed")).await;
    assert_eq!(job["status"]["failed"], 2);
    assert_eq!(cluster.pods().await.len(), 2);
}
