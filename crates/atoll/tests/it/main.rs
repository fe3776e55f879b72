//! Runs the binary; what it says stands in the test.

#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

mod backup;
mod balanced;
mod check;
mod confined;
mod explain;
mod fake_hub;
mod help;
mod lb;
mod lb_role;
mod members;
mod objects;
mod policies;
mod sandbox;
mod walkthrough;
mod which_hub;

use std::io::Write;
use std::process::{Command, Stdio};

/// Exit code, stdout and stderr of a run without any kubeconfig of the environment.
fn atoll(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(arguments).env_clear().env("HOME", "/nonexistent");
    let output = command.output().expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Runs a command with something on its stdin: exit code, stdout and stderr.
fn said(mut command: Command, input: Option<&str>) -> (Option<i32>, String, String) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().unwrap();
    if let Some(input) = input {
        let (mut pipe, input) = (child.stdin.take().unwrap(), input.to_owned());
        // It may answer before it has read everything.
        std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    }
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn crds_are_those_of_the_api_crate_as_yaml_and_as_json() {
    let (code, yaml, talk) = atoll(&["crds"]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    assert_eq!(yaml, include_str!("../../../api/tests/golden/crds.yaml"));
    let (_, json, _) = atoll(&["crds", "-o", "json"]);
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    let names: Vec<_> =
        list["items"].as_array().unwrap().iter().map(|crd| crd["metadata"]["name"].as_str()).collect();
    assert_eq!(names.len(), yaml.split("---\n").count(), "as many as there are documents");
    assert_eq!(names[0], Some("clusterproperties.about.k8s.io"));
}

#[test]
fn the_version_is_one_line() {
    assert_eq!(atoll(&["--version"]).1, concat!("atoll ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_name_that_is_no_label_is_refused_before_anything_is_read() {
    let long = "x".repeat(49);
    for name in ["Paris", "a.b", "-a", &long] {
        let (code, out, talk) = atoll(&["join", "--cluster-kubeconfig", "/nonexistent", "--", name]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{name}");
        let want = format!(
            "error: cannot join `{name}`: `{name}` is not a valid name for a member
  why: a name is a DNS label (a-z, 0-9 and inner dashes) of at most 48 characters
  hint: choose another name, such as `paris` or `eu-west-1`
"
        );
        assert_eq!(talk, want);
    }
}

#[test]
fn a_clusterset_needs_a_name_that_is_one() {
    let arguments = ["join", "paris", "--cluster-kubeconfig", "/nonexistent", "--clusterset", ""];
    let (code, _, talk) = atoll(&arguments);
    let want = "\
error: cannot join `paris`: `` is not a valid name for a clusterset
  why: a name consists of DNS labels (a-z, 0-9 and inner dashes), separated by dots
  hint: use another --clusterset, such as `prod`, or remove the flag
";
    assert_eq!((code, talk.as_str()), (Some(2), want));
}

#[test]
fn a_hub_with_an_impossible_lease_or_no_identity_does_not_start() {
    let kubeconfig = std::env::temp_dir().join(format!("atoll-it-{}.yaml", std::process::id()));
    let text = r#"{"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}], "users": [],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": ""}}], "current-context": "x"}"#;
    std::fs::write(&kubeconfig, text).unwrap();
    let file = kubeconfig.to_str().unwrap();
    for (flags, says) in [
        (["--lease-time", "2500000h"], "is not between 2 s and 3600 s"),
        (["--lease-time", "1s"], "is not between 2 s and 3600 s"),
        (["--identity", ""], "the identity is empty"),
    ] {
        let hub = [&["hub", "--kubeconfig", file][..], &flags[..]].concat();
        let (code, _, talk) = atoll(&hub);
        assert_eq!(code, Some(2), "{flags:?} {talk}");
        assert!(talk.contains(says) && talk.contains("hint: "), "{talk}");
    }
    std::fs::remove_file(&kubeconfig).unwrap();
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named() {
    let (code, _, talk) = atoll(&["join", "paris", "--cluster-kubeconfig", "/nonexistent"]);
    assert_eq!(code, Some(2));
    let want = "\
error: cannot join `paris`: cannot use the kubeconfig `/nonexistent`
  why: cannot read /nonexistent: No such file or directory (os error 2)
  hint: use an existing file, and a context in it (list them with `kubectl config get-contexts`)
";
    assert_eq!(talk, want);
}

#[test]
fn a_usage_error_of_a_benchmark_says_what_to_change() {
    let (code, _, talk) = atoll(&["bench", "propagation", "--from", "/nonexistent", "--to", "/nonexistent"]);
    let want = "\
error: cannot read the kubeconfig `/nonexistent`
  why: No such file or directory (os error 2)
  hint: use a kubeconfig that this user can read
";
    assert_eq!((code, talk.as_str()), (Some(2), want));
    let (code, _, talk) = atoll(&[
        "bench",
        "propagation",
        "--from",
        "a",
        "--to",
        "b",
        "--to-context",
        "x",
        "--to-context",
        "y",
    ]);
    assert_eq!(code, Some(2));
    assert!(talk.starts_with("error: there are more --to-context flags than --to flags\n  hint: "), "{talk}");
    let (code, _, talk) = atoll(&["bench", "propagation", "--from", "a", "--to", "b", "--only", "restart"]);
    assert_eq!(code, Some(2));
    assert!(
        talk.starts_with("error: the scenario `restart` cannot be measured from outside\n  hint: "),
        "{talk}"
    );
    let (code, _, talk) = atoll(&["bench", "propagation", "--from", "a", "--to", "b", "--path", "mcs"]);
    assert_eq!(code, Some(2));
    assert!(talk.contains("--hub <FILE>"), "{talk}");
    let (code, _, talk) = atoll(&["bench", "api", "--kubeconfig", "a", "--pid", "1", "--pid", "2"]);
    assert_eq!(code, Some(2));
    assert!(
        talk.starts_with("error: there are more --context or --pid flags than --kubeconfig flags\n  hint: "),
        "{talk}"
    );
}

#[test]
fn without_any_kubeconfig_the_hub_says_what_to_name() {
    let of_kubectl =
        "use an existing file, and a context in it (list them with `kubectl config get-contexts`)";
    let of_hub = "no hub was found on this host: name its kubeconfig with --kubeconfig or $KUBECONFIG, or start a sandbox with `atoll up`";
    for (command, hint, exit) in [
        (&["clusters"][..], of_hub, 1),
        (&["unjoin", "paris"], of_hub, 1),
        (&["dns"], of_kubectl, 2),
        (&["dns", "setup"], of_kubectl, 2),
    ] {
        let (code, out, talk) = atoll(command);
        assert_eq!((code, out.as_str()), (Some(exit), ""), "{command:?} {talk}");
        assert!(talk.starts_with("error: cannot use the kubeconfig of the environment\n"), "{talk}");
        assert!(talk.ends_with(&format!("\n  hint: {hint}\n")), "{talk}");
    }
}

#[test]
fn an_invalid_range_or_duration_is_a_usage_error() {
    for (arguments, says) in [
        (
            &["join", "a", "--cluster-kubeconfig", "x", "--pod-cidr", "10.0.0.0"][..],
            "is not a CIDR such as 10.1.0.0/16",
        ),
        (
            &["hub", "--lease-time", "10"],
            "invalid duration \"10\": use a number and a unit, such as 500ms, 10s or 2m",
        ),
        (&["join", "a"], "--cluster-kubeconfig"),
    ] {
        let (code, _, talk) = atoll(arguments);
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(talk.contains(says), "{talk}");
    }
}

#[test]
fn the_manifests_of_dns_are_yaml_with_the_image_in_it() {
    let (code, yaml, talk) = atoll(&["dns", "manifest", "--image", "registry/atoll:1.0"]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    let kinds: Vec<_> = yaml.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
    let want = ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service", "Deployment"];
    assert_eq!(kinds[..6], want);
    assert!(yaml.contains("image: registry/atoll:1.0"), "{yaml}");
}

#[test]
fn an_address_that_another_has_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = env!("CARGO_TARGET_TMPDIR");
    let kubeconfig = format!("{folder}/nowhere.kubeconfig");
    let text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], \
        clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: a, user: {}}]}";
    std::fs::write(&kubeconfig, text).unwrap();
    let (code, _, talk) = atoll(&["dns", "--kubeconfig", &kubeconfig, "--listen", &address]);
    assert_eq!(code, Some(1));
    let want = format!(
        "error: cannot serve DNS: cannot listen on {address} over TCP\n  why: Address already in use (os error 98)\n  hint: another process"
    );
    assert!(talk.starts_with(&want), "{talk}");
}

#[test]
fn completion_scripts_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = atoll(&["completion", shell]);
        assert_eq!(code, Some(0));
        assert!(script.contains("atoll"), "{shell}");
    }
}
