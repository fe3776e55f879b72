//! Clients of others: kubectl, the Python package, a Go program with informers and an election.
//!
//! Each is a script under `tests/clients` that checks what it does itself.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::suite::cases;
use crate::target::Target;

cases! {
    kubectl_does_everything,
    python_lists_watches_and_patches,
    go_informs_and_elects,
}

/// Far more than any of them needs: they may have to be downloaded and built first.
const PATIENCE: Duration = Duration::from_secs(600);

/// The lab's own build, which is there wherever its clusters can run; otherwise whatever this machine has.
pub(crate) async fn kubectl() -> PathBuf {
    if atoll_lab::requirements::missing().is_some() {
        return "kubectl".into();
    }
    let install = || atoll_lab::install(&atoll_lab::cache_root(), &atoll_lab::Progress::silent());
    let installed = tokio::task::spawn_blocking(install).await.expect("it does not panic");
    installed.expect("the lab's programs can be installed").programs.kubectl()
}

/// Runs a script with a way into the server, and a name of its own.
pub(crate) async fn script(api: &Target, name: &str, arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut command = tokio::process::Command::new(folder.join(name));
    command
        .args(arguments)
        .env("KUBECONFIG", &api.way.kubeconfig)
        .env("KUBECTL", kubectl().await)
        .env("NAME", api.label())
        .env("TARGET", target)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("{name} does not end")).expect("a script can be run");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{name}: {}\n{}{}",
        output.status,
        said(&output.stdout),
        said(&output.stderr)
    );
}

async fn kubectl_does_everything(api: Target) {
    script(&api, "kubectl.sh", &[]).await;
}

async fn python_lists_watches_and_patches(api: Target) {
    script(&api, "python.sh", &[]).await;
}

async fn go_informs_and_elects(api: Target) {
    script(&api, "go.sh", &[]).await;
}
