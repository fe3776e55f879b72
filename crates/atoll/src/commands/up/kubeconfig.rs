//! One kubeconfig for all clusters of a sandbox: a context for each.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::Context;
use kube::config::{Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

/// Puts the kubeconfigs of single clusters together; the first is the current one.
pub(crate) fn write(path: &Path, clusters: &[(String, &Path)]) -> anyhow::Result<()> {
    let mut all = Kubeconfig {
        current_context: clusters.first().map(|(name, _)| name.clone()),
        ..Kubeconfig::default()
    };
    for (name, file) in clusters {
        let one = atoll_hub::connect::read(Some(file))?;
        let cluster = one.clusters.into_iter().next().and_then(|cluster| cluster.cluster);
        let user = one.auth_infos.into_iter().next().and_then(|user| user.auth_info);
        all.clusters.push(NamedCluster { name: name.clone(), cluster, ..NamedCluster::default() });
        all.auth_infos.push(NamedAuthInfo {
            name: name.clone(),
            auth_info: user,
            ..NamedAuthInfo::default()
        });
        all.contexts.push(NamedContext {
            name: name.clone(),
            context: Some(kube::config::Context {
                cluster: name.clone(),
                user: Some(name.clone()),
                ..kube::config::Context::default()
            }),
            ..NamedContext::default()
        });
    }
    let beside = path.with_extension("new");
    let write = || -> anyhow::Result<()> {
        // It has keys in it.
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(serde_saphyr::to_string(&all)?.as_bytes())?;
        file.sync_all()?;
        Ok(fs::rename(&beside, path)?)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
