//! Where a lab keeps its files.
//!
//! ```text
//! <state>/<lab>/lab.json          what was asked for, and the lab's slot
//!               kubeconfig        contexts member1..N
//!               member1/          pki, configuration, etcd's data, logs/, components/ (recorded processes)
//! <state>/<lab>.lock              held by whoever drives the lab
//! <cache>/…                       built programs and images, keyed by version and content
//! ```

use crate::error::{Doing, Error, Result};
use crate::image::digest;
use std::path::{Path, PathBuf};

/// Names the folder of labs; every process of a lab carries its own folder's path in this variable,
/// which is how `down` finds what a crash left behind.
pub const MARK: &str = "ATOLL_LAB";

/// The folder that holds the state of every lab on this host, free of links and dots as far as it exists.
pub fn state_root() -> PathBuf {
    let root = variable("ATOLL_LAB_STATE").unwrap_or_else(|| "/var/lib/atoll-lab".into());
    let absolute = std::path::absolute(&root).unwrap_or(root);
    std::fs::canonicalize(&absolute).unwrap_or(absolute)
}

/// An environment variable that names a folder; an empty one counts as unset.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder that holds what was built once.
pub fn cache_root() -> PathBuf {
    let home = || variable("HOME").unwrap_or_else(|| "/root".into());
    let xdg = || variable("XDG_CACHE_HOME").unwrap_or_else(|| home().join(".cache"));
    variable("ATOLL_LAB_CACHE").unwrap_or_else(|| xdg().join("atoll-lab"))
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

    #[cfg(test)]
    pub(crate) fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The lab's own folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The environment entry that marks this lab's processes.
    pub(crate) fn mark(&self) -> String {
        format!("{MARK}={}", self.dir.display())
    }

    /// The name of the lab's control group: its own name, and a digest, since labs of different state folders
    /// may share a name.
    pub(crate) fn group(&self) -> String {
        let name = self.dir.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}-{}", &digest(self.dir.as_os_str().as_encoded_bytes())[..8])
    }

    /// Refuses a folder in which components could not open their sockets or quote their paths.
    pub(crate) fn check(&self) -> Result<()> {
        let longest = self.dir.join("member99/kubelet/pod-resources/kubelet.sock");
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
        if longest.as_os_str().len() > 107 || !self.dir.as_os_str().as_encoded_bytes().iter().all(plain) {
            return Err(Error::refused(
                format!("clusters cannot live in {}", self.dir.display()),
                "set ATOLL_LAB_STATE to a shorter path of letters, digits, dots, dashes and underscores",
            ));
        }
        Ok(())
    }

    /// Where the logs of a start that failed are kept.
    pub(crate) fn failed(&self) -> PathBuf {
        let mut name = self.dir.clone().into_os_string();
        name.push(".failed");
        name.into()
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

/// Writes `text` to `path`, whole or not at all, readable by its owner only, making the folders above it.
pub(crate) fn write_private(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let doing = || format!("write {}", path.display());
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let _ = std::fs::remove_file(&unfinished);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(&unfinished).doing(doing)?.write_all(text.as_ref()).doing(doing)?;
    std::fs::rename(&unfinished, path).doing(doing)
}

/// Makes `path` and the folders above it, for their owner only.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).doing(|| format!("make the folder {}", path.display()))
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).doing(|| format!("read {}", path.display()))
}

/// Opens the file that a lock is taken on. It is never removed: another process may hold it.
pub(crate) fn lock_file(path: &Path) -> Result<std::fs::File> {
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).open(path).doing(|| format!("open {}", path.display()))
}

/// Takes the lock at `path`, as soon as no other process has it.
pub(crate) fn lock(path: &Path) -> Result<std::fs::File> {
    let file = lock_file(path)?;
    file.lock().doing(|| format!("lock {}", path.display()))?;
    Ok(file)
}

/// Takes the lock at `path`, or returns `None` when another process has it.
pub(crate) fn try_lock(path: &Path) -> Result<Option<std::fs::File>> {
    let doing = || format!("lock {}", path.display());
    let file = lock_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error).doing(doing),
    }
}
