//! The programs that make up a cluster, and the command line of each.

use crate::addresses::ClusterAddresses;
use crate::install::Programs;
use crate::pki::FRONT_PROXY;
use crate::spec::Kind;
use std::path::Path;

/// One program of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Component {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    Containerd,
    Kubelet,
    KubeProxy,
    CoreDns,
}

impl Component {
    /// Every component of a whole cluster.
    pub const ALL: [Self; 8] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Containerd,
        Self::Kubelet,
        Self::KubeProxy,
        Self::CoreDns,
    ];

    /// The components of a cluster that is only an API.
    pub const API: [Self; 2] = [Self::Etcd, Self::ApiServer];

    /// The components of an API with the controllers that belong to it.
    pub const API_WITH_CLEANUP: [Self; 3] = [Self::Etcd, Self::ApiServer, Self::ControllerManager];

    /// The program's name, also that of its log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Containerd => "containerd",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::CoreDns => "coredns",
        }
    }
}

/// What a command line depends on.
pub(crate) struct Setting<'a> {
    pub(crate) name: &'a str,
    pub(crate) dir: &'a Path,
    pub(crate) addresses: ClusterAddresses,
    pub(crate) programs: &'a Programs,
    /// Which kube-apiserver.
    pub(crate) api_server: &'a Path,
    pub(crate) kind: Kind,
    /// Whether etcd waits for the disk. Without it a killed etcd loses nothing, only a lost machine does.
    pub(crate) fsync: bool,
    /// Whether the API server records its requests.
    pub(crate) audit: bool,
}

impl Setting<'_> {
    /// Program and arguments of `component`.
    pub(crate) fn argv(&self, component: Component) -> Vec<String> {
        let (program, flags) = match component {
            Component::Etcd => ("/usr/bin/etcd".to_owned(), self.etcd()),
            Component::ApiServer => (self.api_server.display().to_string(), self.api_server()),
            Component::ControllerManager => (self.built(component), self.controller_manager()),
            Component::Scheduler => (self.built(component), self.scheduler()),
            Component::Containerd => {
                ("/usr/bin/containerd".to_owned(), vec![format!("--config={}", self.path("containerd.toml"))])
            }
            Component::Kubelet => (self.built(component), self.kubelet()),
            Component::KubeProxy => {
                (self.built(component), vec![format!("--config={}", self.path("kube-proxy.yaml"))])
            }
            Component::CoreDns => (
                self.programs.coredns.display().to_string(),
                vec!["-conf".to_owned(), self.path("Corefile"), "-dns.port=53".to_owned()],
            ),
        };
        std::iter::once(program).chain(flags).collect()
    }

    fn built(&self, component: Component) -> String {
        self.programs.kubernetes.join(component.name()).display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    fn etcd(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--name={}", self.name),
            format!("--data-dir={}", self.path("etcd")),
            "--listen-client-urls=http://127.0.0.1:2379".into(),
            "--advertise-client-urls=http://127.0.0.1:2379".into(),
            "--listen-peer-urls=http://127.0.0.1:2380".into(),
            "--initial-advertise-peer-urls=http://127.0.0.1:2380".into(),
            format!("--initial-cluster={}=http://127.0.0.1:2380", self.name),
            "--log-level=warn".into(),
        ];
        if !self.fsync {
            flags.push("--unsafe-no-fsync".into());
        }
        flags
    }

    fn api_server(&self) -> Vec<String> {
        let pki = |name: &str| self.path(&format!("pki/{name}"));
        let mut flags = vec![
            "--etcd-servers=http://127.0.0.1:2379".into(),
            format!("--service-cluster-ip-range={}", self.addresses.services().joined()),
            "--secure-port=6443".into(),
            "--bind-address=::".into(),
            format!("--advertise-address={}", self.addresses.node().v4),
            format!("--tls-cert-file={}", pki("apiserver.crt")),
            format!("--tls-private-key-file={}", pki("apiserver.key")),
            format!("--client-ca-file={}", pki("ca.crt")),
            format!("--service-account-key-file={}", pki("sa.pub")),
            format!("--service-account-signing-key-file={}", pki("sa.key")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--token-auth-file={}", pki("tokens.csv")),
            "--authorization-mode=RBAC".into(),
            "--kubelet-preferred-address-types=InternalIP".into(),
            format!("--kubelet-client-certificate={}", pki("kubelet-client.crt")),
            format!("--kubelet-client-key={}", pki("kubelet-client.key")),
            "--allow-privileged=true".into(),
            format!("--requestheader-client-ca-file={}", pki("front-proxy-ca.crt")),
            format!("--requestheader-allowed-names={FRONT_PROXY}"),
            "--requestheader-username-headers=X-Remote-User".into(),
            "--requestheader-group-headers=X-Remote-Group".into(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
            format!("--proxy-client-cert-file={}", pki("front-proxy-client.crt")),
            format!("--proxy-client-key-file={}", pki("front-proxy-client.key")),
        ];
        if self.audit {
            flags.push(format!("--audit-policy-file={}", self.path("audit-policy.yaml")));
            flags.push(format!("--audit-log-path={}", self.path("audit.log")));
            // Blocking: a request is in the log when it is over, not some time after.
            flags.push("--audit-log-mode=blocking".into());
            // In megabytes, and never reached: a recorder must not lose what was turned over.
            flags.push("--audit-log-maxsize=100000".into());
        }
        flags
    }

    fn controller_manager(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--kubeconfig={}", self.path("controller-manager.kubeconfig")),
            format!("--service-account-private-key-file={}", self.path("pki/sa.key")),
            format!("--root-ca-file={}", self.path("pki/ca.crt")),
            format!("--service-cluster-ip-range={}", self.addresses.services().joined()),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ];
        if self.kind == Kind::ApiWithCleanup {
            let wanted =
                "namespace-controller,garbage-collector-controller,clusterrole-aggregation-controller";
            flags.push(format!("--controllers={wanted}"));
        }
        flags
    }

    fn scheduler(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.path("scheduler.kubeconfig")),
            "--leader-elect=false".into(),
            "--secure-port=0".into(),
        ]
    }

    fn kubelet(&self) -> Vec<String> {
        let node = self.addresses.node();
        vec![
            format!("--config={}", self.path("kubelet.yaml")),
            format!("--kubeconfig={}", self.path("kubelet.kubeconfig")),
            format!("--hostname-override={}", self.name),
            format!("--node-ip={},{}", node.v4, node.v6),
            format!("--root-dir={}", self.path("kubelet")),
            format!("--cert-dir={}", self.path("kubelet/pki")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fsync_and_audit_follow_what_was_asked() {
        let programs = Programs { kubernetes: "/k".into(), coredns: "/c".into(), oldest_api_server: None };
        let addresses = ClusterAddresses { slot: 0, number: 1 };
        let mut setting = Setting {
            name: "member1",
            dir: Path::new("/lab/member1"),
            addresses,
            programs: &programs,
            api_server: Path::new("/k/kube-apiserver"),
            kind: Kind::Whole,
            fsync: true,
            audit: false,
        };
        let flags = |setting: &Setting<'_>| {
            [setting.argv(Component::Etcd), setting.argv(Component::ApiServer)].concat().join(" ")
        };
        assert!(!flags(&setting).contains("--unsafe-no-fsync"));
        assert!(!flags(&setting).contains("audit"));
        (setting.fsync, setting.audit) = (false, true);
        assert!(flags(&setting).contains("--unsafe-no-fsync"));
        assert!(flags(&setting).contains("--audit-log-path=/lab/member1/audit.log"));
    }
}
