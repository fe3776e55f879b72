//! `atoll get`, `apply` and `delete` on an API that this process serves.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use atoll_kubeapi::authn::TokenAuthenticator;
use atoll_kubeapi::environment::Environment;
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::server::Server;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options};
use jiff::Timestamp;

use crate::said;

/// Time stands still, so that ages are the same in every run.
struct Still(AtomicU64);

impl Environment for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn random(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A cluster `member1` as `atoll up` would leave it: its kubeconfig lies in a folder.
struct Cluster {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let pki = Pki::ephemeral(&["127.0.0.1".to_owned()], Timestamp::now().as_second()).unwrap();
        let options = Options::default()
            .tokens(TokenAuthenticator::new(&pki).unwrap())
            .environment(Still(AtomicU64::new(1)));
        runtime.block_on(async {
            let api = Api::start(Store::memory(), options).await.unwrap();
            let server = Server::bind("127.0.0.1:0".parse().unwrap(), &pki).await.unwrap();
            let kubeconfig = pki.kubeconfig(&format!("https://{}", server.address().unwrap()));
            let mut config: serde_json::Value = serde_saphyr::from_str(&kubeconfig).unwrap();
            config["contexts"][0]["name"] = "member1".into();
            config["current-context"] = "member1".into();
            std::fs::write(folder.path().join("kubeconfig"), config.to_string()).unwrap();
            tokio::spawn(server.run(api));
        });
        Self { folder, runtime }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        self.path(name)
    }

    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command
            .args(arguments)
            .env_clear()
            .env("ATOLL_UP_DIR", self.folder.path())
            .env("HOME", "/nonexistent");
        command.stdin(Stdio::null());
        command
    }

    /// Runs `atoll`; its arguments are the words of a line, with `-C member1`.
    fn atoll(&self, line: &str) -> (Option<i32>, String, String) {
        let words: Vec<&str> = line.split(' ').chain(["-C", "member1"]).collect();
        said(self.command(&words), None)
    }

    /// The same, which has to succeed and say nothing on stderr.
    fn ok(&self, line: &str) -> String {
        let (code, out, talk) = self.atoll(line);
        assert_eq!((code, talk.as_str()), (Some(0), ""), "{line}");
        out
    }
}

