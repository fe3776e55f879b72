//! What a member does to a cluster.

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_api::types::{ClusterProperty, ServiceExport, ServiceImport};
use atoll_link::Lease;
use atoll_member::{EnterError, LeaveError, Permit, enter, leave};
use k8s_openapi::api::core::v1::{Namespace, Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::clusters::{self, Clusters, Recorder, until};
use crate::hub::{self, Hub};

type Outcome = anyhow::Result<()>;

pub(crate) const NAMESPACE: &str = "shop";

pub(crate) struct Cluster {
    pub(crate) client: Client,
}

impl Cluster {
    pub(crate) async fn of(cluster: &clusters::Cluster) -> anyhow::Result<Self> {
        let client = cluster.client();
        let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
        match Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self { client })
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn create<K>(&self, object: Value) -> anyhow::Result<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
        K: serde::Serialize + serde::de::DeserializeOwned + Clone + std::fmt::Debug,
    {
        Ok(self.api::<K>().create(&PostParams::default(), &serde_json::from_value(object)?).await?)
    }

    pub(crate) async fn serve(&self, name: &str, address: &str) -> Outcome {
        self.create::<Service>(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
        }))
        .await?;
        self.create::<EndpointSlice>(slice(name, address)).await?;
        self.create::<ServiceExport>(json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "metadata": {"name": name},
            "spec": {"exportedLabels": {"team": "blue"}},
        }))
        .await?;
        Ok(())
    }

    pub(crate) async fn withdraw(&self, name: &str) -> Outcome {
        self.api::<ServiceExport>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The slices of a service that were imported here: name and first address.
    async fn imported(&self, name: &str) -> Result<Vec<EndpointSlice>, String> {
        let ours = format!("multicluster.kubernetes.io/service-name={name}");
        let list = self.api::<EndpointSlice>().list(&ListParams::default().labels(&ours)).await;
        list.map(|list| list.items).map_err(|error| error.to_string())
    }

    pub(crate) async fn addresses(&self, name: &str, want: &[&str]) -> Outcome {
        let what = format!("{name} has the addresses {want:?}");
        until(&what, async || {
            let mut found: Vec<String> = Vec::new();
            for slice in self.imported(name).await? {
                found.extend(slice.endpoints.unwrap_or_default().into_iter().flat_map(|e| e.addresses));
            }
            found.sort();
            if found == want { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await?;
        Ok(())
    }

    pub(crate) async fn ready_import(&self, name: &str) -> anyhow::Result<ServiceImport> {
        until(&format!("{name} is imported"), async || {
            let found = self.api::<ServiceImport>().get_opt(name).await.ok().flatten();
            let Some(import) = found else { return Err("no ServiceImport".to_owned()) };
            let conditions = import.status.clone().unwrap_or_default().conditions;
            let ready = conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True");
            if ready { Ok(import) } else { Err(format!("{conditions:?}")) }
        })
        .await
    }

    pub(crate) async fn is_gone(&self, name: &str) -> Outcome {
        until(&format!("nothing is left of {name}"), async || {
            let import = self.api::<ServiceImport>().get_opt(name).await.ok().flatten().is_some();
            let derived = self.api::<Service>().get_opt(&format!("derived-{name}")).await;
            let derived = derived.ok().flatten().is_some();
            let slices = self.imported(name).await?.len();
            let left = import || derived || slices > 0;
            if left { Err(format!("import {import}, Service {derived}, {slices} slices")) } else { Ok(()) }
        })
        .await?;
        Ok(())
    }
}

pub(crate) fn slice(name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": format!("{name}-1"), "labels": {"kubernetes.io/service-name": name}},
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}, "nodeName": "n1", "zone": "z1"}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    })
}

pub(crate) async fn two(lab: &Clusters) -> anyhow::Result<(Cluster, Cluster, Hub)> {
    let (a, b) = (Cluster::of(lab.member(1)).await?, Cluster::of(lab.member(2)).await?);
    Ok((a, b, Hub::start(lab).await?))
}

