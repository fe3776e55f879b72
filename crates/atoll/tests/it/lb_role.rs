//! Attacks with the credentials of a balancer: they lead to what a balancer follows, and to nothing else.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::atoll;

const DEADLINE: Duration = Duration::from_secs(60);

/// A process that is ended when the test is.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn hub(data: &Path) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(["hub", "--api-address", "127.0.0.1:0", "--metrics-address", "none", "--identity", "hub-0"]);
    command.args(["--lb-pool", "192.0.2.0/29", "--data-dir"]).arg(data);
    Running(command.env_clear().stderr(Stdio::null()).spawn().unwrap())
}

fn until<T>(what: &str, mut happens: impl FnMut() -> Result<T, String>) -> T {
    let give_up = Instant::now() + DEADLINE;
    loop {
        match happens() {
            Ok(done) => return done,
            Err(why) => assert!(Instant::now() < give_up, "never: {what}: {why}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_stolen_balancer_credential_reads_no_secret_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("hub");
    let _hub = hub(&data);
    let (admin, stolen) = (data.join("kubeconfig"), folder.path().join("lb.kubeconfig"));
    let (admin, stolen) = (admin.to_str().unwrap(), stolen.to_str().unwrap());
    let text = until("the hub's API gives credentials", || {
        match atoll(&["lb", "credentials", "--kubeconfig", admin]) {
            (Some(0), text, _) => Ok(text),
            (_, _, talk) => Err(talk),
        }
    });
    assert!(!text.contains("client-key-data"), "the administrator's key is not in it");
    std::fs::write(stolen, text).unwrap();

    // The honest use.
    let (code, _, talk) = atoll(&["get", "configmaps", "-n", "atoll-system", "--kubeconfig", stolen]);
    assert_eq!(code, Some(0), "{talk}");
    let log = folder.path().join("log");
    let mut lb = Command::new(env!("CARGO_BIN_EXE_atoll"));
    lb.args(["lb", "--data-path", "user-space", "--threads", "1", "--hub", stolen]).env_clear();
    let lb = Running(lb.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap());
    until("a balancer follows the hub with it", || {
        let said = std::fs::read_to_string(&log).unwrap();
        if said.contains("applied the configuration of the hub") { Ok(()) } else { Err(said) }
    });
    drop(lb);

    let manifest = folder.path().join("evil.yaml");
    let evil = [
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: lb.shop.web, namespace: atoll-system}}",
        "{apiVersion: v1, kind: Secret, metadata: {name: mine, namespace: atoll-system}}",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: atoll-lb, namespace: atoll-system}, \
          rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}",
    ];
    for one in evil {
        std::fs::write(&manifest, one).unwrap();
        let (code, said, talk) = atoll(&["apply", "-f", manifest.to_str().unwrap(), "--kubeconfig", stolen]);
        assert_ne!(code, Some(0), "{one}: {said}");
        assert!(talk.to_lowercase().contains("forbidden"), "{one}: {talk}");
    }
    for attack in [
        &["get", "secrets", "-n", "atoll-system"][..],
        &["get", "secrets", "-n", "default"],
        &["get", "configmaps", "-n", "kube-system"],
        &["get", "clusters.cluster.karmada.io"],
        &["get", "multiclusterservices", "-n", "default"],
        &["get", "serviceaccounts", "-n", "atoll-system"],
        &["delete", "serviceaccount", "atoll-lb", "-n", "atoll-system"],
        &["lb", "credentials", "--name", "another"],
    ] {
        let (code, said, talk) = atoll(&[attack, &["--kubeconfig", stolen]].concat());
        assert_ne!(code, Some(0), "{attack:?}: {said}");
        assert!(talk.to_lowercase().contains("forbidden"), "{attack:?}: {talk}");
    }

    // One command revokes it.
    let revoke = ["delete", "serviceaccount", "atoll-lb", "-n", "atoll-system", "--kubeconfig", admin];
    assert_eq!(atoll(&revoke).0, Some(0));
    let (code, said, _) = atoll(&["get", "configmaps", "-n", "atoll-system", "--kubeconfig", stolen]);
    assert_ne!(code, Some(0), "{said}");
}
