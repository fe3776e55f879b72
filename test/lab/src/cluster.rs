//! One cluster of a lab: how to reach it, and what it is made of.

use crate::addresses::ClusterAddresses;
use crate::component::{Component, Setting};
use crate::config::{self, Access};
use crate::error::{Doing, Error, Result};
use crate::install::Programs;
use crate::layout::{Layout, read, write_private};
use crate::machine::{Machine, log_path};
use crate::pki::{Identity, Pki};
use crate::process::Process;
use crate::spec::{Kind, Spec};
use crate::until::{Deadline, until};
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a component may take to come up. Far more than it needs: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A running cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    machine: Machine,
    addresses: ClusterAddresses,
    kind: Kind,
    fsync: bool,
    audit: bool,
    programs: Programs,
    api_server: PathBuf,
    ca: String,
    token: String,
}

/// The kube-apiserver that a cluster is to run.
fn api_server(spec: &Spec, addresses: ClusterAddresses, programs: &Programs) -> Result<PathBuf> {
    if !spec.oldest.contains(&addresses.number) {
        return Ok(programs.kubernetes.join(Component::ApiServer.name()));
    }
    programs.oldest_api_server.clone().ok_or_else(|| {
        Error::refused("the oldest Kubernetes is not installed", "start the lab anew, and it will be")
    })
}

impl Cluster {
    /// Makes a machine for a new cluster and writes its configuration; nothing runs yet.
    pub(crate) fn prepare(
        layout: &Layout,
        spec: &Spec,
        name: &str,
        addresses: ClusterAddresses,
        programs: &Programs,
    ) -> Result<Self> {
        let pki = Pki::make(&addresses)?;
        let machine = Machine::open(layout, name)?;
        pki.write(&machine.dir().join("pki"))?;
        let cluster = Self {
            machine,
            addresses,
            kind: spec.kind,
            fsync: spec.fsync,
            audit: spec.audit,
            programs: programs.clone(),
            api_server: api_server(spec, addresses, programs)?,
            ca: pki.ca.clone(),
            token: pki.token(Identity::Admin).to_owned(),
        };
        cluster.write_configuration(&pki)?;
        Ok(cluster)
    }

    /// The cluster called `name` of a lab that is up; `None` when it is not.
    pub(crate) fn find(
        layout: &Layout,
        spec: &Spec,
        name: &str,
        addresses: ClusterAddresses,
        programs: &Programs,
    ) -> Option<Self> {
        let machine = Machine::find(layout, name)?;
        let ca = read(&machine.dir().join("pki/ca.crt")).ok()?;
        let tokens = read(&machine.dir().join("pki/tokens.csv")).ok()?;
        let token = tokens.lines().find_map(|line| {
            let (token, rest) = line.split_once(',')?;
            rest.starts_with(&format!("{},", Identity::Admin.user())).then(|| token.to_owned())
        })?;
        let (kind, fsync, audit) = (spec.kind, spec.fsync, spec.audit);
        let (programs, api_server) = (programs.clone(), api_server(spec, addresses, programs).ok()?);
        Some(Self { machine, addresses, kind, fsync, audit, programs, api_server, ca, token })
    }

    fn write_configuration(&self, pki: &Pki) -> Result<()> {
        let dir = self.dir();
        let write = |name: &str, text: &str| write_private(&dir.join(name), text);
        write("audit-policy.yaml", config::audit_policy())?;
        if self.kind == Kind::ApiOnly {
            return Ok(());
        }
        for (file, identity) in [
            ("controller-manager", Identity::ControllerManager),
            ("scheduler", Identity::Scheduler),
            ("kubelet", Identity::Kubelet),
            ("proxy", Identity::Proxy),
            ("dns", Identity::Dns),
        ] {
            let way = Access { token: pki.token(identity), ..self.access() };
            write(&format!("{file}.kubeconfig"), &config::kubeconfig(&[way]))?;
        }
        if self.kind == Kind::ApiWithCleanup {
            return Ok(());
        }
        write("containerd.toml", &config::containerd(dir))?;
        write("cni/10-pods.conflist", &config::cni(&self.addresses))?;
        write("kubelet.yaml", &config::kubelet(dir, self.addresses.service(10).v4))?;
        write("kube-proxy.yaml", &config::kube_proxy(dir, self.name(), &self.addresses))?;
        write("Corefile", &config::corefile(dir, self.name(), &self.addresses))
    }

    /// The cluster's name: `member1`, …
    pub fn name(&self) -> &str {
        self.machine.name()
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        self.machine.dir()
    }

    /// Where it lives.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Its addresses.
    pub fn addresses(&self) -> ClusterAddresses {
        self.addresses
    }

    /// How much of Kubernetes it has.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The URL of its API.
    pub fn server(&self) -> String {
        format!("https://{}:6443", self.addresses.node().v4)
    }