#[tokio::test]
async fn an_export_appears_elsewhere_and_goes_with_its_export() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    a.serve("web", "10.1.0.1").await?;
    for cluster in [&b, &a] {
        cluster.addresses("web", &["10.1.0.1"]).await?;
        let import = cluster.ready_import("web").await?;
        let derived = cluster.api::<Service>().get("derived-web").await?;
        let ips = derived.spec.clone().unwrap_or_default().cluster_ips.unwrap_or_default();
        ensure!(!ips.is_empty() && import.spec.ips == ips, "{:?} {ips:?}", import.spec);
        ensure!(import.labels().get("team").map(String::as_str) == Some("blue"), "{:?}", import.labels());
        ensure!(
            import.annotations().get("multicluster.kubernetes.io/derived-service").map(String::as_str)
                == Some("derived-web")
        );
        let status = import.status.unwrap_or_default();
        ensure!(status.clusters.len() == 1 && status.clusters[0].cluster == "member1", "{status:?}");
        let slices = cluster.imported("web").await.map_err(anyhow::Error::msg)?;
        let slice = &slices[0];
        ensure!(slice.labels().get("kubernetes.io/service-name").map(String::as_str) == Some("derived-web"));
        ensure!(
            slice.labels().get("multicluster.kubernetes.io/source-cluster").map(String::as_str)
                == Some("member1")
        );
        ensure!(
            slice.owner_references().iter().any(|owner| Some(&owner.uid) == derived.metadata.uid.as_ref())
        );
    }
    let remote =
        b.imported("web").await.map_err(anyhow::Error::msg)?[0].endpoints.clone().unwrap_or_default();
    ensure!(remote[0].node_name.is_none() && remote[0].zone.as_deref() == Some("z1"), "{remote:?}");
    let export = a.api::<ServiceExport>().get("web").await?;
    let conditions = export.status.unwrap_or_default().conditions;
    ensure!(conditions.iter().any(|c| c.type_ == "Ready" && c.reason == "Exported"), "{conditions:?}");
    a.withdraw("web").await?;
    a.is_gone("web").await?;
    b.is_gone("web").await?;
    ensure!(a.api::<Service>().get_opt("web").await?.is_some(), "the user's Service stays");
    hub.stop().await
}

/// The writes that a recorder saw in the namespace, but for those of the test itself.
pub(crate) fn writes(recorder: &Recorder) -> Vec<String> {
    let mut all = recorder.requests();
    all.retain(|noted| noted.namespace == NAMESPACE && !["get", "list", "watch"].contains(&noted.verb));
    all.iter().map(|noted| format!("{} {} {}", noted.verb, noted.resource, noted.name)).collect()
}

#[tokio::test]
async fn a_slice_change_costs_one_put_per_importer_and_nothing_else() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    let (cold_a, cold_b) = (lab.member(1).recorder(), lab.member(2).recorder());
    a.serve("one", "10.1.0.1").await?;
    for cluster in [&a, &b] {
        cluster.addresses("one", &["10.1.0.1"]).await?;
        cluster.ready_import("one").await?;
    }
    // Let the last status settle: conditions of the export come last.
    until("the export has conditions", async || {
        let export = a.api::<ServiceExport>().get("one").await.ok();
        let count = export.and_then(|e| e.status).map_or(0, |status| status.conditions.len());
        if count == 3 { Ok(()) } else { Err(format!("{count} conditions")) }
    })
    .await?;
    // Nothing waits for the one event, so it may come last.
    let events = |recorder: &Recorder| {
        writes(recorder).iter().filter(|write| write.starts_with("create events")).count()
    };
    until("the export has its event", async || match events(&cold_a) {
        1 => Ok(()),
        count => Err(format!("{count} events")),
    })
    .await?;
    let imports = [
        "create endpointslices imported-member1-one-1",
        "create serviceimports one",
        "create services derived-one",
        "update serviceimports/status one",
    ];
    let mut cold = writes(&cold_b);
    ensure!(cold.first().is_some_and(|first| first == "create services derived-one"), "{cold:#?}");
    cold.sort();
    ensure!(cold == imports, "an import costs four writes: {cold:#?}");
    let mut cold = writes(&cold_a);
    cold.retain(|write| {
        !write.ends_with(" one-1")
            && !["create services one", "create serviceexports one"].contains(&&**write)
    });
    cold.retain(|write| !imports.contains(&&**write) && !write.starts_with("create events"));
    ensure!(cold == ["patch serviceexports/status one"], "and an export one more: {cold:#?}");

    let (at_a, at_b) = (lab.member(1).recorder(), lab.member(2).recorder());
    let slices = a.api::<EndpointSlice>();
    let change = json!({"endpoints": [{"addresses": ["10.1.0.2"], "conditions": {"ready": true}}]});
    slices.patch("one-1", &PatchParams::default(), &Patch::Merge(change)).await?;
    for cluster in [&a, &b] {
        cluster.addresses("one", &["10.1.0.2"]).await?;
    }
    let put = "update endpointslices imported-member1-one-1".to_owned();
    let (seen_a, seen_b) = (writes(&at_a), writes(&at_b));
    ensure!(seen_b == [put.clone()], "the importer: {seen_b:#?}");
    ensure!(seen_a == ["patch endpointslices one-1".to_owned(), put], "the exporter: {seen_a:#?}");
    a.withdraw("one").await?;
    b.is_gone("one").await?;
    hub.stop().await
}

