//! kubectl and the Python package with pods that run: see [`crate::programs`] for what they do.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::clients::{kubectl, script};
use crate::fixtures::core;
use crate::programs::{BIG, pattern, signal};
use crate::suite::cases;
use crate::target::Target;

cases! {
    kubectl_shows_logs,
    kubectl_follows_a_log,
    kubectl_runs_commands,
    kubectl_carries_large_output,
    kubectl_carries_large_input_to_its_end,
    kubectl_attaches,
    kubectl_runs_a_pod_and_takes_it_away,
    a_client_that_is_killed_ends_its_command,
    a_client_that_is_killed_ends_its_log,
    python_runs_commands,
    the_old_protocol_is_refused_with_a_hint,
}

/// Far more than any command needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace with a pod `p` that runs.
async fn running(api: &Target) -> String {
    let ns = api.namespace().await;
    let spec = json!({"nodeName": "here", "containers": [{"name": "main", "image": "any", "stdin": true}]});
    api.post(&core(&ns, "pods"), json!({"metadata": {"name": "p"}, "spec": spec})).await.created();
    set_status(api, &ns, "p", "Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
    ns
}

/// What a kubelet would say of a pod.
async fn set_status(api: &Target, ns: &str, pod: &str, phase: &str, state: Value) {
    let ready = phase == "Running";
    let status = json!({
        "phase": phase, "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        "containerStatuses": [{
            "name": if pod == "p" { "main" } else { pod }, "image": "any", "imageID": "", "ready": ready,
            "restartCount": 0, "state": state,
        }],
    });
    api.merge(&format!("{}/{pod}/status", core(ns, "pods")), json!({"status": status})).await.ok();
}

