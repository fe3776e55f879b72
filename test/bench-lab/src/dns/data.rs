//! The objects that both servers answer from, and questions about them.

use atoll_api::types::ServiceImport;
use atoll_lab::Cluster;
use atoll_lab::naming::ZONE;
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::path::PathBuf;

/// How many endpoints a headless service has: an answer that still fits a datagram.
pub(super) const ENDPOINTS: usize = 50;
pub(super) const NAMESPACE: &str = "bench";
const IN_FLIGHT: usize = 16;

/// A file of questions for dnsperf.
pub(super) struct Questions {
    pub(super) what: &'static str,
    pub(super) file: PathBuf,
    /// One of them, and how many records its answer has.
    pub(super) example: String,
    pub(super) records: usize,
}

pub(super) struct Data {
    pub(super) cluster_set_ip: Questions,
    pub(super) headless: Questions,
}

pub(super) fn headless_name(number: usize) -> String {
    format!("headless-{number}")
}

/// The slice of a headless service, with `last` as the last byte of its last endpoint.
pub(super) fn headless_slice(number: usize, last: usize) -> Value {
    let hosts = (1..ENDPOINTS).chain([last]);
    let addresses: Vec<_> =
        hosts.map(|host| format!("10.{}.{}.{host}", 60 + number / 250, number % 250)).collect();
    slice(&headless_name(number), &addresses)
}

fn slice(service: &str, addresses: &[String]) -> Value {
    let endpoints: Vec<_> = addresses
        .iter()
        .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}))
        .collect();
    json!({
        "metadata": {"name": service, "namespace": NAMESPACE, "labels": {
            "multicluster.kubernetes.io/service-name": service,
            "multicluster.kubernetes.io/source-cluster": "paris",
            "kubernetes.io/service-name": format!("derived-{service}"),
        }},
        "addressType": "IPv4", "ports": [{"name": "http", "protocol": "TCP", "port": 8080}], "endpoints": endpoints,
    })
}

/// Makes `services` imports with their slices, a tenth of them headless.
pub(super) async fn make(cluster: &Cluster, services: usize) -> anyhow::Result<Data> {
    let client = cluster.client().await?;
    let create = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&create, &serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?).await?;
    let imports: Api<ServiceImport> = Api::namespaced(client.clone(), NAMESPACE);
    let slices: Api<EndpointSlice> = Api::namespaced(client, NAMESPACE);
    let headless = services / 10;
    let made = (0..services).map(async |number| {
        let (name, kind, ips, endpoints) = if number < headless {
            (headless_name(number), "Headless", Vec::new(), headless_slice(number, ENDPOINTS))
        } else {
            let name = format!("web-{number}");
            let ip = format!("10.111.{}.{}", number / 250, number % 250 + 1);
            let endpoints = [1, 2].map(|host| format!("10.70.{}.{}", number % 250, number / 250 * 2 + host));
            (name.clone(), "ClusterSetIP", vec![ip], slice(&name, &endpoints))
        };
        let import = json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"type": kind, "ips": ips, "ipFamilies": ["IPv4"],
                "ports": [{"name": "http", "protocol": "TCP", "port": 80}]},
        });
        imports.create(&create, &serde_json::from_value(import)?).await?;
        slices.create(&create, &serde_json::from_value(endpoints)?).await?;
        anyhow::Ok(())
    });
    stream::iter(made).buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
    let full = |name: &str| format!("{name}.{NAMESPACE}.svc.{ZONE}");
    let questions = |what, file: &str, names: Vec<String>, records| -> anyhow::Result<Questions> {
        let file = cluster.dir().join(file);
        std::fs::write(&file, names.iter().map(|name| format!("{} A\n", full(name))).collect::<String>())?;
        Ok(Questions { what, file, example: full(&names[0]), records })
    };
    Ok(Data {
        cluster_set_ip: questions(
            "ClusterSetIP",
            "questions-web",
            (headless..services).map(|number| format!("web-{number}")).collect(),
            1,
        )?,
        headless: questions(
            "50 endpoints",
            "questions-headless",
            (0..headless).map(headless_name).collect(),
            ENDPOINTS,
        )?,
    })
}
