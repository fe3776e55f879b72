//! Questions to the hub, through a real API server that passes them on.

use crate::harness::{Outcome, Set, Suite};
use anyhow::{Context, ensure};
use atoll_lab::clusterset::HubApi;
use atoll_lab::{Cluster, Deadline, Lab, until};
use serde_json::{Value, json};
use std::time::Duration;

const GROUP: &str = "/apis/explain.atoll.dev/v1alpha1";
const PORT: u16 = 9443;

pub(crate) fn tests(suite: &mut Suite) {
    suite.hub_test("a_real_api_server_passes_questions_on_to_the_leader", passed_on);
}

/// `kubectl` on the hub's API: what it printed, or what went wrong.
async fn kubectl(cluster: &Cluster, arguments: &[&str]) -> anyhow::Result<Result<String, String>> {
    let output = cluster.kubectl().args(arguments).output().await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) })
}

async fn passed_on(lab: &Lab, set: &Set) -> Outcome {
    if HubApi::of_environment() == HubApi::Own {
        return Ok(()); // no other API server: the hub's own tests have it
    }
    let hub = lab.member(1);
    hub.namespace("explained").await?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "ann", "namespace": "explained"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]});
    hub.apply(&[binding]).await?;
    set.hub().end(Duration::from_secs(10))?;
    let address = format!("{}:{PORT}", lab.bystander("hub").addresses().v4);
    let explaining = set.atoll.start_hub("hub-explain", &["--explain-address", &address])?;
    let asked = asked(hub).await;
    explaining.end(Duration::from_secs(10))?;
    let left = kubectl(hub, &["get", "apiservices", "v1alpha1.explain.atoll.dev", "-o", "name"]).await;
    // The others know the hub as it was.
    set.start_hub()?;
    asked?;
    let left = left?;
    ensure!(
        left.as_ref().is_err_and(|error| error.contains("NotFound")),
        "the hub stopped and left {left:?}"
    );
    Ok(())
}

async fn asked(hub: &Cluster) -> Outcome {
    until(Deadline::after(Duration::from_secs(40), "the API server finds the hub available"), async || {
        let found = kubectl(hub, &["get", "apiservices", "v1alpha1.explain.atoll.dev", "-o", "json"]).await;
        let text = found.map_err(|error| error.to_string()).and_then(|found| found);
        let registered: Value =
            text.as_ref().ok().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let conditions = registered["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let available = conditions.iter().any(|one| one["type"] == "Available" && one["status"] == "True");
        Ok(if available { Ok(()) } else { Err(format!("{text:?}")) })
    })
    .await?;
    let own = format!("{GROUP}/namespaces/explained/services/web");
    // The roles are there as soon as the hub leads; `view` takes them in a moment later.
    until(Deadline::after(Duration::from_secs(20), "ann may ask"), async || {
        let can = kubectl(
            hub,
            &["auth", "can-i", "get", "services.explain.atoll.dev", "-n", "explained", "--as", "ann"],
        );
        let can = can.await.map_err(|error| error.to_string()).and_then(|can| can);
        Ok(if can.as_ref().is_ok_and(|can| can.trim() == "yes") { Ok(()) } else { Err(format!("{can:?}")) })
    })
    .await?;
    let told = kubectl(hub, &["get", "--raw", &own, "--as", "ann"]).await?;
    let answered = match &told {
        Ok(text) => text.contains("explain.atoll.dev"),
        // The leader's own word: there is no such service.
        Err(error) => error.contains("NotFound") || error.contains("could not find"),
    };
    ensure!(answered, "ann asks about a service of her namespace: {told:?}");
    for path in [
        format!("{GROUP}/namespaces/kube-system/services/web"),
        format!("{GROUP}/services"),
        format!("{GROUP}/addresses/10.0.0.1"),
        format!("{GROUP}/clustersets/this"),
    ] {
        let told = kubectl(hub, &["get", "--raw", &path, "--as", "ann"]).await?;
        ensure!(
            told.as_ref().is_err_and(|error| error.contains("orbidden")),
            "ann asks for {path}: {told:?}"
        );
    }
    let told = kubectl(hub, &["get", "--raw", &own, "--as", "eve"]).await?;
    ensure!(told.as_ref().is_err_and(|error| error.contains("orbidden")), "eve asks: {told:?}");
    let listed = kubectl(hub, &["api-resources", "--api-group=explain.atoll.dev", "-o", "name"]).await?;
    let listed = listed.map_err(anyhow::Error::msg).context("kubectl lists the group")?;
    ensure!(listed.contains("services.explain.atoll.dev"), "{listed}");
    // What `services` means to kubectl has not changed.
    let services = kubectl(hub, &["get", "services", "-n", "default", "-o", "name"]).await?;
    ensure!(services.as_ref().is_ok_and(|text| text.contains("service/kubernetes")), "{services:?}");
    let explained = kubectl(hub, &["explain", "services.spec.ports"]).await?;
    ensure!(explained.is_ok(), "{explained:?}");
    Ok(())
}
