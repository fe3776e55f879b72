//! Words for the tests of multi-cluster services: export, import, conditions, who answers.

use anyhow::{Context, ensure};
use atoll_lab::image::SERVE;
use atoll_lab::{Cluster, Deadline, until};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long the clusterset may take to come to terms. Far more than it needs: the machine may be busy.
pub(crate) const SOON: Duration = Duration::from_secs(30);

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("multicluster.x-k8s.io", "v1beta1", kind))
}

pub(crate) async fn imports(cluster: &Cluster, namespace: &str) -> atoll_lab::Result<Api<DynamicObject>> {
    Ok(Api::namespaced_with(cluster.client().await?, namespace, &resource("ServiceImport")))
}

pub(crate) async fn exports(cluster: &Cluster, namespace: &str) -> atoll_lab::Result<Api<DynamicObject>> {
    Ok(Api::namespaced_with(cluster.client().await?, namespace, &resource("ServiceExport")))
}

/// Makes a ServiceExport.
pub(crate) async fn export(cluster: &Cluster, namespace: &str, name: &str) -> atoll_lab::Result<()> {
    export_with(cluster, namespace, name, json!({})).await
}

/// Makes a ServiceExport with `spec`.
pub(crate) async fn export_with(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    spec: Value,
) -> atoll_lab::Result<()> {
    cluster
        .apply(&[json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        })])
        .await
}

/// Deletes a ServiceExport.
pub(crate) async fn unexport(cluster: &Cluster, namespace: &str, name: &str) -> anyhow::Result<()> {
    exports(cluster, namespace).await?.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// A Deployment `name` whose pods say their cluster and pod, over TCP and UDP.
pub(crate) fn deployment(cluster: &Cluster, namespace: &str, name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{
                    "name": "serve", "image": SERVE,
                    "args": [format!("--message={} {{{{env \"POD_NAME\"}}}}", cluster.name()), "--udp-port=8081"],
                    "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                }]},
            },
        },
    })
}

/// A dual-stack Service before [`deployment`], with `more` laid over its spec.
pub(crate) fn service(namespace: &str, name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "selector": {"app": name}, "ipFamilyPolicy": "PreferDualStack",
        "ports": [
            {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
            {"name": "udp", "port": 81, "targetPort": 8081, "protocol": "UDP"},
        ],
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec,
    })
}

/// Serves `name` with one pod.
pub(crate) async fn serve(cluster: &Cluster, namespace: &str, name: &str) -> atoll_lab::Result<()> {
    cluster.namespace(namespace).await?;
    cluster.apply(&[deployment(cluster, namespace, name, 1), service(namespace, name, &json!({}))]).await?;
    cluster.pods_ready(namespace, &format!("app={name}"), 1).await.map(drop)
}

