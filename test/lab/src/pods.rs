//! What tests do all day: apply objects, run pods, run commands in them.

use crate::cluster::Cluster;
use crate::error::{Doing, Error, Result};
use crate::image::TOOLS;
use crate::until::{Deadline, until};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::Api;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How long a pod may take to run. Far more than it needs: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one of several tries to run a command may take: a stream to a pod that hangs must not use up the time of all.
const ATTEMPT: Duration = Duration::from_secs(20);

impl Cluster {
    /// Applies objects with kubectl, as a user would.
    pub async fn apply(&self, objects: &[Value]) -> Result<()> {
        self.apply_text(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).await
    }

    /// Applies manifests with kubectl.
    pub async fn apply_text(&self, manifests: &str) -> Result<()> {
        let doing = || "run kubectl apply".to_owned();
        let mut child = self
            .kubectl()
            .args(["apply", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing(doing)?;
        let mut stdin = child.stdin.take().expect("stdin was piped");
        stdin.write_all(manifests.as_bytes()).await.doing(doing)?;
        drop(stdin);
        let output = child.wait_with_output().await.doing(doing)?;
        if output.status.success() {
            Ok(())
        } else {
            Err(crate::command::failure("kubectl apply".to_owned(), &output))
        }
    }

    /// Makes a namespace in which pods can be made at once.
    pub async fn namespace(&self, name: &str) -> Result<()> {
        self.apply(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})]).await?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, name);
        until(Deadline::after(PATIENCE, format!("{name} has its service account")), async || {
            Ok(accounts.get("default").await.map(drop).map_err(|error| error.to_string()))
        })
        .await
    }

    /// Runs a pod with a shell and network tools, and waits until it is ready.
    pub async fn tools(&self, namespace: &str, name: &str) -> Result<()> {
        let container = json!({
            "name": "tools", "image": TOOLS, "command": ["tini", "--", "sleep", "infinity"],
        });
        self.apply(&[json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
            "spec": {"containers": [container]},
        })])
        .await?;
        self.pods_ready(namespace, &format!("app={name}"), 1).await.map(drop)
    }

    /// Waits until exactly `count` pods with `label` are there and ready, and returns them.
    pub async fn pods_ready(&self, namespace: &str, label: &str, count: usize) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client().await?, namespace);
        let wanted = kube::api::ListParams::default().labels(label);
        until(Deadline::after(PATIENCE, format!("{count} pods {label} are ready")), async || {
            let found = match pods.list(&wanted).await {
                Ok(list) => list.items,
                Err(error) => return Ok(Err(error.to_string())),
            };
            let ready = found.iter().filter(|pod| is_ready(pod)).count();
            let total = found.len();
            Ok(if (ready, total) == (count, count) {
                Ok(found)
            } else {
                Err(format!("{ready} of {total} are ready"))
            })
        })
        .await
    }

    /// Runs `command` in a pod and returns what it printed; a bad exit status is an error.
    pub async fn exec(&self, namespace: &str, pod: &str, command: &[&str]) -> Result<String> {
        self.exec_within(PATIENCE, namespace, pod, command).await
    }

    async fn exec_within(
        &self,
        patience: Duration,
        namespace: &str,
        pod: &str,
        command: &[&str],
    ) -> Result<String> {
        let mut kubectl = self.kubectl();
        kubectl.args(["-n", namespace, "exec", pod, "--"]).args(command).stdin(Stdio::null());
        let line = format!("kubectl exec {pod} -- {}", command.join(" "));
        let output = tokio::time::timeout(patience, kubectl.output()).await;
        let output = output
            .map_err(|_| Deadline::after(patience, line.clone()).passed("no end"))?
            .doing(|| format!("run `{line}`"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(crate::command::failure(line, &output))
        }
    }

    /// As [`Cluster::exec`] with a shell, again and again until it succeeds and `content` with what it printed.
    pub async fn exec_until(
        &self,
        namespace: &str,
        pod: &str,
        script: &str,
        content: impl Fn(&str) -> bool,
    ) -> Result<String> {
        let what = format!("`{script}` in {pod} of {} says what it should", self.name());
        until(Deadline::after(Duration::from_secs(60), what), async || {
            Ok(match self.exec_within(ATTEMPT, namespace, pod, &["sh", "-c", script]).await {
                Ok(said) if content(&said) => Ok(said),
                Ok(said) => Err(said),
                Err(error) => Err(error.to_string()),
            })
        })
        .await
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    let ready =
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}

/// The addresses of `pod`, IPv4 first.
pub fn addresses_of(pod: &Pod) -> Result<Vec<String>> {
    let addresses = pod.status.as_ref().and_then(|status| status.pod_ips.as_ref());
    let addresses: Vec<_> = addresses.into_iter().flatten().map(|address| address.ip.clone()).collect();
    if addresses.is_empty() {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        return Err(Error::refused(format!("pod {name} has no address"), "wait until it is ready"));
    }
    Ok(addresses)
}
