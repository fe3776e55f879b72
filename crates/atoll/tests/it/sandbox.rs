//! A sandbox of two members for one test.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::said;

/// How long anything may take: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// `atoll up` in a directory of its own; it ends with it.
pub(super) struct Sandbox {
    dir: tempfile::TempDir,
}

impl Sandbox {
    pub(super) fn start() -> Self {
        let sandbox = Self { dir: tempfile::tempdir().unwrap() };
        let dir = sandbox.path("up");
        let begun = Instant::now();
        loop {
            let words = ["up", "--detach", "--members", "2", "--fresh", "--dir", &dir];
            let (code, _, talk) = sandbox.atoll(&words, None);
            if code == Some(0) {
                return sandbox;
            }
            // Others that start at the same moment may take its addresses.
            assert!(talk.contains("is already in use") && begun.elapsed() < PATIENCE, "{talk}");
        }
    }

    /// A file or folder of the test; `up` is the sandbox's own.
    pub(super) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// The kubeconfig of the hub, or of a member's administrator.
    pub(super) fn kubeconfig(&self, cluster: &str) -> String {
        match cluster {
            "hub" => self.path("up/hub/kubeconfig"),
            member => self.path(&format!("up/members/{member}/kubeconfig")),
        }
    }

    pub(super) fn atoll(&self, arguments: &[&str], input: Option<&str>) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args(arguments).env_clear().env("HOME", self.dir.path()).env("PATH", "/usr/bin:/bin");
        command.env("KUBECONFIG", self.kubeconfig("hub")).stdin(Stdio::null());
        said(command, input)
    }

    /// Runs the words of a line.
    pub(super) fn run(&self, line: &str) -> (Option<i32>, String, String) {
        self.atoll(&line.split(' ').collect::<Vec<_>>(), None)
    }

    /// The same, which has to succeed.
    pub(super) fn ok(&self, line: &str) -> String {
        let (code, out, talk) = self.run(line);
        assert_eq!(code, Some(0), "{line}: {talk}");
        out
    }

    /// Runs a line until what it prints is right.
    pub(super) fn until(&self, line: &str, is: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let (code, out, talk) = self.run(line);
            if code == Some(0) && is(&out) {
                return out;
            }
            assert!(begun.elapsed() < PATIENCE, "{line}: {code:?}\n{out}\n{talk}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(super) fn apply(&self, cluster: &str, objects: &[Value]) {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        let file = self.kubeconfig(cluster);
        let (code, _, talk) =
            self.atoll(&["apply", "-f", "-", "--kubeconfig", &file], Some(&text.join("\n---\n")));
        assert_eq!(code, Some(0), "{talk}");
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let dir = self.path("up");
        self.atoll(&["down", "--dir", &dir], None);
    }
}
