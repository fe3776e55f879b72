//! The oldest Kubernetes that is supported and the newest in one clusterset.

use crate::harness::{Outcome, Suite};
use crate::mcs::{addresses, endpoints_are, export, nothing_is_imported, unexport};
use anyhow::{Context, ensure};
use atoll_lab::clusterset::beside;
use atoll_lab::suite::name;
use atoll_lab::{Cluster, Lab, Progress, Spec};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn tests(suite: &mut Suite) {
    suite.long_test("the_oldest_supported_kubernetes_exports_and_imports", oldest);
}

fn service(name: &str) -> [Value; 2] {
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"ports": [{"name": "http", "port": 80}], "trafficDistribution": "PreferClose"},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": name}},
            "endpoints": [{"addresses": ["10.11.0.9"], "zone": "a", "nodeName": "one"}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }),
    ]
}

async fn derived(cluster: &Cluster) -> anyhow::Result<Service> {
    let services: Api<Service> = Api::namespaced(cluster.client().await?, "shop");
    let derived = ListParams::default().labels("multicluster.kubernetes.io/service-name");
    services.list(&derived).await?.items.pop().context("there is a derived Service")
}

async fn oldest() -> Outcome {
    let spec = Spec::api_only(&name("versions"), 2).with_oldest(2).with_bystander("hub");
    let lab = Lab::start(&spec, &Progress::to_stderr()).await?;
    let (newest, oldest) = (lab.member(1), lab.member(2));
    let version = oldest.client().await?.apiserver_version().await?;
    ensure!(version.minor == "33" && version.git_version.starts_with("v1.33."), "{version:?}");
    let (_atoll, _hub) = lab.clusterset(&beside(Path::new(env!("CARGO_BIN_EXE_lab")))).await?;
    for cluster in lab.clusters() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        cluster.apply(&[namespace]).await?;
    }
    for (from, to) in [(oldest, newest), (newest, oldest)] {
        let name = from.name();
        from.apply(&service(name)).await?;
        export(from, "shop", name).await?;
        endpoints_are(to, "shop", name, "IPv4", 1).await?;
        addresses(to, "shop", name).await?;
        unexport(from, "shop", name).await?;
        nothing_is_imported(to, "shop", name).await?;
    }
    // A value that only the newest knows: the oldest gets the nearest that it knows.
    let mut same_zone = service("zoned");
    same_zone[0]["spec"]["trafficDistribution"] = json!("PreferSameZone");
    newest.apply(&same_zone).await?;
    let refused = oldest.apply(&same_zone[..1]).await;
    ensure!(refused.is_err(), "the oldest knows PreferSameZone: this test shows nothing");
    export(newest, "shop", "zoned").await?;
    addresses(oldest, "shop", "zoned").await?;
    let of = |service: &Service| service.spec.as_ref().and_then(|spec| spec.traffic_distribution.clone());
    ensure!(of(&derived(newest).await?).as_deref() == Some("PreferSameZone"));
    let old = of(&derived(oldest).await?);
    ensure!(old.as_deref() == Some("PreferClose"), "{old:?}");
    lab.down()?;
    Ok(())
}
