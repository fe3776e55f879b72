//! Brings the host to where clusters can run: Debian packages, Kubernetes and CoreDNS from Go modules,
//! and the pods' images. Each is made once and kept in the cache.

mod go;
mod packages;
mod sources;

use crate::error::Result;
use crate::image;
use crate::progress::Progress;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

pub use sources::kubernetes_sources;

use go::{COREDNS, KUBERNETES, OLDEST_KUBERNETES};

/// Where the built programs are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Programs {
    /// The folder with kube-apiserver, kubelet, kubectl and the rest.
    pub kubernetes: PathBuf,
    /// CoreDNS.
    pub coredns: PathBuf,
    /// kube-apiserver of the oldest supported Kubernetes, where a lab asks for it.
    #[serde(default)]
    pub oldest_api_server: Option<PathBuf>,
}

impl Programs {
    /// kubectl of the lab's own version.
    pub fn kubectl(&self) -> PathBuf {
        self.kubernetes.join("kubectl")
    }
}

/// What a lab starts from.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The built programs.
    pub programs: Programs,
    /// The archive with every image that pods use.
    pub images: PathBuf,
}

/// Whether everything is in the cache, so that neither Go nor Rust is needed.
pub(crate) fn is_complete(cache: &Path) -> bool {
    [KUBERNETES.key(), COREDNS.key()].iter().all(|key| cache.join(key).exists())
        && image::kept(cache).exists()
}

/// Installs what is missing, saying so on the way.
pub fn install(cache: &Path, progress: &Progress) -> Result<Installed> {
    packages::install(&packages::NEEDED, progress)?;
    let kubernetes = go::build(&KUBERNETES, cache, progress)?;
    let coredns = go::build(&COREDNS, cache, progress)?.join("coredns");
    let images = image::build(cache, progress)?;
    Ok(Installed { programs: Programs { kubernetes, coredns, oldest_api_server: None }, images })
}

/// Installs Debian packages that only some need, each with a file that shows it to be there.
pub fn install_packages(needed: &[(&'static str, &'static str)], progress: &Progress) -> Result<()> {
    packages::install(needed, progress)
}

/// kube-apiserver of the oldest supported Kubernetes; built when it is first needed.
pub(crate) fn oldest_api_server(cache: &Path, progress: &Progress) -> Result<PathBuf> {
    Ok(go::build(&OLDEST_KUBERNETES, cache, progress)?.join("kube-apiserver"))
}