#[tokio::test]
async fn what_a_user_edits_or_deletes_is_repaired() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    a.serve("fix", "10.1.0.1").await?;
    b.addresses("fix", &["10.1.0.1"]).await?;
    let before = b.ready_import("fix").await?;

    let services = b.api::<Service>();
    let spoil = json!({"spec": {"selector": {"app": "x"}, "ports": [{"name": "more", "port": 99}]}});
    services.patch("derived-fix", &PatchParams::default(), &Patch::Merge(spoil)).await?;
    until("selector and ports are repaired", async || {
        let spec = services.get("derived-fix").await.ok().and_then(|s| s.spec).unwrap_or_default();
        let ports: Vec<_> = spec.ports.unwrap_or_default().iter().map(|port| port.port).collect();
        let good = spec.selector.is_none_or(|s| s.is_empty()) && ports == [80];
        if good { Ok(()) } else { Err(format!("{ports:?}")) }
    })
    .await?;

    let name = b.imported("fix").await.map_err(anyhow::Error::msg)?[0].name_any();
    b.api::<EndpointSlice>().delete(&name, &DeleteParams::default()).await?;
    b.addresses("fix", &["10.1.0.1"]).await?;
    let evil = json!({"endpoints": [{"addresses": ["6.6.6.6"]}]});
    b.api::<EndpointSlice>().patch(&name, &PatchParams::default(), &Patch::Merge(evil)).await?;
    b.addresses("fix", &["10.1.0.1"]).await?;
    let headless = json!({"metadata": {"labels": {"service.kubernetes.io/headless": ""}}});
    b.api::<EndpointSlice>().patch(&name, &PatchParams::default(), &Patch::Merge(headless)).await?;
    until("the headless label goes", async || {
        let has = b
            .imported("fix")
            .await?
            .iter()
            .any(|s| s.labels().contains_key("service.kubernetes.io/headless"));
        if has { Err("it is there".to_owned()) } else { Ok(()) }
    })
    .await?;

    let unlabelled = json!({"metadata": {"labels": {"multicluster.kubernetes.io/service-name": null}}});
    b.api::<EndpointSlice>().patch(&name, &PatchParams::default(), &Patch::Merge(unlabelled)).await?;
    b.addresses("fix", &["10.1.0.1"]).await?;

    let imports = b.api::<ServiceImport>();
    let theirs = "example.org/theirs";
    let spoil = json!({"metadata": {"finalizers": [theirs]}, "spec": {"ports": []}});
    imports.patch("fix", &PatchParams::default(), &Patch::Merge(spoil)).await?;
    until("the import has its port again", async || {
        let ports = imports.get("fix").await.map(|i| i.spec.ports.len()).unwrap_or_default();
        if ports == 1 { Ok(()) } else { Err(format!("{ports} ports")) }
    })
    .await?;
    ensure!(imports.get("fix").await?.finalizers() == [theirs], "the user's finalizer is gone");
    let free = json!({"metadata": {"finalizers": null}});
    imports.patch("fix", &PatchParams::default(), &Patch::Merge(free)).await?;

    services.delete("derived-fix", &DeleteParams::default()).await?;
    let old = before.spec.ips.clone();
    until("the Service is back with its address", async || {
        let service = services.get_opt("derived-fix").await.ok().flatten();
        let ips = service.and_then(|s| s.spec).and_then(|s| s.cluster_ips).unwrap_or_default();
        if ips == old { Ok(()) } else { Err(format!("{ips:?} {old:?}")) }
    })
    .await?;
    let after = b.ready_import("fix").await?;
    ensure!(after.spec.ips == before.spec.ips && after.uid() == before.uid());
    imports.delete("fix", &DeleteParams::default()).await?;
    b.ready_import("fix").await?;
    a.withdraw("fix").await?;
    b.is_gone("fix").await?;
    hub.stop().await
}

