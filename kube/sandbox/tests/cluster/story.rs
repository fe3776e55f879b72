//! The story: workloads come, change, get stuck, and shrink.

use crate::cluster::{EXIT, Objects, SICK};
use crate::portrait;
use serde_json::{Value, json};

/// A chapter's name, and how everything looked at its end.
pub(crate) type Chapter = (&'static str, Vec<Value>);

const DEPLOYMENT: (&str, &str, &str) = ("apps/v1", "Deployment", "web");
const STATEFUL: (&str, &str, &str) = ("apps/v1", "StatefulSet", "db");

fn template(app: &str, command: &[&str]) -> Value {
    let container = json!({"name": "main", "image": "nicolaka/netshoot:v0.15", "command": command,
        "ports": [{"name": "http", "containerPort": 8080}]});
    json!({"metadata": {"labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}})
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name, "labels": {"tier": "front"}}, "spec": spec})
}

/// Are so many pods of the present template there, and all available?
fn rolled_out(found: &Value) -> bool {
    let (wanted, status) = (&found["spec"]["replicas"], &found["status"]);
    status["observedGeneration"] == found["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|field| status[field] == *wanted)
        && status["terminatingReplicas"].as_i64().unwrap_or(0) == 0
        && status["currentRevision"] == status["updateRevision"]
}

fn says(found: &Value, kind: &str) -> bool {
    let all = found["status"]["conditions"].as_array();
    all.is_some_and(|all| all.iter().any(|one| one["type"] == kind && one["status"] == "True"))
}

fn progressed(found: &Value) -> bool {
    let all = found["status"]["conditions"].as_array();
    all.is_some_and(|all| all.iter().any(|one| one["reason"] == "NewReplicaSetAvailable"))
}

/// So many endpoints are there, of which so many are ready.
async fn endpoints(objects: &Objects, all: usize, ready: usize) {
    objects
        .until_all(("discovery.k8s.io/v1", "EndpointSlice"), |slices| {
            let own = slices.iter().filter(|slice| {
                slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
                    == "endpointslice-controller.k8s.io"
            });
            let found: Vec<&Value> =
                own.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten()).collect();
            found.len() == all
                && found.iter().filter(|one| one["conditions"]["ready"] == true).count() == ready
        })
        .await;
}

pub(crate) async fn tell(objects: &Objects) -> Vec<Chapter> {
    let mut chapters = Vec::new();
    come(objects).await;
    chapters.push(("workloads come", portrait::take(objects).await));
    change(objects).await;
    chapters.push(("templates change", portrait::take(objects).await));
    get_stuck(objects).await;
    chapters.push(("a rollout is stuck", portrait::take(objects).await));
    shrink(objects).await;
    chapters.push(("the way back, and fewer", portrait::take(objects).await));
    chapters
}

async fn come(objects: &Objects) {
    let web = json!({"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, "template": template("web", &["busybox", "sleep", "3600"])});
    let db = json!({"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "template": template("db", &["busybox", "sleep", "3600"])});
    let mut sum =
        json!({"completions": 2, "parallelism": 2, "template": template("sum", &["busybox", "true"])});
    sum["template"]["metadata"]["annotations"] = json!({EXIT: "0"});
    sum["template"]["spec"]["restartPolicy"] = "Never".into();
    let mut bad = json!({"backoffLimit": 0, "template": template("bad", &["busybox", "false"])});
    bad["template"]["metadata"]["annotations"] = json!({EXIT: "1"});
    bad["template"]["spec"]["restartPolicy"] = "Never".into();
    let ports = json!([{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "http"}]);
    for (name, spec) in [
        ("web", json!({"selector": {"app": "web"}, "ports": ports})),
        ("nobody", json!({"selector": {"app": "nobody"}, "ports": [{"port": 80}]})),
        ("db", json!({"clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 5432}]})),
    ] {
        objects.create("v1", "Service", service(name, &spec)).await;
    }
    let annotated = json!({"name": "web", "annotations": {"team": "front"}});
    objects.create("apps/v1", "Deployment", json!({"metadata": annotated, "spec": web})).await;
    objects.create("apps/v1", "StatefulSet", json!({"metadata": {"name": "db"}, "spec": db})).await;
    objects.create("batch/v1", "Job", json!({"metadata": {"name": "sum"}, "spec": sum})).await;
    objects.create("batch/v1", "Job", json!({"metadata": {"name": "bad"}, "spec": bad})).await;
    objects.until(DEPLOYMENT, |found| rolled_out(found) && progressed(found)).await;
    objects.until(STATEFUL, rolled_out).await;
    objects.until(("batch/v1", "Job", "sum"), |job| says(job, "Complete")).await;
    objects.until(("batch/v1", "Job", "bad"), |job| says(job, "Failed")).await;
    endpoints(objects, 5, 5).await;
}

async fn change(objects: &Objects) {
    for (kind, name) in [("Deployment", "web"), ("StatefulSet", "db")] {
        let changed = json!({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}});
        objects.patch("apps/v1", kind, name, changed).await;
    }
    objects.until(DEPLOYMENT, |found| rolled_out(found) && progressed(found)).await;
    objects.until(STATEFUL, rolled_out).await;
    objects.until_all(("v1", "Pod"), |all| all.len() == 5 + 3).await;
    endpoints(objects, 5, 5).await;
}

async fn get_stuck(objects: &Objects) {
    // A real kubelet asks; the tests' own reads the label.
    let probe = json!({"exec": {"command": ["busybox", "false"]}, "periodSeconds": 1});
    let mut sick = template("web", &["busybox", "sleep", "3600"]);
    sick["metadata"]["labels"][SICK] = "yes".into();
    sick["spec"]["containers"][0]["readinessProbe"] = probe;
    objects.patch("apps/v1", "Deployment", "web", json!({"spec": {"template": sick}})).await;
    objects.until(DEPLOYMENT, |found| found["status"]["updatedReplicas"] == 1).await;
    endpoints(objects, 6, 5).await;
    objects.until(DEPLOYMENT, |found| found["status"]["unavailableReplicas"] == 1).await;
}

async fn shrink(objects: &Objects) {
    let mut well = template("web", &["busybox", "sleep", "3600"]);
    well["metadata"]["labels"][SICK] = Value::Null;
    objects.patch("apps/v1", "Deployment", "web", json!({"spec": {"replicas": 2, "template": well}})).await;
    objects.patch("apps/v1", "StatefulSet", "db", json!({"spec": {"replicas": 1}})).await;
    objects.delete("v1", "Service", "nobody").await;
    objects.until(DEPLOYMENT, |found| rolled_out(found) && progressed(found)).await;
    objects.until(STATEFUL, |found| rolled_out(found) && found["status"]["replicas"] == 1).await;
    objects.until_all(("v1", "Pod"), |all| all.len() == 3 + 3).await;
    endpoints(objects, 3, 3).await;
}