const SERVE: &str = "\
# A service.
apiVersion: v1
kind: Service
metadata: {name: serve, labels: {app: serve}}
spec: {clusterIP: 10.96.0.10, ports: [{port: 80}], selector: {app: serve}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 2
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec: {containers: [{name: serve, image: \"jeremyot/serve:0a40de8\"}]}
";

#[test]
fn a_file_is_applied_shown_and_deleted() {
    let cluster = Cluster::start();
    let file = cluster.write("serve.yaml", SERVE);
    let apply = format!("apply -f {file}");
    assert_eq!(
        cluster.ok(&format!("{apply} --dry-run")),
        "service/serve created (server dry run)\ndeployment.apps/serve created (server dry run)\n"
    );
    assert_eq!(cluster.ok(&apply), "service/serve created\ndeployment.apps/serve created\n");
    assert_eq!(cluster.ok(&apply), "service/serve unchanged\ndeployment.apps/serve unchanged\n");
    cluster.write("serve.yaml", &SERVE.replace("replicas: 2", "replicas: 3"));
    let dry = "service/serve unchanged (server dry run)\ndeployment.apps/serve configured (server dry run)\n";
    assert_eq!(cluster.ok(&format!("{apply} --dry-run=server")), dry);
    assert_eq!(cluster.ok(&apply), "service/serve unchanged\ndeployment.apps/serve configured\n");

    let want = "\
NAME         TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
kubernetes   ClusterIP   10.96.0.1    <none>        443/TCP   0s
serve        ClusterIP   10.96.0.10   <none>        80/TCP    0s
";
    assert_eq!(cluster.ok("get svc"), want);
    let want = "\
NAME            TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE
service/serve   ClusterIP   10.96.0.10   <none>        80/TCP    0s

NAME                    READY   UP-TO-DATE   AVAILABLE   AGE
deployment.apps/serve   0/3     0            0           0s
";
    assert_eq!(cluster.ok("get services,deploy serve"), want);
    let want = "\
NAMESPACE   NAME    READY   UP-TO-DATE   AVAILABLE   AGE   CONTAINERS   IMAGES                   SELECTOR
default     serve   0/3     0            0           0s    serve        jeremyot/serve:0a40de8   app=serve
";
    assert_eq!(cluster.ok("get deployments.apps -A -o wide"), want);
    assert_eq!(cluster.ok("get svc -l app=serve -o name"), "service/serve\n");
    assert_eq!(cluster.ok("get all -o name"), "service/kubernetes\nservice/serve\ndeployment.apps/serve\n");

    let delete = format!("delete -f {file}");
    let want = "service \"serve\" deleted from default namespace\ndeployment.apps \"serve\" deleted from default namespace\n";
    assert_eq!(cluster.ok(&delete), want);
    let (code, out, talk) = cluster.atoll(&delete);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let want = "\
error: cannot delete service/serve
  why: services \"serve\" not found (404)
error: cannot delete deployment.apps/serve
  why: deployments.apps \"serve\" not found (404)
";
    assert_eq!(talk, want);
    assert_eq!(cluster.ok(&format!("{delete} --ignore-not-found")), "");
}

#[test]
fn objects_come_as_yaml_and_json_without_their_managers() {
    let cluster = Cluster::start();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {sky: blue}\n";
    let apply = cluster.command(&["apply", "-f", "-", "-C", "member1"]);
    assert_eq!(said(apply, Some(map)).1, "configmap/colours created\n");
    let want = "\
apiVersion: v1
data:
  sky: blue
kind: ConfigMap
metadata:
  creationTimestamp: \"2027-01-15T08:00:00Z\"
  name: colours
  namespace: default
";
    let got = cluster.ok("get configmap/colours -o yaml");
    let shown: Vec<&str> =
        got.lines().filter(|line| !line.contains("uid:") && !line.contains("resourceVersion:")).collect();
    assert_eq!(shown, want.lines().collect::<Vec<_>>());
    let list: serde_json::Value = serde_json::from_str(&cluster.ok("get cm -o json")).unwrap();
    assert_eq!((&list["kind"], &list["items"][0]["kind"]), (&"List".into(), &"ConfigMap".into()));
    assert_eq!(list["items"][0]["metadata"]["managedFields"], serde_json::Value::Null);
}

#[test]
fn what_is_not_there_is_told() {
    let cluster = Cluster::start();
    let (code, out, talk) = cluster.atoll("get pods");
    assert_eq!(
        (code, out.as_str(), talk.as_str()),
        (Some(0), "", "No resources found in default namespace.\n")
    );
    assert_eq!(cluster.atoll("get pods -A").2, "No resources found\n");
    for (line, code, want) in [
        ("get boats", 2, "error: the cluster has no resource type `boats`\n  hint: use names as in kubectl"),
        ("get pod a", 1, "error: cannot get pod/a\n  why: pods \"a\" not found (404)\n"),
        ("get pod a -A", 2, "error: a name cannot be combined with --all-namespaces or --selector\n  hint: "),
        ("get pods,svc -w", 2, "error: only one kind or object can be watched\n  hint: "),
        ("delete pods", 2, "error: no name or selector given for pods\n  hint: "),
        ("apply -f /nonexistent", 2, "error: cannot read /nonexistent\n  why: No such file or directory"),
    ] {
        let (got, _, talk) = cluster.atoll(line);
        assert_eq!(got, Some(code), "{line}: {talk}");
        assert!(talk.starts_with(want), "{line}: {talk}");
    }
    // What is there is shown all the same.
    let (code, out, _) = cluster.atoll("get svc kubernetes none -o name");
    assert_eq!((code, out.as_str()), (Some(1), "service/kubernetes\n"));
}

#[test]
fn errors_name_the_file_and_the_document() {
    let cluster = Cluster::start();
    let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n";
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {a: [1]}\n";
    let strange = "apiVersion: sea.example/v1\nkind: Boat\nmetadata: {name: b}\n";
    let file = cluster.write("several.yaml", &[good, bad, strange, good].join("---\n"));
    let (code, out, talk) = cluster.atoll(&format!("apply -f {file}"));
    assert_eq!((code, out.as_str()), (Some(1), "configmap/good created\nconfigmap/good unchanged\n"));
    assert!(
        talk.starts_with(&format!("error: cannot apply configmap/bad ({file}, document 2)\n  why: ")),
        "{talk}"
    );
    let want = format!(
        "error: the cluster does not serve the kind Boat of sea.example/v1 ({file}, document 3)\n  hint: apply its"
    );
    assert!(talk.contains(&want), "{talk}");

    let broken = cluster.write("broken.yaml", &[good, "a: b: c\n"].join("---\n"));
    let (code, out, talk) = cluster.atoll(&format!("apply -f {broken}"));
    assert_eq!((code, out.as_str()), (Some(2), ""), "nothing is applied when a file can't be read");
    assert!(talk.starts_with(&format!("error: cannot read {broken}, document 2\n  why: ")), "{talk}");
}

#[test]
fn a_folder_is_applied_with_a_definition_and_its_objects() {
    let cluster = Cluster::start();
    cluster.write(
        "folder/a.yaml",
        "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example}
spec:
  group: sea.example
  names: {kind: Boat, plural: boats, singular: boat}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
",
    );
    cluster.write(
        "folder/b.json",
        "{\"apiVersion\": \"sea.example/v1\", \"kind\": \"Boat\", \"metadata\": {\"name\": \"anna\"}}",
    );
    cluster.write("folder/readme.txt", "not an object");
    let folder = cluster.path("folder");
    let want = "customresourcedefinition.apiextensions.k8s.io/boats.sea.example created\nboat.sea.example/anna created\n";
    assert_eq!(cluster.ok(&format!("apply -f {folder}")), want);
    assert_eq!(cluster.ok("get boats -o name"), "boat.sea.example/anna\n");
    assert_eq!(cluster.ok("delete boat anna"), "boat.sea.example \"anna\" deleted\n");
}

#[test]
fn namespaces_are_those_of_the_file_or_of_the_flag() {
    let cluster = Cluster::start();
    let map =
        |namespace: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{namespace}}}\n");
    let space = cluster.write("shop.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    let (plain, placed) =
        (cluster.write("plain.yaml", &map("")), cluster.write("placed.yaml", &map(", namespace: shop")));
    cluster.ok(&format!("apply -f {space} -f {plain} -f {placed}"));
    cluster.ok(&format!("apply -f {plain} -n shop"));
    assert_eq!(cluster.ok("get cm -o name"), "configmap/a\n");
    assert_eq!(cluster.ok("get cm -n shop"), "NAME   DATA   AGE\na      0      0s\n");
    let (code, _, talk) = cluster.atoll(&format!("apply -f {placed} -n default"));
    let want =
        format!("error: {placed} has the namespace `shop`, but --namespace is `default`\n  hint: remove");
    assert!(code == Some(2) || code == Some(1), "{code:?}");
    assert!(talk.starts_with(&want), "{talk}");
}

#[test]
fn fields_of_others_are_taken_over_only_by_force() {
    let cluster = Cluster::start();
    let file =
        cluster.write("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: mine}\n");
    let api = cluster.runtime.block_on(async {
        let file = cluster.folder.path().join("kubeconfig");
        let config = kube::config::Kubeconfig::read_from(file).unwrap();
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
        kube::Api::<k8s_openapi::api::core::v1::ConfigMap>::default_namespaced(
            kube::Client::try_from(config).unwrap(),
        )
    });
    let theirs = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "theirs"}});
    let by = kube::api::PatchParams::apply("somebody");
    cluster.runtime.block_on(api.patch("m", &by, &kube::api::Patch::Apply(theirs))).unwrap();
    let (code, _, talk) = cluster.atoll(&format!("apply -f {file}"));
    assert_eq!(code, Some(1));
    assert!(talk.contains("conflict with \"somebody\": .data.a (409)"), "{talk}");
    assert!(talk.ends_with("  hint: use --force-conflicts to take over these fields\n"), "{talk}");
    assert_eq!(cluster.ok(&format!("apply -f {file} --force-conflicts")), "configmap/m configured\n");
}