async fn command(api: &Target, ns: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(kubectl().await);
    command.env("KUBECONFIG", &api.way.kubeconfig).env("HOME", std::env::temp_dir()).args(["-n", ns]);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Its exit code, and what it writes.
async fn finish(child: Child) -> (i32, Vec<u8>, String) {
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.expect("kubectl ends").expect("kubectl can be run");
    (output.status.code().unwrap_or(-1), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
}

async fn run(api: &Target, ns: &str, arguments: &[&str]) -> (i32, String, String) {
    let child = command(api, ns, arguments).await.spawn().expect("kubectl can be run");
    let (code, stdout, stderr) = finish(child).await;
    (code, String::from_utf8_lossy(&stdout).into_owned(), stderr)
}

fn said(code: i32, stdout: &str, stderr: &str) -> (i32, String, String) {
    (code, stdout.to_owned(), stderr.to_owned())
}

async fn kubectl_shows_logs(api: Target) {
    let ns = running(&api).await;
    assert_eq!(run(&api, &ns, &["logs", "p"]).await, said(0, "one\ntwo\nthree\n", ""));
    assert_eq!(run(&api, &ns, &["logs", "p", "--tail=2"]).await, said(0, "two\nthree\n", ""));
    let (code, _, stderr) = run(&api, &ns, &["logs", "p", "--previous"]).await;
    assert_eq!(code, 1);
    assert_eq!(
        stderr,
        "Error from server (BadRequest): previous terminated container \"main\" in pod \"p\" not found\n"
    );
    let (code, _, stderr) = run(&api, &ns, &["logs", "p", "-c", "other"]).await;
    assert!(code == 1 && stderr.contains("container other is not valid for pod p"), "{stderr}");
}

async fn kubectl_follows_a_log(api: Target) {
    let ns = running(&api).await;
    let mut child = command(&api, &ns, &["logs", "-f", "p"]).await.spawn().expect("kubectl can be run");
    let mut lines = BufReader::new(child.stdout.take().expect("it has an output")).lines();
    for want in ["one", "two", "three"] {
        let line =
            tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("it comes while the log goes on");
        assert_eq!(line.expect("it can be read").as_deref(), Some(want));
    }
    signal(&ns).notify_one();
    assert_eq!(lines.next_line().await.expect("it can be read").as_deref(), Some("later"));
    assert_eq!(finish(child).await.0, 0);
}

async fn kubectl_runs_commands(api: Target) {
    let ns = running(&api).await;
    let (code, stdout, stderr) = run(&api, &ns, &["exec", "p", "--", "echo", "a", "b c", "ü"]).await;
    assert_eq!((code, stdout.as_str()), (0, "a b c ü\n"), "{stderr}");
    let (code, _, stderr) = run(&api, &ns, &["exec", "p", "--", "exit", "3"]).await;
    assert_eq!((code, stderr.as_str()), (3, "command terminated with exit code 3\n"));
    let (code, _, stderr) = run(&api, &ns, &["exec", "p", "--", "nothing"]).await;
    let want = "error: Internal error occurred: error executing command in container: \"nothing\" is no program here\n";
    assert_eq!((code, stderr.as_str()), (1, want));
    let (code, _, stderr) = run(&api, &ns, &["exec", "p", "-c", "other", "--", "echo"]).await;
    assert!(code == 1 && stderr.contains("container other is not valid for pod p"), "{stderr}");
}

async fn kubectl_carries_large_output(api: Target) {
    let ns = running(&api).await;
    let child = command(&api, &ns, &["exec", "p", "--", "big"]).await.spawn().expect("kubectl can be run");
    let (code, stdout, stderr) = finish(child).await;
    assert_eq!((code, stdout.len()), (0, BIG), "{stderr}");
    assert!(stdout == pattern(BIG), "bytes are out of place");
}

async fn kubectl_carries_large_input_to_its_end(api: Target) {
    let ns = running(&api).await;
    let (code, stdout, stderr) = with_input(&api, &ns, &["exec", "-i", "p", "--", "cat"], pattern(BIG)).await;
    assert_eq!((code, stdout.len()), (0, BIG), "{stderr}");
    assert!(stdout == pattern(BIG), "bytes are out of place");
    assert!(stderr.contains("no more input"), "{stderr}");
}

async fn kubectl_attaches(api: Target) {
    let ns = running(&api).await;
    let (code, stdout, stderr) = with_input(&api, &ns, &["attach", "-i", "p"], b"hello\n".to_vec()).await;
    assert_eq!((code, String::from_utf8_lossy(&stdout).as_ref()), (0, "hello\n"), "{stderr}");
}

async fn with_input(api: &Target, ns: &str, arguments: &[&str], input: Vec<u8>) -> (i32, Vec<u8>, String) {
    let mut command = command(api, ns, arguments).await;
    let mut child = command.stdin(Stdio::piped()).spawn().expect("kubectl can be run");
    let mut stdin = child.stdin.take().expect("it has an input");
    tokio::spawn(async move {
        let _ = stdin.write_all(&input).await;
    });
    finish(child).await
}

async fn kubectl_runs_a_pod_and_takes_it_away(api: Target) {
    let ns = api.namespace().await;
    let arguments = [
        "run",
        "once",
        "-i",
        "--rm",
        "--restart=Never",
        "--image=any",
        "--override-type=strategic",
        "--overrides={\"spec\":{\"nodeName\":\"here\"}}",
        "--",
        "--flag=1",
    ];
    let node = async {
        let path = format!("{}/once", core(&ns, "pods"));
        api.until(&path, |answer| answer.code == 200).await;
        set_status(&api, &ns, "once", "Running", json!({"running": {}})).await;
        // kubectl attaches, the program reads to its end, and then the pod is done.
        signal(&ns).notified().await;
        set_status(&api, &ns, "once", "Succeeded", json!({"terminated": {"exitCode": 0}})).await;
    };
    let client = async {
        let mut command = command(&api, &ns, &arguments).await;
        let mut child = command.stdin(Stdio::piped()).spawn().expect("kubectl can be run");
        let mut stdin = child.stdin.take().expect("it has an input");
        stdin.write_all(b"hello\n").await.expect("it reads");
        let mut stdout = BufReader::new(child.stdout.take().expect("it has an output"));
        let mut all = String::new();
        while !all.ends_with("hello\n") {
            assert_ne!(stdout.read_line(&mut all).await.expect("it can be read"), 0, "{all}");
        }
        drop(stdin);
        signal(&ns).notify_one();
        stdout.read_to_string(&mut all).await.expect("it can be read");
        let (code, _, stderr) = finish(child).await;
        (code, all, stderr)
    };
    let ((), (code, stdout, stderr)) = tokio::join!(node, client);
    // kubectl shows the log first, since it may have missed something.
    let want = format!("one\ntwo\nthree\nhello\npod \"once\" deleted from {ns} namespace\n");
    assert_eq!((code, stdout), (0, want), "{stderr}");
    api.until_gone(&format!("{}/once", core(&ns, "pods"))).await;
}

async fn a_client_that_is_killed_ends_its_command(api: Target) {
    let ns = running(&api).await;
    let mut child =
        command(&api, &ns, &["exec", "p", "--", "forever"]).await.spawn().expect("kubectl can be run");
    let mut lines = BufReader::new(child.stdout.take().expect("it has an output")).lines();
    assert_eq!(lines.next_line().await.expect("it can be read").as_deref(), Some("started"));
    child.kill().await.expect("it can be killed");
    tokio::time::timeout(PATIENCE, signal(&ns).notified()).await.expect("the command ends with its client");
}

async fn a_client_that_is_killed_ends_its_log(api: Target) {
    let ns = running(&api).await;
    let mut child = command(&api, &ns, &["logs", "-f", "p"]).await.spawn().expect("kubectl can be run");
    let mut lines = BufReader::new(child.stdout.take().expect("it has an output")).lines();
    assert_eq!(lines.next_line().await.expect("it can be read").as_deref(), Some("one"));
    child.kill().await.expect("it can be killed");
    tokio::time::timeout(PATIENCE, signal(&ns).notified()).await.expect("the log ends with its client");
}

async fn python_runs_commands(api: Target) {
    running(&api).await;
    script(&api, "python.sh", &["python_streams.py"]).await;
}

async fn the_old_protocol_is_refused_with_a_hint(api: Target) {
    let ns = running(&api).await;
    let mut command = command(&api, &ns, &["exec", "p", "--", "echo"]).await;
    command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false");
    let (code, _, stderr) = finish(command.spawn().expect("kubectl can be run")).await;
    assert!(code == 1 && stderr.contains("this server streams by WebSocket only"), "{stderr}");
}