#[tokio::test]
async fn an_export_that_no_service_can_be_called_like_is_told_so() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, _, hub) = two(lab).await?;
    a.create::<ServiceExport>(json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "metadata": {"name": "a.b"},
    }))
    .await?;
    let exports = a.api::<ServiceExport>();
    until("a.b is told that it is no name of a Service", async || {
        let conditions = exports.get("a.b").await.ok().and_then(|e| e.status).unwrap_or_default().conditions;
        let told = conditions.iter().any(|c| c.type_ == "Valid" && c.status == "False");
        if told { Ok(()) } else { Err(format!("{conditions:?}")) }
    })
    .await?;
    exports.delete("a.b", &DeleteParams::default()).await?;
    hub.stop().await
}

#[tokio::test]
async fn the_addresses_of_nodes_are_told() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, _, hub) = two(lab).await?;
    let nodes: Api<Node> = Api::all(a.client.clone());
    let node = json!({
        "metadata": {"name": "told"},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.168.7.7"}, {"type": "Hostname", "address": "told"}]},
    });
    nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    let address = "192.168.7.7".parse()?;
    until("the hub knows the node's address", async || {
        let told = hub.said().nodes.clone();
        if told.contains(&address) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await?;
    nodes.delete("told", &DeleteParams::default()).await?;
    hub.stop().await
}

#[tokio::test]
async fn objects_of_others_are_left_alone() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    b.create::<Service>(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "derived-mine"},
        "spec": {"ports": [{"port": 1}]},
    }))
    .await?;
    b.create::<ServiceImport>(json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport", "metadata": {"name": "theirs"},
        "spec": {"type": "ClusterSetIP", "ports": []},
    }))
    .await?;
    let recorder = lab.member(2).recorder();
    a.serve("mine", "10.1.0.1").await?;
    a.serve("theirs", "10.1.0.9").await?;
    b.addresses("mine", &["10.1.0.1"]).await?;
    let import = b.ready_import("mine").await?;
    let name = import.annotations().get("multicluster.kubernetes.io/derived-service").cloned();
    ensure!(name.is_some_and(|name| name != "derived-mine"), "another name was chosen");
    until("the foreign import is a problem", async || {
        let said = hub.said();
        let told = said.problems.iter().any(|(_, problem)| problem.to_string().contains("shop/theirs"));
        if told { Ok(()) } else { Err(format!("{:?}", said.problems)) }
    })
    .await?;
    a.withdraw("mine").await?;
    a.withdraw("theirs").await?;
    a.is_gone("theirs").await?;
    until("our import is gone", async || {
        let left = b.api::<ServiceImport>().get_opt("mine").await.ok().flatten();
        if left.is_none() { Ok(()) } else { Err("it is there".to_owned()) }
    })
    .await?;
    let touched: Vec<String> = writes(&recorder)
        .into_iter()
        .filter(|write| write.ends_with(" derived-mine") || write.contains("theirs"))
        .collect();
    ensure!(touched.is_empty(), "{touched:?}");
    b.api::<Service>().delete("derived-mine", &DeleteParams::default()).await?;
    b.api::<ServiceImport>().delete("theirs", &DeleteParams::default()).await?;
    hub.stop().await
}

