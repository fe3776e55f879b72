//! The sources that the lab's Kubernetes is built from, as Go keeps them.

use super::go::KUBERNETES;
use crate::command::{last_lines, render};
use crate::error::{Doing, Error, Result};
use crate::layout::write_private;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders of Go modules that Kubernetes is built from, in the order of `names`; `work` is a folder to write to.
pub fn kubernetes_sources(names: &[&str], work: &Path) -> Result<Vec<PathBuf>> {
    let (go_mod, go_sum) = KUBERNETES.pins();
    write_private(&work.join("go.mod"), go_mod)?;
    write_private(&work.join("go.sum"), go_sum)?;
    let mut command = Command::new("go");
    command.args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}"]).args(names).current_dir(work);
    let line = render(&command);
    let output = command.output().doing(|| format!("run `{line}`"))?;
    let dirs: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect();
    if !output.status.success() || dirs.len() != names.len() || dirs.iter().any(|dir| !dir.is_dir()) {
        return Err(Error::Command {
            command: line,
            status: output.status.to_string(),
            output: last_lines(&output.stderr, 20),
        });
    }
    Ok(dirs)
}
