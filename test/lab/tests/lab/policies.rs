//! Propagation policies, with kubectl on a hub that has an API of its own.

mod authors;
mod members;

use crate::harness::{Outcome, Suite, evidence_root};
use anyhow::{Context, ensure};
use atoll_lab::clusterset::{Atoll, beside};
use atoll_lab::suite::name;
use atoll_lab::{Cluster, Component, Deadline, Lab, Process, Progress, Spec, until};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How long anything may take: the machine may be busy.
const SOON: Duration = Duration::from_secs(60);

pub(crate) fn tests(suite: &mut Suite) {
    suite.test_alone("policies_place_divide_move_repair_and_take_away", policies);
    suite.test_alone("a_service_is_exported_and_imported_through_the_hub_by_policies", walkthrough);
    suite.test_alone("on_a_real_api_server_policies_act_with_their_authors_rights", authors::authors);
    suite.test_alone("members_are_looked_into_tainted_labelled_and_promoted_from", members::members);
}

/// A lab with a hub of its own API.
pub(crate) struct World {
    pub(crate) lab: Lab,
    pub(crate) atoll: Atoll,
    flags: Vec<String>,
    hub: Mutex<Process>,
}

impl World {
    pub(crate) async fn start(spec: Spec) -> anyhow::Result<Self> {
        Self::start_with(spec, &[]).await
    }

    /// With a hub that is started with `flags`.
    pub(crate) async fn start_with(spec: Spec, flags: &[&str]) -> anyhow::Result<Self> {
        let lab = Lab::start(&spec.with_bystander("hub"), &Progress::silent()).await?;
        Self::on(lab, flags).await
    }

    /// On a lab that has a bystander `hub`.
    pub(crate) async fn on(lab: Lab, flags: &[&str]) -> anyhow::Result<Self> {
        let atoll = Atoll::with_own_api(&beside(Path::new(env!("CARGO_BIN_EXE_lab"))), lab.bystander("hub"))?;
        Self::with(lab, atoll, flags).await
    }

    /// With the API of the first cluster as the hub's.
    pub(crate) async fn on_a_real_api(spec: Spec) -> anyhow::Result<Self> {
        let lab = Lab::start(&spec.with_bystander("hub"), &Progress::silent()).await?;
        let binary = beside(Path::new(env!("CARGO_BIN_EXE_lab")));
        let atoll = Atoll::new(&binary, lab.member(1), lab.bystander("hub"))?;
        Self::with(lab, atoll, &[]).await
    }

    async fn with(lab: Lab, atoll: Atoll, flags: &[&str]) -> anyhow::Result<Self> {
        let hub = atoll.start_hub("hub", flags)?;
        atoll.has_api().await?;
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Ok(Self { lab, atoll, flags, hub: Mutex::new(hub) })
    }

    /// Keeps logs and objects for whoever asks why `test` failed.
    pub(crate) async fn keep_evidence(&self, test: &str) {
        let folder = evidence_root().join(test);
        let _ = std::fs::remove_dir_all(&folder);
        match self.lab.collect(&folder).await {
            Ok(()) => eprintln!("logs and objects of every cluster: {}", folder.display()),
            Err(error) => eprintln!("could not keep logs and objects: {error}"),
        }
    }

    /// Kills the hub, and starts it again.
    pub(crate) async fn restart(&self) -> Outcome {
        self.kill()?;
        self.start_again().await
    }

    pub(crate) fn kill(&self) -> Outcome {
        let hub = *self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(hub.kill()?)
    }

    pub(crate) async fn start_again(&self) -> Outcome {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let after = self.atoll.start_hub("hub", &flags)?;
        *self.hub.lock().unwrap_or_else(PoisonError::into_inner) = after;
        Ok(self.atoll.has_api().await?)
    }