    /// The certificate that its API's own is signed by.
    pub fn ca(&self) -> &str {
        &self.ca
    }

    /// The programs that it runs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// An administrator's bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The components that it consists of.
    pub fn components(&self) -> &'static [Component] {
        match self.kind {
            Kind::Whole => &Component::ALL,
            Kind::ApiOnly => &Component::API,
            Kind::ApiWithCleanup => &Component::API_WITH_CLEANUP,
        }
    }

    /// An administrator's way in.
    pub(crate) fn access(&self) -> Access<'_> {
        Access { name: self.name(), server: self.server(), ca: &self.ca, token: &self.token }
    }

    /// A kubeconfig of an administrator for this cluster alone.
    pub fn kubeconfig(&self) -> String {
        config::kubeconfig(&[self.access()])
    }

    /// A kubeconfig that leads through `server`: a relay, say.
    pub fn kubeconfig_via(&self, server: &str) -> String {
        config::kubeconfig(&[Access { server: server.to_owned(), ..self.access() }])
    }

    /// Certificate and key of an administrator that have expired.
    pub fn expired_certificate(&self) -> Result<(String, String)> {
        crate::pki::expired_client(&read(&self.dir().join("pki/ca.key"))?)
    }

    /// An administrator's client. It gives up soon and retries nothing: a test wants to see what happens.
    pub async fn client(&self) -> Result<kube::Client> {
        client_of(&self.kubeconfig()).await
    }

    /// kubectl as an administrator.
    pub fn kubectl(&self) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(self.programs.kubectl());
        command.arg("--kubeconfig").arg(self.dir().join("kubeconfig")).kill_on_drop(true);
        command
    }

    /// Starts `component` and records its process.
    pub fn start(&self, component: Component) -> Result<Process> {
        let setting = Setting {
            name: self.name(),
            dir: self.dir(),
            addresses: self.addresses,
            programs: &self.programs,
            api_server: &self.api_server,
            kind: self.kind,
            fsync: self.fsync,
            audit: self.audit,
        };
        let process = self.machine.spawn(component.name(), &setting.argv(component))?;
        let record = serde_json::to_vec(&process).expect("two numbers always serialize");
        write_private(&self.component_record(component), record)?;
        Ok(process)
    }

    /// The process of `component`, if it runs.
    pub fn process(&self, component: Component) -> Option<Process> {
        let text = read(&self.component_record(component)).ok()?;
        serde_json::from_str::<Process>(&text).ok().filter(Process::alive)
    }

    fn component_record(&self, component: Component) -> PathBuf {
        self.dir().join("components").join(format!("{}.json", component.name()))
    }

    /// Where `component`'s output goes.
    pub fn log(&self, component: Component) -> PathBuf {
        log_path(self.dir(), component.name())
    }

    /// Waits until the API answers that it is ready.
    pub async fn api_ready(&self) -> Result<()> {
        let client = self.client().await?;
        let asked = Component::ApiServer;
        until(Deadline::after(PATIENCE, "the API is ready"), async || {
            self.still_runs(Component::Etcd)?;
            self.still_runs(asked)?;
            let request =
                http::Request::get("/readyz").body(Vec::new()).expect("a constant request is well-formed");
            Ok(client.request_text(request).await.map(|_| ()).map_err(|error| error.to_string()))
        })
        .await
        .map_err(|error| self.with_log(asked, error))
    }

    /// An error as soon as `component`, which should run, does not.
    pub(crate) fn still_runs(&self, component: Component) -> Result<()> {
        if self.process(component).is_some() {
            return Ok(());
        }
        Err(self.component_error(component, "has ended".to_owned()))
    }

    pub(crate) fn with_log(&self, component: Component, error: Error) -> Error {
        match error {
            Error::Deadline { .. } => self.component_error(component, format!("is not as awaited: {error}")),
            other => other,
        }
    }

    fn component_error(&self, component: Component, what: String) -> Error {
        let log = self.log(component);
        let tail = crate::command::last_lines(&std::fs::read(&log).unwrap_or_default(), 5);
        Error::Component { cluster: self.name().to_owned(), component: component.name(), what, tail, log }
    }
}

/// A client for the current context of `kubeconfig`.
pub async fn client_of(kubeconfig: &str) -> Result<kube::Client> {
    let unusable = |why: String| Error::refused(format!("the kubeconfig cannot be used: {why}"), "check it");
    let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|error| unusable(error.to_string()))?;
    let mut config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .map_err(|error| unusable(error.to_string()))?;
    config.connect_timeout = Some(Duration::from_secs(3));
    config.read_timeout = Some(Duration::from_secs(30));
    config.default_retry = false;
    kube::Client::try_from(config).doing(|| "make a client".to_owned())
}
