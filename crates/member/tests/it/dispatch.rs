//! What a member does for a `MultiClusterService`.

use anyhow::ensure;
use atoll_engine::intent::{Clusters as Chosen, CrossCluster};
use atoll_engine::names::{ClusterId, ServiceKey};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::clusters::{Clusters, until};
use crate::hub::Hub;
use crate::stories::{Cluster, NAMESPACE, slice, two, writes};

type Outcome = anyhow::Result<()>;

const DISPATCHED: &str =
    "endpointslice.kubernetes.io/managed-by=endpointslice-dispatch-controller.karmada.io";

fn key(name: &str) -> ServiceKey {
    ServiceKey::parse(NAMESPACE, name).unwrap()
}

fn from_first_to_second() -> CrossCluster {
    let named = |name: &str| Chosen::Named([ClusterId::parse(name).unwrap()].into());
    CrossCluster { providers: named("member1"), consumers: named("member2"), ..CrossCluster::default() }
}

impl Cluster {
    /// A Service with one slice; no export.
    async fn plainly_serve(&self, name: &str, address: &str) -> Outcome {
        self.create::<Service>(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
        }))
        .await?;
        self.create::<EndpointSlice>(slice(name, address)).await?;
        Ok(())
    }

    async fn dispatched(&self, name: &str) -> Result<Vec<EndpointSlice>, String> {
        let labels = format!("kubernetes.io/service-name={name},{DISPATCHED}");
        let list = self.api::<EndpointSlice>().list(&ListParams::default().labels(&labels)).await;
        list.map(|list| list.items).map_err(|error| error.to_string())
    }

    async fn has_dispatched(&self, name: &str, want: &[&str]) -> Outcome {
        until(&format!("{name} has the addresses {want:?}"), async || {
            let slices = self.dispatched(name).await?;
            let endpoints = slices.into_iter().flat_map(|slice| slice.endpoints.unwrap_or_default());
            let mut found: Vec<String> = endpoints.flat_map(|endpoint| endpoint.addresses).collect();
            found.sort();
            if found == want { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await
    }
}

async fn settled(hub: &Hub, cluster: &str, name: &str, slices: usize) -> Outcome {
    let at = (ClusterId::parse(cluster)?, key(name));
    until(&format!("{cluster} holds {slices} dispatched slices of {name}"), async || {
        match hub.said().dispatched.get(&at) {
            Some(state) if !state.pending && state.problems.is_empty() && state.slices == slices => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

#[tokio::test]
async fn a_providers_slices_are_dispatched_and_go_with_the_intent() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    a.plainly_serve("serve", "10.1.0.1").await?;
    b.plainly_serve("serve", "10.2.0.1").await?;
    let recorder = lab.member(2).recorder();
    hub.intend(&key("serve"), Some(from_first_to_second()))?;
    b.has_dispatched("serve", &["10.1.0.1"]).await?;
    settled(&hub, "member2", "serve", 1).await?;
    ensure!(writes(&recorder) == ["create endpointslices member1-serve-1"], "{:?}", writes(&recorder));

    let slice = b.api::<EndpointSlice>().get("member1-serve-1").await?;
    ensure!(slice.annotations()["endpointslice.karmada.io/provision-cluster"] == "member1");
    ensure!(
        !slice.labels().contains_key("multicluster.kubernetes.io/service-name"),
        "DNS would count it twice"
    );
    let endpoint = &slice.endpoints.unwrap_or_default()[0];
    ensure!(endpoint.node_name.is_none() && endpoint.zone.as_deref() == Some("z1"));
    ensure!(
        a.dispatched("serve").await.is_ok_and(|slices| slices.is_empty()),
        "a provider gets nothing back"
    );

    let (at_a, at_b) = (lab.member(1).recorder(), lab.member(2).recorder());
    let change = json!({"endpoints": [{"addresses": ["10.1.0.2"], "conditions": {"ready": true}}]});
    a.api::<EndpointSlice>().patch("serve-1", &PatchParams::default(), &Patch::Merge(change)).await?;
    b.has_dispatched("serve", &["10.1.0.2"]).await?;
    ensure!(writes(&at_b) == ["update endpointslices member1-serve-1"], "{:?}", writes(&at_b));
    ensure!(writes(&at_a) == ["patch endpointslices serve-1"], "{:?}", writes(&at_a));

    hub.intend(&key("serve"), None)?;
    b.has_dispatched("serve", &[]).await?;
    settled(&hub, "member2", "serve", 0).await?;
    b.api::<EndpointSlice>().get("serve-1").await?; // what is not ours stays
    b.api::<Service>().get("serve").await?;
    hub.stop().await
}

#[tokio::test]
async fn a_service_that_is_exported_as_well_has_each_endpoint_once_on_each_service() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    a.serve("both", "10.1.0.1").await?;
    hub.intend(&key("both"), Some(CrossCluster::default()))?;
    for cluster in [&a, &b] {
        cluster.addresses("both", &["10.1.0.1"]).await?;
    }
    b.has_dispatched("both", &["10.1.0.1"]).await?;
    a.has_dispatched("both", &[]).await?;
    hub.intend(&key("both"), None)?;
    b.has_dispatched("both", &[]).await?;
    b.addresses("both", &["10.1.0.1"]).await?;
    hub.stop().await
}

#[tokio::test]
async fn what_has_another_owner_is_left_alone_and_said_and_ours_is_repaired() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    let mut theirs = slice("member1-web", "10.9.0.9"); // called as ours would be
    theirs["metadata"]["name"] = json!("member1-web-1");
    b.create::<EndpointSlice>(theirs).await?;
    a.plainly_serve("web", "10.1.0.1").await?;
    hub.intend(&key("web"), Some(from_first_to_second()))?;
    let at = (ClusterId::parse("member2")?, key("web"));
    until("the member says what is in the way", async || {
        let said = hub.said();
        let state = said.dispatched.get(&at);
        match state.and_then(|state| state.problems.first()) {
            Some(problem) if problem.contains("member1-web-1") => Ok(()),
            _ => Err(format!("{state:?}")),
        }
    })
    .await?;
    let theirs = b.api::<EndpointSlice>().get("member1-web-1").await?;
    ensure!(theirs.endpoints.unwrap_or_default()[0].addresses == ["10.9.0.9"]);
    b.api::<EndpointSlice>().delete("member1-web-1", &DeleteParams::default()).await?;
    b.has_dispatched("web", &["10.1.0.1"]).await?;
    settled(&hub, "member2", "web", 1).await?;

    let spoil = json!({"endpoints": [], "metadata": {"labels": {"kubernetes.io/service-name": "other"}}});
    let slices = b.api::<EndpointSlice>();
    slices.patch("member1-web-1", &PatchParams::default(), &Patch::Merge(spoil)).await?;
    b.has_dispatched("web", &["10.1.0.1"]).await?;
    slices.delete("member1-web-1", &DeleteParams::default()).await?;
    b.has_dispatched("web", &["10.1.0.1"]).await?;
    hub.stop().await
}

#[tokio::test]
async fn a_restarted_member_takes_nothing_away_before_the_provider_has_told_its_facts() -> Outcome {
    let lab = &Clusters::start().await?;
    let (a, b, hub) = two(lab).await?;
    a.plainly_serve("web", "10.1.0.1").await?;
    hub.intend(&key("web"), Some(from_first_to_second()))?;
    b.has_dispatched("web", &["10.1.0.1"]).await?;
    hub.stop().await?;
    let recorder = lab.member(2).recorder();
    let hub = Hub::start_asking(lab, [(key("web"), from_first_to_second())].into()).await?;
    settled(&hub, "member2", "web", 1).await?;
    a.api::<EndpointSlice>()
        .patch(
            "web-1",
            &PatchParams::default(),
            &Patch::Merge(json!({"endpoints": [{"addresses": ["10.1.0.7"]}]})),
        )
        .await?;
    b.has_dispatched("web", &["10.1.0.7"]).await?;
    let seen = writes(&recorder);
    ensure!(seen == ["update endpointslices member1-web-1"], "{seen:?}");
    hub.stop().await
}
