//! Which cluster a command is about: a kubeconfig and a context as in kubectl, or by its name a member of a hub or a cluster of
//! `atoll up`.
//!
//! ```text
//!   -C member1 ─┬─ a sandbox is meant ─▶ its kubeconfig, context member1
//!               └─ else ─▶ hub's API ─▶ Cluster member1 + its Secret ─▶ the member's API, with the hub's rights
//! ```

use std::path::{Path, PathBuf};

use atoll_hub::connect::{self, ConnectError};
use atoll_hub::reach;
use clap::Args;
use kube::config::Kubeconfig;

use crate::cli::HubApi;
use crate::commands::up::HUB;
use crate::failure::Failure;

/// Which API is asked, and which namespace of it; as in kubectl.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Access {
    /// The kubeconfig [default: $KUBECONFIG, else ~/.kube/config]; with -C that of the hub.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context in it [default: its current one].
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// The namespace [default: the context's].
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
}

/// One cluster, by its kubeconfig or as a member.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ClusterApi {
    #[command(flatten)]
    pub(crate) access: Access,
    /// A member, reached with the hub's credentials; or a cluster of `atoll up`: hub, member1, …
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
}

/// A cluster, and how it is reached.
pub(crate) struct Reached {
    pub(crate) config: kube::Config,
    /// Its name, if it is reached with the credentials that the hub holds for it: what may be done is what the hub may do.
    pub(crate) as_hub: Option<String>,
}

impl ClusterApi {
    /// How to reach it; the namespace is the one that is meant.
    pub(crate) async fn reach(&self) -> Result<Reached, Failure> {
        self.access.cluster(self.cluster.as_deref()).await
    }
}

impl Access {
    /// The way to a cluster by its name, or to the one of the kubeconfig.
    pub(crate) async fn cluster(&self, name: Option<&str>) -> Result<Reached, Failure> {
        let mut reached = match name {
            None => {
                let config = connect::config(self.kubeconfig.as_deref(), self.context.as_deref()).await;
                Reached { config: config.map_err(|error| Failure::connect(&error))?, as_hub: None }
            }
            Some(name) => match self.sandbox() {
                Some(file) => of_sandbox(name, &file).await?,
                None => {
                    member(name, self.hub_api().await.map_err(|error| Failure::no_hub(name, &error))?).await?
                }
            },
        };
        if let Some(namespace) = &self.namespace {
            reached.config.default_namespace.clone_from(namespace);
        }
        Ok(reached)
    }

    /// The way to the hub of whose members `-C` speaks.
    pub(crate) async fn hub(&self) -> Result<kube::Config, Failure> {
        match self.sandbox() {
            Some(file) => Ok(of_sandbox(HUB, &file).await?.config),
            None => self.hub_api().await.map_err(|error| Failure::connect(&error)),
        }
    }

    async fn hub_api(&self) -> Result<kube::Config, ConnectError> {
        let hub = HubApi {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            data_dir: std::env::var_os("ATOLL_DATA_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from),
            namespace: atoll_hub::options::NAMESPACE.to_owned(),
        };
        hub.config().await
    }

    /// The kubeconfig of the sandbox that is meant, if one is: it has a context for every cluster.
    fn sandbox(&self) -> Option<PathBuf> {
        if self.context.is_some() {
            return None;
        }
        if let Some(file) = &self.kubeconfig {
            return file.parent().is_some_and(is_sandbox).then(|| file.clone());
        }
        sandbox_of_environment(|key| std::env::var_os(key), is_sandbox, Path::is_file)
    }
}

/// The kubeconfig of the sandbox that is meant when nothing else is said. A hub that was named, or that runs on this machine, comes
/// before a sandbox that nobody spoke of; as for `atoll clusters`.
fn sandbox_of_environment(
    env: impl Fn(&str) -> Option<std::ffi::OsString>,
    is_sandbox: impl Fn(&Path) -> bool,
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let some = |key: &str| env(key).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = some("ATOLL_UP_DIR") {
        return Some(dir.join("kubeconfig"));
    }
    if let Some(file) = some("KUBECONFIG") {
        return file.parent().is_some_and(&is_sandbox).then(|| file.clone());
    }
    let own = some("HOME")?.join(".atoll");
    let hub_runs_here = some("ATOLL_DATA_DIR").is_some() || is_file(&own.join("kubeconfig"));
    Some(own.join("up").join("kubeconfig")).filter(|file| !hub_runs_here && is_file(file))
}

/// The way to a member, with the credentials that its hub holds.
async fn member(name: &str, hub: kube::Config) -> Result<Reached, Failure> {
    let namespace = hub.default_namespace.clone();
    let hub = connect::client(hub).map_err(|error| Failure::connect(&error))?;
    let mut config = reach::member(&hub, name).await.map_err(|error| Failure::reach(name, &error))?;
    config.default_namespace = namespace;
    Ok(Reached { config, as_hub: Some(name.to_owned()) })
}

/// The way to a cluster of `atoll up`, by its name; one that joined it from elsewhere is reached through its hub.
async fn of_sandbox(name: &str, file: &Path) -> Result<Reached, Failure> {
    if !file.is_file() {
        return Err(Failure::no_sandbox(file));
    }
    let bad = |source: Box<dyn std::error::Error + Send + Sync>| {
        Failure::connect(&ConnectError::Kubeconfig { path: Some(file.to_owned()), source })
    };
    let known = Kubeconfig::read_from(file).map_err(|source| bad(source.into()))?;
    let names: Vec<&str> = known.contexts.iter().map(|one| one.name.as_str()).collect();
    let context = async |name: &str| {
        connect::config(Some(file), Some(name)).await.map_err(|error| Failure::connect(&error))
    };
    if names.contains(&name) {
        return Ok(Reached { config: context(name).await?, as_hub: None });
    }
    if names.contains(&HUB) {
        return member(name, context(HUB).await?).await;
    }
    Err(Failure::no_such_cluster(name, file, &names))
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
    fn a_named_cluster_is_one_of_the_sandbox_unless_a_hub_is_meant() {
        let meant = |pairs: &'static [(&str, &str)], files: &'static [&str]| {
            let env = move |key: &str| {
                pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).into())
            };
            let there = move |file: &Path| files.iter().any(|one| Path::new(one) == file);
            sandbox_of_environment(env, |dir| dir == Path::new("/up"), there)
        };
        let path = |text: &str| Some(PathBuf::from(text));
        let (at_home, both) =
            (&["/h/.atoll/up/kubeconfig"][..], &["/h/.atoll/up/kubeconfig", "/h/.atoll/kubeconfig"][..]);
        assert_eq!(meant(&[("ATOLL_UP_DIR", "/x"), ("KUBECONFIG", "/y")], &[]), path("/x/kubeconfig"));
        assert_eq!(meant(&[("KUBECONFIG", "/up/kubeconfig"), ("HOME", "/h")], both), path("/up/kubeconfig"));
        assert_eq!(meant(&[("KUBECONFIG", "/k/config"), ("HOME", "/h")], at_home), None);
        assert_eq!(meant(&[("HOME", "/h")], at_home), path("/h/.atoll/up/kubeconfig"));
        assert_eq!(meant(&[("HOME", "/h")], both), None);
        assert_eq!(meant(&[("HOME", "/h"), ("ATOLL_DATA_DIR", "/d")], at_home), None);
        assert_eq!(meant(&[("HOME", "/h")], &[]), None);
        assert_eq!(meant(&[], &[]), None);
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