    pub(crate) async fn join(&self, number: usize, more: &[&str]) -> anyhow::Result<()> {
        let cluster = self.lab.member(number);
        let kubeconfig = cluster.dir().join("kubeconfig").display().to_string();
        let mut words = vec!["join", cluster.name(), "--cluster-kubeconfig", &kubeconfig];
        words.extend(more);
        self.atoll.must(&words).await?;
        Ok(())
    }

    /// kubectl on the hub.
    pub(crate) async fn kubectl(&self, words: &[&str], stdin: &str) -> anyhow::Result<String> {
        let mut command = tokio::process::Command::new(self.lab.member(1).programs().kubectl());
        command.arg("--kubeconfig").arg(self.atoll.kubeconfig()).args(words).kill_on_drop(true);
        said(command, stdin).await.with_context(|| format!("kubectl {}", words.join(" ")))
    }

    pub(crate) async fn apply(&self, manifests: &str) -> Outcome {
        self.kubectl(&["apply", "-f", "-"], manifests).await.map(drop)
    }

    /// Waits until what `kubectl get -o json` prints of the hub is so.
    pub(crate) async fn hub_has(
        &self,
        words: &[&str],
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let ask = [&["get", "-o", "json"], words].concat();
        Ok(until(Deadline::after(SOON, what), async || {
            Ok(match self.kubectl(&ask, "").await {
                Ok(text) => seen(&text, &is),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await?)
    }
}

async fn said(mut command: tokio::process::Command, stdin: &str) -> anyhow::Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut pipe = child.stdin.take().context("stdin")?;
    pipe.write_all(stdin.as_bytes()).await?;
    drop(pipe);
    let output = child.wait_with_output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn seen(text: &str, is: impl Fn(&Value) -> bool) -> Result<Value, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if is(&value) => Ok(value),
        Ok(value) => Err(value.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) async fn kubectl(cluster: &Cluster, words: &[&str]) -> anyhow::Result<String> {
    let mut command = cluster.kubectl();
    command.args(words);
    said(command, "").await.with_context(|| format!("kubectl {} in {}", words.join(" "), cluster.name()))
}

/// Waits until what `kubectl get -o json` prints of a member is so.
pub(crate) async fn has(
    cluster: &Cluster,
    words: &[&str],
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    let ask = [&["get", "-o", "json"], words].concat();
    Ok(until(Deadline::after(SOON, format!("{}: {what}", cluster.name())), async || {
        Ok(match kubectl(cluster, &ask).await {
            Ok(text) => seen(&text, &is),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?)
}

pub(crate) async fn lacks(cluster: &Cluster, words: &[&str]) -> Outcome {
    let ask = [&["get", "--ignore-not-found", "-o", "name"], words].concat();
    until(Deadline::after(SOON, format!("{} has no {words:?}", cluster.name())), async || {
        Ok(match kubectl(cluster, &ask).await {
            Ok(text) if text.is_empty() => Ok(()),
            Ok(text) => Err(text),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    Ok(())
}

fn applied(binding: &Value) -> bool {
    let conditions = binding["status"]["conditions"].as_array();
    conditions
        .is_some_and(|all| all.iter().any(|one| one["type"] == "FullyApplied" && one["status"] == "True"))
}

fn divided(names: &Value, first: u32) -> String {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "propagateDeps": true,
            "placement": {
                "clusterAffinity": {"clusterNames": names},
                "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                    "weightPreference": {"staticWeightList": [
                        {"targetCluster": {"clusterNames": ["member1"]}, "weight": first},
                        {"targetCluster": {"clusterNames": ["member2"]}, "weight": 1}]}},
            },
        },
    })
    .to_string()
}

const WEB: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", envFrom: [{configMapRef: {name: settings}}]}
"#;

async fn policies() -> Outcome {
    let world = World::start(Spec::api_only(&name("policies"), 2)).await?;
    let (one, two) = (world.lab.member(1), world.lab.member(2));
    let web = ["-n", "shop", "deployment", "web"];
    let settings = ["-n", "shop", "configmap", "settings"];
    let binding = ["-n", "shop", "rb", "web-deployment"];

    // Without the right, the binding names the command that grants it.
    world.join(1, &["--allow-propagation"]).await?;
    world.join(2, &[]).await?;
    world.kubectl(&["create", "namespace", "shop"], "").await?;
    kubectl(two, &["create", "namespace", "shop"]).await?;
    world.apply(WEB).await?;
    world.apply(&divided(&json!(["member1", "member2"]), 2)).await?;
    world
        .hub_has(&binding, "the missing right is named", |found| {
            found
                .to_string()
                .contains("atoll join member2 --cluster-kubeconfig FILE --allow-propagation=deployments.apps")
        })
        .await?;
    world.join(2, &["--allow-propagation=deployments.apps,configmaps,namespaces"]).await?;

    // Two to one, and again when rescaled; what it needs goes along, into a namespace that the hub made.
    has(one, &web, "two of three", |found| found["spec"]["replicas"] == 2).await?;
    has(two, &web, "one of three", |found| found["spec"]["replicas"] == 1).await?;
    has(one, &settings, "it went along", |found| found["data"]["colour"] == "blue").await?;
    world.hub_has(&binding, "it is fully applied", applied).await?;
    world.kubectl(&["-n", "shop", "scale", "deployment", "web", "--replicas=9"], "").await?;
    has(one, &web, "six of nine", |found| found["spec"]["replicas"] == 6).await?;
    has(two, &web, "three of nine", |found| found["spec"]["replicas"] == 3).await?;
    let table = world.kubectl(&["-n", "shop", "get", "rb"], "").await?;
    ensure!(table.contains("FULLYAPPLIED") && table.contains("web-deployment"), "{table}");

    // Status comes back, drift is repaired, what the member's owner adds stays.
    for (cluster, ready) in [(one, 6), (two, 2)] {
        let status = json!({"status": {"replicas": ready, "readyReplicas": ready, "observedGeneration": 1}})
            .to_string();
        kubectl(
            cluster,
            &[
                "-n",
                "shop",
                "patch",
                "deployment",
                "web",
                "--subresource=status",
                "--type=merge",
                "-p",
                &status,
            ],
        )
        .await?;
    }
    world.hub_has(&web, "the template has the sum", |found| found["status"]["readyReplicas"] == 8).await?;
    kubectl(one, &["-n", "shop", "scale", "deployment", "web", "--replicas=1"]).await?;
    kubectl(one, &["-n", "shop", "label", "deployment", "web", "owner=paris"]).await?;
    has(one, &web, "drift is repaired", |found| {
        found["spec"]["replicas"] == 6 && found["metadata"]["labels"]["owner"] == "paris"
    })
    .await?;

    // Overrides for one of them, one of each kind.
    world
        .apply(
            r#"
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: images, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [member2]}
    overriders:
      imageOverrider: [{component: Registry, operator: add, value: mirror.example}]
      commandOverrider: [{containerName: web, operator: add, value: [serve]}]
      argsOverrider: [{containerName: web, operator: add, value: [--quiet]}]
      labelsOverrider: [{operator: add, value: {place: tokyo}}]
      annotationsOverrider: [{operator: add, value: {shop/floor: second}}]
      plaintext: [{path: /spec/minReadySeconds, operator: add, value: 7}]
"#,
        )
        .await?;
    let image = |found: &Value| found["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    has(two, &web, "its own image", |found| image(found) == "mirror.example/web:1").await?;
    has(two, &web, "all the rest", |found| {
        let container = &found["spec"]["template"]["spec"]["containers"][0];
        container["command"] == json!(["serve"])
            && container["args"] == json!(["--quiet"])
            && found["metadata"]["labels"]["place"] == "tokyo"
            && found["metadata"]["annotations"]["shop/floor"] == "second"
            && found["spec"]["minReadySeconds"] == 7
    })
    .await?;
    has(one, &web, "as the template is", |found| {
        image(found) == "web:1" && found["metadata"]["labels"]["place"].is_null()
    })
    .await?;

    // A member that is down gets it when it is back.
    let fault = two.stop(Component::ApiServer)?;
    world.kubectl(&["-n", "shop", "scale", "deployment", "web", "--replicas=3"], "").await?;
    world
        .kubectl(
            &[
                "-n",
                "shop",
                "patch",
                "configmap",
                "settings",
                "--type=merge",
                "-p",
                r#"{"data":{"colour":"red"}}"#,
            ],
            "",
        )
        .await?;
    has(one, &web, "two of three", |found| found["spec"]["replicas"] == 2).await?;
    world
        .hub_has(&binding, "who lacks it is said", |found| {
            found["status"]["conditions"].to_string().contains("member2: the member can't be reached")
        })
        .await?;
    fault.heal()?;
    two.ready().await?;
    has(two, &web, "one of three", |found| found["spec"]["replicas"] == 1).await?;
    has(two, &settings, "the new value", |found| found["data"]["colour"] == "red").await?;

    // Something that is there already: left alone, then taken over; it stays when the template goes.
    kubectl(one, &["-n", "shop", "create", "configmap", "taken", "--from-literal=theirs=1"]).await?;
    world.kubectl(&["-n", "shop", "create", "configmap", "taken", "--from-literal=ours=1"], "").await?;
    let taken = |conflict: &str| {
        format!(
            r#"{{"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "metadata": {{"name": "taken", "namespace": "shop"}},
            "spec": {{"conflictResolution": "{conflict}", "resourceSelectors": [{{"apiVersion": "v1", "kind": "ConfigMap", "name": "taken"}}],
            "placement": {{"clusterAffinity": {{"clusterNames": ["member1"]}}}}}}}}"#
        )
    };
    world.apply(&taken("Abort")).await?;
    world
        .hub_has(&["-n", "shop", "rb", "taken-configmap"], "the conflict is said", |found| {
            found.to_string().contains("which is not managed by the hub")
        })
        .await?;
    world.apply(&taken("Overwrite")).await?;
    let taken = ["-n", "shop", "configmap", "taken"];
    has(one, &taken, "both", |found| found["data"] == json!({"theirs": "1", "ours": "1"})).await?;
    world.kubectl(&["-n", "shop", "delete", "configmap", "taken"], "").await?;
    world
        .hub_has(&["-n", "shop", "rb"], "its binding is gone", |found| {
            !found.to_string().contains("taken-configmap")
        })
        .await?;
    has(one, &taken, "it is still there", |_| true).await?;

    // Refused with the field's name.
    let refused =
        divided(&json!(["member1"]), 1).replace("\"propagateDeps\":true", "\"failover\":{\"cluster\":{}}");
    let error = world.apply(&refused).await.err().context("it is refused")?;
    ensure!(format!("{error:#}").contains("spec.failover is not honoured by Atoll"), "{error:#}");

    // The policy changes its clusters; the policy goes; the template goes.
    world.apply(&divided(&json!(["member1"]), 2)).await?;
    lacks(two, &web).await?;
    lacks(two, &settings).await?;
    has(one, &web, "all of them", |found| found["spec"]["replicas"] == 3).await?;
    world.kubectl(&["-n", "shop", "delete", "pp", "web"], "").await?;
    world.kubectl(&["-n", "shop", "scale", "deployment", "web", "--replicas=5"], "").await?;
    has(one, &web, "it is still followed", |found| found["spec"]["replicas"] == 5).await?;
    world.kubectl(&["-n", "shop", "delete", "deployment", "web"], "").await?;
    lacks(one, &web).await?;
    lacks(one, &settings).await?;

    // A member that leaves is cleaned.
    world.apply(WEB).await?;
    world.apply(&divided(&json!(["member1", "member2"]), 1)).await?;
    has(two, &web, "it is back", |_| true).await?;
    world.atoll.must(&["unjoin", "member2"]).await?;
    lacks(two, &web).await?;
    has(one, &web, "it has them all", |found| found["spec"]["replicas"] == 3).await?;
    world.lab.down()?;
    Ok(())
}

/// How many endpoints there are in a list of slices.
fn endpoints(list: &Value) -> usize {
    let slices = list["items"].as_array().into_iter().flatten();
    slices.map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).sum()
}

/// The manifests of Karmada's walkthrough for multi-cluster services, in its order.
const CRDS: &str = include_str!("policies/crds.yaml");
const WORKLOAD: &str = include_str!("policies/workload.yaml");
const EXPORT: &str = include_str!("policies/export.yaml");
const IMPORT: &str = include_str!("policies/import.yaml");
/// The manifest of its document on native access.
const NATIVE: &str = include_str!("../../../../examples/karmada/5-native.yaml");

async fn walkthrough() -> Outcome {
    let world = World::start(Spec::whole(&name("walk"), 2)).await?;
    let (one, two) = (world.lab.member(1), world.lab.member(2));
    world.join(1, &["--allow-propagation"]).await?;
    world.join(2, &["--allow-propagation"]).await?;
    two.tools("default", "tools").await?;
    for step in [CRDS, WORKLOAD, EXPORT, IMPORT] {
        world.apply(step).await?;
    }
    for crd in ["serviceexports", "serviceimports"] {
        let name = format!("{crd}.multicluster.x-k8s.io-customresourcedefinition");
        world.hub_has(&["crb", &name], "the CRD is where it should be", applied).await?;
    }
    one.pods_ready("default", "app=serve", 1).await?;
    lacks(two, &["deployment", "serve"]).await?;
    world
        .hub_has(&["deployment", "serve"], "its status is in the hub", |found| {
            found["status"]["readyReplicas"] == 1
        })
        .await?;
    let derived = has(two, &["service", "derived-serve"], "the derived Service", |found| {
        found["spec"]["clusterIP"].as_str().is_some_and(|ip| ip != "None")
    })
    .await?;
    let address = derived["spec"]["clusterIP"].as_str().context("an address")?;
    let ask = format!("workload fetch --timeout=2s --address={address}:80");
    two.exec_until("default", "tools", &ask, |said| said.contains("hello from cluster member1")).await?;
    world.hub_has(&["rb", "serve-serviceimport"], "the import is where it should be", applied).await?;

    // What Karmada's own tests look for: the event, and as many endpoints in the hub and in member2 as there are pods.
    world
        .hub_has(&["events"], "the import is told", |found| {
            found.to_string().contains("SyncDerivedServiceSucceed")
        })
        .await?;
    let slices = ["endpointslices", "-l", "kubernetes.io/service-name=derived-serve"];
    for replicas in [1, 2] {
        world.kubectl(&["scale", "deployment", "serve", &format!("--replicas={replicas}")], "").await?;
        world.hub_has(&slices, "endpoints are mirrored", |found| endpoints(found) == replicas).await?;
        has(two, &slices, "endpoints are imported", |found| endpoints(found) == replicas).await?;
    }

    // The request as the document makes it.
    let asked = format!("--address={address}");
    let run = ["run", "-i", "--rm", "--restart=Never", "--image=jeremyot/request:0a40de8", "request", "--"];
    let said = kubectl(two, &[&run[..], &["--duration=3s", &asked]].concat()).await?;
    ensure!(said.contains("'hello from cluster member1 (Node: "), "{said}");

    // Native access, in the same namespace, to the same Service.
    world.apply(NATIVE).await?;
    for name in ["serve.default.svc", "serve"] {
        let ask = format!("workload fetch --timeout=2s --address={name}:80");
        two.exec_until("default", "tools", &ask, |said| said.contains("hello from cluster member1")).await?;
    }
    world.lab.down()?;
    Ok(())
}
