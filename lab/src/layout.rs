//! Where a lab keeps its files.
//!
//! ```text
//! <state>/<lab>/lab.json          what was asked for, and the lab's slot
//!               kubeconfig        contexts member1..N
//!               member1/          pki, configuration, etcd's data, logs/, components/ (recorded processes)
//! <state>/<lab>.lock              held by whoever drives the lab
//! <cache>/…                       built programs and images, keyed by version and content
//! ```

use crate::error::{Doing, Result};
use std::path::{Path, PathBuf};

/// Names the folder of labs; every process of a lab carries its own folder's path in this variable,
/// which is how `down` finds what a crash left behind.
pub const MARK: &str = "ATOLL_LAB";

/// The folder that holds the state of every lab on this host.
pub fn state_root() -> PathBuf {
    std::env::var_os("ATOLL_LAB_STATE").map_or_else(|| "/var/lib/atoll-lab".into(), PathBuf::from)
}

/// The folder that holds what was built once.
pub fn cache_root() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/root".into()));
    let xdg = || std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
    std::env::var_os("ATOLL_LAB_CACHE").map_or_else(|| xdg().join("atoll-lab"), PathBuf::from)
}

/// The folder of one lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    dir: PathBuf,
}

impl Layout {
    /// The layout of the lab called `name`.
    pub fn of(name: &str) -> Self {
        Self { dir: state_root().join(name) }
    }

    /// The lab's own folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The environment entry that marks this lab's processes.
    pub(crate) fn mark(&self) -> String {
        format!("{MARK}={}", self.dir.display())
    }

    /// What was asked for.
    pub(crate) fn record(&self) -> PathBuf {
        self.dir.join("lab.json")
    }

    /// The kubeconfig with a context per cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// The lock that whoever drives the lab holds.
    pub(crate) fn lock(&self) -> PathBuf {
        let mut name = self.dir.clone().into_os_string();
        name.push(".lock");
        name.into()
    }

    /// The folder of one cluster or bystander.
    pub fn member(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Writes `text` to `path`, readable by its owner only, making the folders above it.
pub(crate) fn write_private(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let doing = || format!("write {}", path.display());
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path).doing(doing)?.write_all(text.as_ref()).doing(doing)
}

/// Makes `path` and the folders above it.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).doing(|| format!("make the folder {}", path.display()))
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).doing(|| format!("read {}", path.display()))
}

/// Takes the lock at `path`, or returns `None` when another process has it.
pub(crate) fn try_lock(path: &Path) -> Result<Option<std::fs::File>> {
    let doing = || format!("lock {}", path.display());
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    let file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(path).doing(doing)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error).doing(doing),
    }
}
