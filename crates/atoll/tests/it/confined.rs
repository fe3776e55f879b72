//! Attacks by a `process:` pod of the sandbox: it is a program of this machine, and reads no key of the clusters, as whichever user.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::said;

const PATIENCE: Duration = Duration::from_secs(90);
/// Not root, and nobody who has files.
const ORDINARY: u32 = 65_534;

/// A sandbox of one user.
struct World {
    folder: tempfile::TempDir,
    user: Option<u32>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.atoll(&["down", "--dir", &self.path("up")]);
    }
}

impl World {
    fn start(user: Option<u32>, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        if let Some(user) = user {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(user)).unwrap();
        }
        // Where every user can run it.
        std::fs::copy(env!("CARGO_BIN_EXE_atoll"), folder.path().join("atoll")).unwrap();
        let world = Self { folder, user };
        let begun = Instant::now();
        let up = world.path("up");
        let words = [&["up", "--detach", "--members", "2", "--fresh", "--dir", &up], flags].concat();
        loop {
            let (code, _, talk) = world.atoll(&words);
            if code == Some(0) {
                return world;
            }
            // Others that start at the same moment may take its addresses.
            assert!(talk.contains("is already in use") && begun.elapsed() < PATIENCE, "{talk}");
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn atoll(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(self.path("atoll"));
        command.args(arguments).env_clear().env("HOME", self.folder.path()).env("PATH", "/usr/bin:/bin");
        command.env("KUBECONFIG", self.path("up/kubeconfig")).stdin(Stdio::null());
        command.env("SECRET_OF_THE_HUB", "hunter2").current_dir(self.folder.path());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        said(command, None)
    }

    /// Everything that the sandbox keeps.
    fn files(&self) -> Vec<PathBuf> {
        fn all(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let kind = path.symlink_metadata().unwrap().file_type();
                if kind.is_dir() {
                    all(&path, found);
                } else if kind.is_file() {
                    found.push(path);
                }
            }
        }
        let mut found = Vec::new();
        all(&self.folder.path().join("up"), &mut found);
        found
    }

    /// What the pod prints, up to a line that ends it.
    fn log_of(&self, pod: &str, end: &str) -> String {
        let begun = Instant::now();
        loop {
            let (_, out, talk) = self.atoll(&["logs", "-C", "member1", pod]);
            if out.lines().any(|line| line == end) {
                return out;
            }
            let told = || self.atoll(&["get", "-C", "member1", "pods", "-o", "yaml"]).1;
            assert!(begun.elapsed() < PATIENCE, "{out}\n{talk}\n{}", told());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn run(&self, pod: &str, script: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "process:sh", "args": ["-c", script.replace('$', "$$")]}]}});
        let file = self.path("pod.json");
        std::fs::write(&file, object.to_string()).unwrap();
        let (code, _, talk) = self.atoll(&["apply", "-C", "member1", "-f", &file]);
        assert_eq!(code, Some(0), "{talk}");
    }
}

fn users() -> Vec<Option<u32>> {
    match rustix::process::geteuid().is_root() {
        true => vec![None, Some(ORDINARY)],
        false => vec![None],
    }
}

#[test]
fn a_process_pod_that_looks_for_the_keys_of_the_hub_finds_none() {
    for user in users() {
        let world = World::start(user, &[]);
        let files = world.files();
        let names: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
        for known in ["up/kubeconfig", "up/hub/kubeconfig", "up/members/member2/kubeconfig"] {
            assert!(names.iter().any(|name| name.ends_with(known)), "{known} in {names:#?}");
        }
        let up = world.path("up");
        let script = format!(
            r#"
try() {{ if "$@" > /dev/null 2>&1; then echo "LEAK $*"; fi; }}
for file in {files}; do
  try cat "$file"
  try cat "/proc/$PPID/root$file"
  try dd if=/dev/null of="$file"
  try ln "$file" /var/tmp/atoll-stolen
done
ln -s {up} /var/tmp/atoll-link-$$
try cat /var/tmp/atoll-link-$$/kubeconfig
rm -f /var/tmp/atoll-link-$$
for file in /proc/$PPID/environ /proc/$PPID/mem /proc/$PPID/maps /proc/$PPID/fd/*; do try head -c 1 "$file"; done
for disk in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem /proc/kcore; do try head -c 1 "$disk"; done
try touch {home}/.bashrc
try touch {home}/.profile
try kill -0 $PPID
env | grep -i -e kubeconfig -e hunter2 && echo "LEAK environment"
for fd in /proc/self/fd/*; do
  case $(readlink "$fd") in *up/*|socket:*|anon_inode:*) echo "LEAK $fd $(readlink "$fd")";; esac
done
try {atoll} get secrets -A --kubeconfig {up}/kubeconfig
echo searched
"#,
            files = names.join(" "),
            home = world.folder.path().display(),
            atoll = world.path("atoll"),
        );
        world.run("thief", &script);
        let log = world.log_of("thief", "searched");
        assert!(!log.contains("LEAK"), "as {user:?}:\n{log}");

        // By exec too.
        let kubeconfig = world.path("up/hub/kubeconfig");
        world.run("idle", "echo up; exec sleep 1000");
        world.log_of("idle", "up");
        let (code, out, talk) = world.atoll(&["exec", "-C", "member1", "idle", "--", "cat", &kubeconfig]);
        assert!(code != Some(0) && out.is_empty(), "as {user:?}: {out} {talk}");
        // The sandbox goes on: nobody ended it or wrote into it.
        assert_eq!(world.atoll(&["get", "-C", "member2", "pods"]).0, Some(0));
    }
}

/// The honest use: it reads the machine's files, writes to temporary directories, listens.
#[test]
fn an_honest_process_pod_reads_writes_and_listens() {
    for user in users() {
        let world = World::start(user, &[]);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = world.path("lb.yaml");
        std::fs::write(&config, format!("listeners: [{{name: a, address: '127.0.0.1:{port}'}}]")).unwrap();
        let script = format!(
            r#"
head -1 /etc/passwd > /dev/null && echo read
echo x > /var/tmp/atoll-honest-$$ && rm /var/tmp/atoll-honest-$$ && echo wrote
echo x > /dev/null && echo told >&2
sh -c 'kill -TERM $$'; echo signalled
test -n "$POD_IP" && echo placed
echo done
exec {atoll} lb --threads 1 --data-path user-space --config {config}
"#,
            atoll = world.path("atoll"),
        );
        world.run("honest", &script);
        let log = world.log_of("honest", "done");
        for line in ["read", "wrote", "told", "signalled"] {
            assert!(log.lines().any(|said| said == line), "as {user:?}: {line} in\n{log}");
        }
        let begun = Instant::now();
        while let Err(error) = TcpStream::connect(("127.0.0.1", port)) {
            assert!(begun.elapsed() < PATIENCE, "as {user:?}: {error}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn an_operator_who_allows_it_gets_pods_without_confinement() {
    let world = World::start(None, &["--allow-unconfined-processes"]);
    let kubeconfig = world.path("up/kubeconfig");
    world.run("free", &format!("head -c 1 {kubeconfig} > /dev/null && echo read; echo done"));
    assert!(world.log_of("free", "done").lines().any(|line| line == "read"));
}
