//! Can real clusters run here? If not, why not, and what to do about it.

use crate::error::{Error, Result};
use std::path::Path;
use std::process::Command;

/// Why real clusters can't run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// Only Linux has network namespaces.
    Linux {
        /// What this is instead.
        system: &'static str,
    },
    /// Namespaces, mounts and containers need root.
    Root,
    /// Kubernetes is built from Go modules.
    Go,
    /// The program in the pods is compiled by the lab.
    Rust,
    /// Nothing can be made.
    Forbidden {
        /// What was tried, and what the system said.
        why: String,
    },
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Linux { system } => {
                write!(f, "this is {system}, and real clusters need Linux's namespaces")
            }
            Self::Root => {
                f.write_str("not root: run as root (sudo) to let it make namespaces and run containers")
            }
            Self::Go => f.write_str("no `go` on the PATH: install Go 1.26 or newer to build Kubernetes with"),
            Self::Rust => {
                f.write_str("no `rustc` on the PATH: install Rust to compile the pods' program with")
            }
            Self::Forbidden { why } => write!(f, "this machine lets no namespaces be made: {why}"),
        }
    }
}

/// Fails where real clusters can't run, before anything is tried.
pub fn check() -> Result<()> {
    missing().map_or(Ok(()), |missing| Err(Error::CannotRun(missing)))
}

/// Fails where labs can't be looked at or removed.
pub fn check_to_manage() -> Result<()> {
    missing_to_manage().map_or(Ok(()), |missing| Err(Error::CannotManage(missing)))
}

/// What is missing to look at labs or to remove one.
pub fn missing_to_manage() -> Option<Missing> {
    if !cfg!(target_os = "linux") {
        return Some(Missing::Linux { system: std::env::consts::OS });
    }
    (!rustix::process::geteuid().is_root()).then_some(Missing::Root)
}

/// What is missing for real clusters to run here, if anything.
pub fn missing() -> Option<Missing> {
    if let Some(missing) = missing_to_manage() {
        return Some(missing);
    }
    if !crate::install::is_complete(&crate::cache_root()) {
        for (program, missing) in [("go", Missing::Go), ("rustc", Missing::Rust)] {
            if !on_path(program) {
                return Some(missing);
            }
        }
    }
    let tried = Command::new("unshare").args(["--fork", "--pid", "--mount", "--net", "true"]).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            Some(Missing::Forbidden { why: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
        }
        Err(error) => Some(Missing::Forbidden { why: format!("unshare: {error}") }),
    }
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}
