//! The examples in the sandbox and on real clusters: the same imports, derived Services, slices and conditions.

use crate::harness::{Outcome, Suite};
use crate::mcs::SOON;
use anyhow::{Context, ensure};
use atoll_lab::clusterset::beside;
use atoll_lab::{Deadline, Lab, client_of, until};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const NAMESPACE: &str = "examples";

pub(crate) fn tests(suite: &mut Suite) {
    suite.set_test("the_examples_do_the_same_in_the_sandbox", same);
}

/// `atoll up` in a directory of its own; removed when dropped.
struct Sandbox {
    binary: PathBuf,
    dir: tempfile::TempDir,
}

impl Sandbox {
    fn start() -> anyhow::Result<Self> {
        let binary = beside(Path::new(env!("CARGO_BIN_EXE_lab")));
        let sandbox = Self { binary, dir: tempfile::tempdir()? };
        let started = sandbox.atoll("up").args(["--detach", "--members", "3"]).output()?;
        ensure!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        Ok(sandbox)
    }

    fn atoll(&self, command: &str) -> Command {
        let mut atoll = Command::new(&self.binary);
        atoll.arg(command).arg("--dir").arg(self.dir.path());
        atoll
    }

    /// Clients of its three members.
    async fn clients(&self) -> anyhow::Result<Vec<Client>> {
        let mut clients = Vec::new();
        for member in ["member1", "member2", "member3"] {
            let file = self.dir.path().join("members").join(member).join("kubeconfig");
            clients.push(client_of(&std::fs::read_to_string(file)?).await?);
        }
        Ok(clients)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Err(error) = self.atoll("down").output() {
            eprintln!("cannot stop the sandbox: {error}");
        }
    }
}

async fn same(lab: &Lab) -> Outcome {
    let sandbox = Sandbox::start()?;
    let mut real = Vec::new();
    for cluster in lab.clusters() {
        real.push(cluster.client().await?);
    }
    let both = [real, sandbox.clients().await?];
    for clients in &both {
        for client in clients {
            put(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
                .await?;
        }
    }
    for (step, member, example) in [
        ("one exporter", 0, include_str!("../../../../examples/serve.yaml")),
        ("two exporters", 2, include_str!("../../../../examples/serve-withdraw.yaml")),
        ("a conflict", 2, include_str!("../../../../examples/serve-conflict.yaml")),
    ] {
        for clients in &both {
            for object in documents(example)? {
                put(&clients[member], &object).await?;
            }
        }
        let exporters = if member == 0 { 1 } else { 2 };
        until(Deadline::after(SOON * 2, format!("{step}: the same in both")), async || {
            let (real, sandbox) = (seen(&both[0]).await, seen(&both[1]).await);
            let (real, sandbox) = match (real, sandbox) {
                (Ok(real), Ok(sandbox)) => (real, sandbox),
                (real, sandbox) => return Ok(Err(format!("{real:?} {sandbox:?}"))),
            };
            // Two that have nothing yet are the same, too.
            if real[1]["slices"].as_array().map(Vec::len) != Some(exporters) || !settled(&real) {
                return Ok(Err(format!("not settled: {real:#}")));
            }
            Ok(if real == sandbox { Ok(()) } else { Err(format!("real {real:#}\nsandbox {sandbox:#}")) })
        })
        .await?;
    }
    for client in &both[0] {
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
        namespaces.delete(NAMESPACE, &Default::default()).await?;
    }
    Ok(())
}

/// Every imported slice has its two endpoints, and all are ready.
fn settled(seen: &Value) -> bool {
    let slices = seen
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|cluster| cluster["slices"].as_array().into_iter().flatten());
    let ready = |endpoint: &Value| endpoint["conditions"]["ready"] == true;
    slices.clone().count() > 0
        && slices.clone().all(|slice| {
            let endpoints = slice["endpoints"].as_array();
            endpoints.is_some_and(|endpoints| endpoints.len() == 2 && endpoints.iter().all(ready))
        })
}

fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    serde_saphyr::from_multiple::<Value>(text).context("the example is YAML")
}

fn api(client: &Client, api_version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match kind {
        "Namespace" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), NAMESPACE, &resource),
    }
}

async fn put(client: &Client, object: &Value) -> anyhow::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api = api(client, &text(&object["apiVersion"]), &text(&object["kind"]));
    let parameters = PatchParams::apply("examples").force();
    api.patch(&text(&object["metadata"]["name"]), &parameters, &Patch::Apply(object)).await?;
    Ok(())
}

/// What the product made in each cluster, without what differs from cluster to cluster: addresses, families, uids, times, names
/// that end at random.
async fn seen(clients: &[Client]) -> anyhow::Result<Value> {
    let mut all = Vec::new();
    for client in clients {
        let one = |value: Option<DynamicObject>, keep: &[&str]| {
            let object = value.map(|object| object.data).unwrap_or_default();
            Value::Object(
                keep.iter().map(|part| ((*part).to_owned(), plain(&object[*part]))).collect::<Map<_, _>>(),
            )
        };
        let mcs = "multicluster.x-k8s.io/v1beta1";
        let import = api(client, mcs, "ServiceImport").get_opt("serve").await?;
        let export = api(client, mcs, "ServiceExport").get_opt("serve").await?;
        let derived = api(client, "v1", "Service").get_opt("derived-serve").await?;
        let labels = ListParams::default().labels("multicluster.kubernetes.io/service-name=serve");
        let listed = api(client, "discovery.k8s.io/v1", "EndpointSlice").list(&labels).await?;
        let mut slices: Vec<Value> = Vec::new();
        for slice in listed.items {
            if slice.data["addressType"] != "IPv4" {
                continue;
            }
            let mut shown = plain(&slice.data);
            shown["labels"] = json!(slice.metadata.labels.map(|mut labels| {
                labels.retain(|key, _| !key.ends_with("hub"));
                labels
            }));
            slices.push(shown);
        }
        slices.sort_by_key(|slice| slice["labels"].to_string());
        all.push(json!({
            "import": one(import, &["spec", "status"]),
            "export": one(export, &["spec", "status"]),
            "derived": one(derived, &["spec"]),
            "slices": slices,
        }));
    }
    Ok(Value::Array(all))
}

/// Leaves out what is each cluster's own.
fn plain(value: &Value) -> Value {
    const OWN: [&str; 13] = [
        "zone",
        "ips",
        "ipFamilies",
        "ipFamilyPolicy",
        "clusterIP",
        "clusterIPs",
        "addresses",
        "nodeName",
        "targetRef",
        "lastTransitionTime",
        "observedGeneration",
        "uid",
        "metadata",
    ];
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !OWN.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), plain(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(plain).collect()),
        other => other.clone(),
    }
}
