//! Objects as users and other tools write them can be read, and what we write has nothing in it that was not set.

use atoll_api::types::cluster::{Cluster, Quantity, SyncMode};
use atoll_api::types::service_import::ServiceImportType;
use atoll_api::types::{ClusterProperty, ServiceExport, ServiceImport, ServiceImportSpec};
use serde_json::json;

#[test]
fn export_without_spec_can_be_read() {
    for spec in ["", ", \"spec\": {}", ", \"spec\": null"] {
        let text = format!("{{\"metadata\": {{\"name\": \"web\"}}{spec}}}");
        let export: ServiceExport = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(export, ServiceExport::new("web", Default::default()));
    }
}

#[test]
fn import_and_property_without_spec_do_not_break_the_list_they_are_in() {
    let import: ServiceImport = serde_json::from_value(json!({ "metadata": { "name": "web" } })).unwrap();
    assert_eq!(import.spec, ServiceImportSpec::default());
    let property: ClusterProperty = serde_json::from_value(json!({ "metadata": { "name": "x" } })).unwrap();
    assert_eq!(property.spec.value, "");
}

#[test]
fn half_a_spec_is_still_refused() {
    let object = json!({ "metadata": {}, "spec": { "type": "Headless" } });
    let error = serde_json::from_value::<ServiceImport>(object).unwrap_err().to_string();
    assert!(error.contains("missing field `ports`"), "{error}");
}

#[test]
fn written_import_has_only_what_was_set() {
    let spec = ServiceImportSpec { type_: ServiceImportType::Headless, ..Default::default() };
    assert_eq!(
        serde_json::to_value(ServiceImport::new("web", spec)).unwrap(),
        json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1",
            "kind": "ServiceImport",
            "metadata": { "name": "web" },
            "spec": { "ports": [], "type": "Headless" },
        })
    );
}

#[test]
fn import_survives_reading_and_writing() {
    let object = json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1",
        "kind": "ServiceImport",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": {
            "ports": [{ "name": "http", "protocol": "TCP", "appProtocol": "http", "port": 80 }],
            "ips": ["10.0.0.1", "fd00::1"],
            "ipFamilies": ["IPv4", "IPv6"],
            "type": "ClusterSetIP",
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 10 } },
            "internalTrafficPolicy": "Cluster",
            "trafficDistribution": "PreferClose",
        },
        "status": { "clusters": [{ "cluster": "paris" }], "endpointSliceObjects": "Present" },
    });
    let import: ServiceImport = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(import).unwrap(), object);
}

#[test]
fn karmadas_cluster_can_be_read() {
    let cluster: Cluster = serde_saphyr::from_str(
        "
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: member1}
spec:
  syncMode: Push
  apiEndpoint: https://172.18.0.3:6443
  insecureSkipTLSVerification: true
  secretRef: {namespace: karmada-cluster, name: member1}
  proxyURL: socks5://proxy.example.com
  taints: [{key: cluster.karmada.io/not-ready, effect: NoSchedule, timeAdded: 2026-05-01T10:00:00Z}]
  resourceModels: [{grade: 0, ranges: [{name: memory, min: 0, max: 4Gi}, {name: storage, min: 0, max: 8589934592}]}]
",
    )
    .unwrap();
    assert_eq!(cluster.spec.sync_mode, SyncMode::Push);
    assert_eq!(cluster.spec.proxy_url.as_deref(), Some("socks5://proxy.example.com"));
    let ranges = &cluster.spec.resource_models[0].ranges;
    assert_eq!(ranges[0].min, Quantity::Number(0));
    assert_eq!(ranges[0].max, Quantity::Text("4Gi".to_owned()));
    assert_eq!(ranges[1].max, Quantity::Number(8_589_934_592));
}