#[tokio::test]
async fn without_a_permit_nothing_is_written() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    let recorder = lab.member(2).recorder();
    hub.lend(Lease::Revoked);
    a.serve("held", "10.1.0.1").await?;
    until("the hub knows of the export", async || {
        let known = hub.said().exported.contains("held");
        if known { Ok(()) } else { Err("it does not".to_owned()) }
    })
    .await?;
    let seen = writes(&recorder);
    ensure!(seen.is_empty(), "{seen:?}");
    hub.lend(Lease::Held(Duration::from_secs(3600)));
    b.addresses("held", &["10.1.0.1"]).await?;
    a.withdraw("held").await?;
    b.is_gone("held").await?;
    hub.stop().await
}

#[tokio::test]
async fn a_restart_changes_nothing_and_leaving_takes_everything() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    a.serve("stays", "10.1.0.1").await?;
    for cluster in [&a, &b] {
        cluster.addresses("stays", &["10.1.0.1"]).await?;
        cluster.ready_import("stays").await?;
    }
    hub.stop().await?;
    let recorder = lab.member(2).recorder();
    let hub = Hub::start(lab).await?;
    a.serve("probe", "10.1.0.3").await?;
    b.addresses("probe", &["10.1.0.3"]).await?;
    b.ready_import("probe").await?;
    let again: Vec<String> = writes(&recorder).into_iter().filter(|write| write.contains("stays")).collect();
    ensure!(again.is_empty(), "a restart writes nothing: {again:?}");
    hub.stop().await?;
    // What was un-exported while no hub watched goes as well: the member tells what it holds.
    a.withdraw("probe").await?;
    let hub = Hub::start(lab).await?;
    b.is_gone("probe").await?;
    hub.stop().await?;

    for cluster in lab.clusters() {
        let identity = hub::identity(cluster.name())?;
        let summary = leave(&identity, &cluster.clients(), &Permit::forever()).await?;
        ensure!(summary.imports == 1 && summary.slices == 1 && summary.services == 1, "{summary:?}");
        ensure!(summary.properties == 2, "{summary:?}");
        let again = leave(&identity, &cluster.clients(), &Permit::forever()).await?;
        ensure!(
            again == atoll_member::LeaveSummary { exports: again.exports, ..Default::default() },
            "{again:?}"
        );
    }
    let export = a.api::<ServiceExport>().get("stays").await?;
    let conditions = export.status.unwrap_or_default().conditions;
    ensure!(conditions.is_empty(), "{conditions:?}");
    a.withdraw("stays").await
}

#[tokio::test]
async fn a_cluster_that_says_it_is_another_is_refused() -> Outcome {
    let lab = &Clusters::start().await?;
    let (me, clients) = (hub::identity("member1")?, lab.member(1).clients());
    enter(&me, &clients).await?;
    let again = enter(&me, &clients).await?;
    ensure!(again.installed.is_empty() && again.properties.is_empty(), "{again:?}");
    let other = enter(&hub::identity("elsewhere")?, &clients).await;
    ensure!(matches!(other, Err(EnterError::OtherProperty { .. })), "{other:?}");
    let mut another_hub = me.clone();
    another_hub.hub = "hub-2".into();
    let other = enter(&another_hub, &clients).await;
    ensure!(matches!(other, Err(EnterError::OtherHub { .. })), "{other:?}");
    let refused = leave(&me, &clients, &Permit::new()).await;
    ensure!(matches!(refused, Err(LeaveError::NotPermitted { .. })), "{refused:?}");
    leave(&me, &clients, &Permit::forever()).await?;
    let properties: Api<ClusterProperty> = Api::all(lab.member(1).client());
    let left = properties.list(&ListParams::default()).await.context("the CRD stays")?;
    ensure!(left.items.is_empty());
    Ok(())
}
