//! `atoll lb` as a process: it carries, follows its file, refuses a wrong one, and lets connections finish.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::atoll;

const DEADLINE: Duration = Duration::from_secs(30);

/// A server that says its name and then repeats.
fn server(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let _ = stream.write_all(name.as_bytes());
                let mut answers = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut answers);
            });
        }
    });
    address
}

/// The process, and what it logs.
struct Lb {
    process: Child,
    lines: Receiver<serde_json::Value>,
}

impl Lb {
    fn start(config: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args(["lb", "--threads", "2", "--log-format", "json", "--config"]).arg(config);
        Self::run(command)
    }

    fn run(mut command: Command) -> Self {
        let mut process = command.env_clear().stderr(Stdio::piped()).spawn().unwrap();
        let (send, lines) = channel();
        let logs = BufReader::new(process.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in logs.lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { process, lines }
    }

    /// The next line that says so.
    fn says(&self, message: &str) -> serde_json::Value {
        loop {
            let line = self.lines.recv_timeout(DEADLINE).unwrap_or_else(|_| panic!("never: {message}"));
            if line["message"] == message {
                return line;
            }
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Lb {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn connect(address: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut name = [0; 5];
    stream.read_exact(&mut name).unwrap();
    (stream, String::from_utf8_lossy(&name).into_owned())
}

fn repeats(stream: &mut TcpStream) -> bool {
    let mut heard = [0; 4];
    stream.write_all(b"well").is_ok() && stream.read_exact(&mut heard).is_ok() && heard == *b"well"
}

#[test]
fn a_file_is_followed_and_connections_outlive_its_changes() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("lb.yaml");
    let write = |backend: SocketAddr| {
        let text = format!(
            "listeners: [{{name: web, address: '127.0.0.1:0', backends: [{{address: '{backend}'}}]}}]"
        );
        std::fs::write(&config, text).unwrap();
    };
    let (paris, tokyo) = (server("paris"), server("tokyo"));
    write(paris);
    let lb = Lb::start(&config);
    let address: SocketAddr = lb.says("listening")["address"].as_str().unwrap().parse().unwrap();
    lb.says("applied the configuration");
    let (mut old, name) = connect(address);
    assert_eq!(name, "paris");

    std::fs::write(&config, "listeners: [{name: web}]").unwrap();
    lb.signal("-HUP");
    assert!(
        lb.says("the new configuration is invalid; keeping the last one")["why"]
            .as_str()
            .unwrap()
            .contains("address")
    );
    assert_eq!(connect(address).1, "paris");

    // Without a signal it takes up to a second.
    write(tokyo);
    lb.says("applied the configuration");
    assert_eq!(connect(address).1, "tokyo");
    assert!(repeats(&mut old), "a connection to a backend that is no longer listed may finish");

    lb.signal("-TERM");
    lb.says("closing");
    assert!(repeats(&mut old), "a connection may finish when the process is asked to end");
    drop(old);
    let mut lb = lb;
    assert!(lb.process.wait().unwrap().success());
}

#[test]
fn a_wrong_file_is_refused_at_the_start_with_everything_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("lb.yaml");
    std::fs::write(
        &config,
        "listeners: [{name: a, address: '127.0.0.1:80'}, {name: b, address: '127.0.0.1:80'}]",
    )
    .unwrap();
    let path = config.to_str().unwrap();
    let want = format!(
        "error: invalid configuration file {path}
  why: `a` and `b` both use TCP 127.0.0.1:80
  hint: see `atoll lb --help` for an example
"
    );
    assert_eq!(atoll(&["lb", "--config", path, "--check"]), (Some(2), String::new(), want));
    std::fs::write(&config, "listeners: [{name: a, address: '127.0.0.1:80'}]").unwrap();
    let (code, said, _) = atoll(&["lb", "--config", path, "--check"]);
    assert_eq!((code, said), (Some(0), format!("{path}: 1 listeners\n")));
}

/// A hub that carries connections itself lets them finish as well.
#[test]
fn connections_by_a_hub_may_finish_when_it_is_asked_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("hub");
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(["hub", "--api-address", "127.0.0.1:0", "--metrics-address", "none", "--identity", "hub-0"]);
    command.args(["--lb", "--log-format", "json", "--data-dir"]).arg(&data);
    let mut hub = Lb::run(command);
    let backend = server("paris");
    let manifest = folder.path().join("published.json");
    let told = serde_json::json!({"listeners": [
        {"name": "web", "address": "127.77.0.1:0", "backends": [{"address": backend}]}]});
    let object = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "lb.shop.web", "namespace": "atoll-system",
            "labels": {"atoll.dev/balancer": "builtin"}},
        "data": {"lb.json": told.to_string()}});
    std::fs::write(&manifest, object.to_string()).unwrap();
    hub.says("leading");
    let mut apply = Command::new(env!("CARGO_BIN_EXE_atoll"));
    apply.arg("apply").arg("-f").arg(&manifest).arg("--kubeconfig").arg(data.join("kubeconfig"));
    let applied = apply.env_clear().output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    let address: SocketAddr = hub.says("listening")["address"].as_str().unwrap().parse().unwrap();
    let (mut old, name) = connect(address);
    assert_eq!(name, "paris");
    hub.signal("-TERM");
    hub.says("closing");
    assert!(repeats(&mut old), "a connection may finish when the hub is asked to end");
    drop(old);
    assert!(hub.process.wait().unwrap().success());
}

#[test]
fn what_is_only_for_a_hub_is_not_taken_with_a_file() {
    for flag in [["--near", "paris"], ["--interface", "eth0"], ["--state", "lb.json"], ["--context", "hub"]] {
        let (code, _, said) = atoll(&["lb", "--config", "lb.yaml", flag[0], flag[1]]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("cannot be used with") && said.contains(flag[0]), "{said}");
    }
}

#[test]
fn a_hub_that_is_there_already_is_said_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let hub = |data: &Path, address: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args(["hub", "--metrics-address", "none", "--identity", "hub-0", "--log-format", "json"]);
        command.args(["--api-address", address, "--data-dir"]).arg(data).env_clear();
        command
    };
    let data = folder.path().join("hub");
    let first = Lb::run(hub(&data, "127.0.0.1:0"));
    let url = first.says("serving the hub's API")["url"].as_str().unwrap().to_owned();
    let address = url.rsplit('/').next().unwrap();
    let other = folder.path().join("other");
    for (data, address, hint) in
        [(&data, "127.0.0.1:0", "another hub is running"), (&other, address, "--api-address")]
    {
        let output = hub(data, address).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("cannot start the hub's own API server") && said.contains(hint), "{said}");
    }
}