/// Waits until the import is there and `content` with it.
pub(crate) async fn import_is(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    what: &str,
    content: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    let api = imports(cluster, namespace).await?;
    let what = format!("the import {name} in {}: {what}", cluster.name());
    Ok(until(Deadline::after(SOON, what), async || {
        Ok(match api.get_opt(name).await {
            Ok(Some(import)) if content(&import.data) => {
                let mut whole = import.data;
                whole["metadata"] = serde_json::to_value(import.metadata).unwrap_or_default();
                Ok(whole)
            }
            Ok(Some(import)) => Err(import.data.to_string()),
            Ok(None) => Err("there is none".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    })
    .await?)
}

/// Waits until there is no import, and neither a derived Service nor slices of it.
pub(crate) async fn nothing_is_imported(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> anyhow::Result<()> {
    let client = cluster.client().await?;
    let api = imports(cluster, namespace).await?;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    let services: Api<Service> = Api::namespaced(client, namespace);
    let ours = ListParams::default().labels(&format!("multicluster.kubernetes.io/service-name={name}"));
    let what = format!("{} holds nothing of {name}", cluster.name());
    Ok(until(Deadline::after(SOON, what), async || {
        let import = api.get_opt(name).await.map(|found| found.is_some());
        let slices = slices.list(&ours).await.map(|list| list.items.len());
        let derived = services.get_opt(&format!("derived-{name}")).await.map(|found| found.is_some());
        Ok(match (import, slices, derived) {
            (Ok(false), Ok(0), Ok(false)) => Ok(()),
            seen => Err(format!("import, slices, derived Service: {seen:?}")),
        })
    })
    .await?)
}

/// A condition of an export as `status/reason`, and its message.
pub(crate) fn condition(object: &Value, kind: &str) -> Option<(String, String)> {
    let found =
        object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)?;
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    Some((format!("{}/{}", text("status"), text("reason")), text("message")))
}

/// Waits until the export's condition is `want` (`True/Valid`, say) and returns its message.
pub(crate) async fn export_says(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    kind: &str,
    want: &str,
) -> anyhow::Result<String> {
    let api = exports(cluster, namespace).await?;
    let what = format!("the export {name} in {} says {kind} {want}", cluster.name());
    Ok(until(Deadline::after(SOON, what), async || {
        Ok(match api.get_opt(name).await {
            Ok(Some(export)) => match condition(&export.data, kind) {
                Some((is, message)) if is == want => Ok(message),
                seen => Err(format!("{seen:?}")),
            },
            Ok(None) => Err("there is none".to_owned()),
            Err(error) => Err(error.to_string()),
        })
    })
    .await?)
}

/// The import's addresses.
pub(crate) async fn addresses(cluster: &Cluster, namespace: &str, name: &str) -> anyhow::Result<Vec<String>> {
    let import = import_is(cluster, namespace, name, "it has addresses", |import| {
        import["spec"]["ips"].as_array().is_some_and(|ips| !ips.is_empty())
    })
    .await?;
    Ok(import["spec"]["ips"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|ip| ip.as_str().map(str::to_owned))
        .collect())
}

fn target(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// Waits until `from`'s pod `tools` gets an answer that begins with `by` from the imported service, over TCP
/// and UDP, on every address of the import.
pub(crate) async fn answered(from: &Cluster, namespace: &str, name: &str, by: &str) -> anyhow::Result<()> {
    for address in addresses(from, namespace, name).await? {
        for (flag, port) in [("--udp=false", 80), ("--udp=true", 81)] {
            let ask = format!("workload fetch {flag} --timeout=2s --address={}", target(&address, port));
            from.exec_until(namespace, "tools", &ask, |said| said.starts_with(by)).await?;
        }
    }
    Ok(())
}

/// Who answers `count` requests to the import's first address, by the first word of the answer.
pub(crate) async fn who_answers(
    from: &Cluster,
    namespace: &str,
    name: &str,
    count: u32,
) -> anyhow::Result<BTreeMap<String, u32>> {
    let addresses = addresses(from, namespace, name).await?;
    let address = target(addresses.first().context("an address")?, 80);
    let ask = format!(
        "for i in $(seq {count}); do workload fetch --timeout=2s --address={address} || echo nobody; done"
    );
    let said = from.exec(namespace, "tools", &["sh", "-c", &ask]).await?;
    let mut who = BTreeMap::new();
    for line in said.lines() {
        *who.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    ensure!(who.values().sum::<u32>() == count, "{who:?}");
    Ok(who)
}

/// Waits until `cluster` holds exactly `count` endpoint addresses of one family for `name` from all sources.
pub(crate) async fn endpoints_are(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    family: &str,
    count: usize,
) -> anyhow::Result<Vec<EndpointSlice>> {
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client().await?, namespace);
    let ours = ListParams::default().labels(&format!("multicluster.kubernetes.io/service-name={name}"));
    let what = format!("{} holds {count} endpoints of {name}", cluster.name());
    Ok(until(Deadline::after(SOON, what), async || {
        let list = match slices.list(&ours).await {
            Ok(list) => list.items,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let of_family: Vec<_> = list.into_iter().filter(|slice| slice.address_type == family).collect();
        let found: usize = of_family.iter().map(|slice| slice.endpoints.as_ref().map_or(0, Vec::len)).sum();
        Ok(if found == count { Ok(of_family) } else { Err(format!("{found}")) })
    })
    .await?)
}
