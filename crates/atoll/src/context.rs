//! Which cluster a command is about: a kubeconfig and a context as in kubectl, or a cluster of `atoll up` by its name.

use std::path::{Path, PathBuf};

use atoll_hub::connect::{self, ConnectError};
use clap::Args;
use kube::config::Kubeconfig;

use crate::failure::Failure;

/// Which cluster, and which namespace of it; as in kubectl.
#[derive(Args, Debug, Clone)]
pub(crate) struct ClusterApi {
    /// The kubeconfig [default: $KUBECONFIG, else ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context in it [default: its current one].
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// A cluster of `atoll up`: hub, member1, …
    #[arg(short = 'C', long, value_name = "NAME", conflicts_with = "context")]
    pub(crate) cluster: Option<String>,
    /// The namespace [default: the context's].
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
}

impl ClusterApi {
    /// How to reach it; the namespace is the one that is meant.
    pub(crate) async fn config(&self) -> anyhow::Result<kube::Config> {
        let mut config = match &self.cluster {
            None => connect::config(self.kubeconfig.as_deref(), self.context.as_deref()).await?,
            Some(name) => of_sandbox(name, self.kubeconfig.as_deref()).await?,
        };
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        Ok(config)
    }
}

/// The way to a cluster of `atoll up`, by its name; `kubeconfig` if it is not the one in the sandbox's directory.
pub(crate) async fn of_sandbox(name: &str, kubeconfig: Option<&Path>) -> anyhow::Result<kube::Config> {
    let file = match kubeconfig {
        Some(file) => file.to_owned(),
        None => sandbox_kubeconfig(|key| std::env::var_os(key)).ok_or_else(Failure::no_sandbox_dir)?,
    };
    if kubeconfig.is_none() && !file.is_file() {
        return Err(Failure::no_sandbox(&file).into());
    }
    let known = Kubeconfig::read_from(&file)
        .map_err(|source| ConnectError::Kubeconfig { path: Some(file.clone()), source: source.into() })?;
    let names: Vec<&str> = known.contexts.iter().map(|one| one.name.as_str()).collect();
    if !names.contains(&name) {
        return Err(Failure::no_such_cluster(name, &file, &names).into());
    }
    Ok(connect::config(Some(&file), Some(name)).await?)
}

/// Where `atoll up` writes its kubeconfig.
pub(crate) fn sandbox_kubeconfig(env: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    sandbox_dir(env, is_sandbox).map(|dir| dir.join("kubeconfig"))
}

/// The directory of the sandbox that is meant: `$ATOLL_UP_DIR`, or the one whose kubeconfig is in `$KUBECONFIG`, or `~/.atoll/up`.
pub(crate) fn sandbox_dir(
    env: impl Fn(&str) -> Option<std::ffi::OsString>,
    is_sandbox: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let some = |key| env(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    let exported = || {
        let dir = some("KUBECONFIG")?.parent()?.to_owned();
        is_sandbox(&dir).then_some(dir)
    };
    let at_home = || some("HOME").map(|home| home.join(".atoll").join("up"));
    some("ATOLL_UP_DIR").or_else(exported).or_else(at_home)
}

/// Did `atoll up` make this directory?
pub(crate) fn is_sandbox(dir: &Path) -> bool {
    dir.join("state.json").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exported_kubeconfig_says_which_sandbox_is_meant() {
        let env = |key: &str| match key {
            "KUBECONFIG" => Some("/second/kubeconfig".into()),
            "HOME" => Some("/h".into()),
            _ => None,
        };
        assert_eq!(sandbox_dir(env, |dir| dir == Path::new("/second")), Some(PathBuf::from("/second")));
        assert_eq!(sandbox_dir(env, |_| false), Some(PathBuf::from("/h/.atoll/up")));
    }

    #[test]
    fn the_sandbox_lies_where_it_is_said_or_at_home() {
        let asked = |pairs: &'static [(&str, &str)]| {
            let env = move |key: &str| {
                pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).into())
            };
            sandbox_kubeconfig(env)
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(asked(&[("ATOLL_UP_DIR", "/x"), ("HOME", "/h")]), path("/x/kubeconfig"));
        assert_eq!(asked(&[("ATOLL_UP_DIR", ""), ("HOME", "/h")]), path("/h/.atoll/up/kubeconfig"));
        assert_eq!(asked(&[]), None);
    }
}
