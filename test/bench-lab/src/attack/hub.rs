//! The hub that is attacked: a process of its own, on the loopback.

use anyhow::{Context, bail};
use kube::client::ConfigExt;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// A hub that runs; it ends with this value.
pub(super) struct Hub {
    pub(super) admin: Client,
    pub(super) pid: u32,
    config: Config,
    dir: PathBuf,
    _process: Child,
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Hub {
    pub(super) async fn start(program: &Path) -> anyhow::Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let dir = std::env::temp_dir().join(format!("atoll-bench-attack-{}", std::process::id()));
        let process = Command::new(program)
            .args(["hub", "--metrics-address", "none", "--data-dir"])
            .arg(&dir)
            .args(["--api-address", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = process.id().context("the hub ended at once")?;
        for _ in 0..600 {
            if let Ok(config) = read(&dir.join("kubeconfig")).await {
                let admin = Client::try_from(config.clone())?;
                if admin.apiserver_version().await.is_ok() {
                    return Ok(Self { admin, pid, config, dir, _process: process });
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the hub is not ready after a minute")
    }

    /// A user who may do with `ConfigMaps`, and with the benchmark's own kind, what they like.
    pub(super) async fn user(&self, name: &str) -> anyhow::Result<Client> {
        let accounts = "/api/v1/namespaces/default/serviceaccounts";
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        post(&self.admin, accounts, &account).await?;
        let group = "rbac.authorization.k8s.io";
        let rules = json!([{"apiGroups": ["", "bench.example.com"], "resources": ["configmaps", "loops"], "verbs": ["*"]}]);
        let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
        post(&self.admin, &format!("/apis/{group}/v1/clusterroles"), &role).await?;
        let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]});
        post(&self.admin, &format!("/apis/{group}/v1/clusterrolebindings"), &binding).await?;
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
        let made = post(&self.admin, &format!("{accounts}/{name}/token"), &request).await?;
        let token = made["status"]["token"].as_str().context("there is no token")?;
        let mut config = self.config.clone();
        config.auth_info = serde_json::from_value(json!({"token": token}))?;
        Ok(Client::try_from(config)?)
    }

    /// Anonymous connections that say nothing: half of them before the handshake, half after it.
    pub(super) async fn strangers(&self, count: usize) -> Vec<Box<dyn Send>> {
        let address = format!(
            "{}:{}",
            self.config.cluster_url.host().unwrap_or_default(),
            self.config.cluster_url.port_u16().unwrap_or(443)
        );
        let mut anonymous = self.config.clone();
        anonymous.auth_info = AuthInfo::default();
        let tls =
            anonymous.rustls_client_config().ok().map(|tls| tokio_rustls::TlsConnector::from(Arc::new(tls)));
        let name = rustls_pki_types::ServerName::try_from("127.0.0.1").ok();
        let mut strangers: Vec<Box<dyn Send>> = Vec::with_capacity(count);
        for at in 0..count {
            // The server may end one for the next; that is its right.
            let Ok(stream) = TcpStream::connect(&address).await else { continue };
            match (&tls, &name) {
                (Some(tls), Some(name)) if at % 2 == 0 => {
                    if let Ok(stream) = tls.connect(name.clone(), stream).await {
                        strangers.push(Box::new(stream));
                    }
                }
                _ => strangers.push(Box::new(stream)),
            }
        }
        strangers
    }
}

async fn read(kubeconfig: &Path) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

/// Creates an object.
pub(super) async fn post(client: &Client, path: &str, object: &Value) -> anyhow::Result<Value> {
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(object)?)?;
    client.request(request).await.with_context(|| format!("cannot create an object at {path}"))
}