#[test]
fn changes_are_shown_while_they_happen() {
    let cluster = Cluster::start();
    let file = cluster
        .write("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {a: b}\n");
    cluster.ok(&format!("apply -f {file}"));
    let mut command = cluster.command(&["get", "cm", "-w", "-C", "member1"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    assert_eq!([line(), line()], ["NAME      DATA   AGE", "colours   1      0s"]);
    cluster.write(
        "map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {a: b, c: d}\n",
    );
    cluster.ok(&format!("apply -f {file}"));
    assert_eq!(line(), "colours   2      0s");
    cluster.ok("delete cm colours");
    assert_eq!(line(), "colours   2      0s");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_object_that_can_not_go_is_not_waited_for_longer_than_said() {
    let cluster = Cluster::start();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, finalizers: [example.com/stay]}\n";
    let file = cluster.write("map.yaml", map);
    cluster.ok(&format!("apply -f {file}"));
    let (code, out, talk) = cluster.atoll("delete cm m --timeout 500ms");
    assert_eq!((code, out.as_str()), (Some(1), "configmap \"m\" deleted from default namespace\n"));
    assert!(talk.starts_with("error: configmap/m still exists after 0.5 s\n"), "{talk}");
    assert_eq!(cluster.ok("delete cm m --wait=false"), "configmap \"m\" deleted from default namespace\n");
}

#[test]
fn a_cluster_of_the_sandbox_is_found_by_its_name() {
    let cluster = Cluster::start();
    let (code, _, talk) = said(cluster.command(&["get", "ns", "-C", "member9"]), None);
    assert_eq!(code, Some(2));
    let kubeconfig = cluster.path("kubeconfig");
    let want =
        format!("error: cluster `member9` not found in {kubeconfig}\n  hint: its clusters are member1\n");
    assert_eq!(talk, want);
    let context = ["get", "ns", "default", "-o", "name", "--kubeconfig", &kubeconfig, "--context", "member1"];
    assert_eq!(said(cluster.command(&context), None).1, "namespace/default\n");
    std::fs::remove_file(&kubeconfig).unwrap();
    let (code, _, talk) = cluster.atoll("get ns");
    assert_eq!(code, Some(2));
    assert!(
        talk.starts_with(&format!(
            "error: {kubeconfig} does not exist\n  why: --cluster selects a cluster of"
        )),
        "{talk}"
    );
    assert!(Path::new(&kubeconfig).parent().unwrap().is_dir());
}
