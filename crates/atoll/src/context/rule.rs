//! Which hub a command means: one rule for all commands. Pure.
//!
//! ```text
//!   1. --kubeconfig, --context, --data-dir      ($ATOLL_DATA_DIR and $ATOLL_UP_DIR count as such a flag)
//!   2. $KUBECONFIG
//!   3. the hub of this host                     ~/.atoll/kubeconfig     ┐
//!   4. the sandbox of `atoll up`                ~/.atoll/up/kubeconfig  ┴ not in a pod
//!   5. what kubectl takes                       ~/.kube/config, or the pod's own cluster
//! ```
//! As `kubectl atoll`, ~/.kube/config comes third, since kubectl takes it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the command line says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    pub(crate) data_dir: Option<PathBuf>,
    /// The program runs as `kubectl atoll`.
    pub(crate) plugin: bool,
}

/// Which step of the rule decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// `--kubeconfig` or `--context`.
    Flag,
    /// `--data-dir`.
    DataDir,
    /// `$ATOLL_DATA_DIR`.
    DataDirVariable,
    /// `$ATOLL_UP_DIR`.
    UpDirVariable,
    /// `$KUBECONFIG`.
    Kubeconfig,
    /// The data directory of a hub of this host.
    OwnHub,
    /// The sandbox of `atoll up`.
    Sandbox,
    /// What kubectl takes by default.
    Kubectl,
}

impl Step {
    /// For people: where the choice comes from.
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Self::Flag => "as the flags say",
            Self::DataDir => "from --data-dir",
            Self::DataDirVariable => "from $ATOLL_DATA_DIR",
            Self::UpDirVariable => "from $ATOLL_UP_DIR",
            Self::Kubeconfig => "from $KUBECONFIG",
            Self::OwnHub => "the hub of this host",
            Self::Sandbox => "the sandbox of `atoll up`",
            Self::Kubectl => "as kubectl takes it",
        }
    }
}

/// The kubeconfig that leads to the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) step: Step,
    /// The file; none if it is for kubectl's rules to say: `$KUBECONFIG` with several files, ~/.kube/config, a pod's own.
    pub(crate) file: Option<PathBuf>,
    pub(crate) context: Option<String>,
    /// Kubeconfigs of other hubs that later steps would have found: there can be doubt which one is meant.
    pub(crate) passed_over: Vec<PathBuf>,
}

/// Chooses. `env` reads a variable, `is_file` looks at the disk.
pub(crate) fn choose(
    flags: &Flags,
    env: impl Fn(&str) -> Option<OsString>,
    is_file: impl Fn(&Path) -> bool,
) -> Choice {
    let some = |key: &str| env(key).filter(|value| !value.is_empty());
    let choice = |step, file| Choice { step, file, context: None, passed_over: Vec::new() };
    if flags.kubeconfig.is_some() || flags.context.is_some() {
        let exported = || some("KUBECONFIG").and_then(|files| only(&files));
        let file = flags.kubeconfig.clone().or_else(exported);
        return Choice { context: flags.context.clone(), ..choice(Step::Flag, file) };
    }
    if let Some(dir) = &flags.data_dir {
        return choice(Step::DataDir, Some(dir.join("kubeconfig")));
    }
    for (key, step) in [("ATOLL_DATA_DIR", Step::DataDirVariable), ("ATOLL_UP_DIR", Step::UpDirVariable)] {
        if let Some(dir) = some(key) {
            return choice(step, Some(PathBuf::from(dir).join("kubeconfig")));
        }
    }
    let mut found = Vec::new();
    if let Some(files) = some("KUBECONFIG") {
        found.push((Step::Kubeconfig, only(&files)));
    }
    let home = some("HOME").map(PathBuf::from);
    let kubectl = home.as_ref().map(|home| home.join(".kube").join("config")).filter(|file| is_file(file));
    if flags.plugin && found.is_empty() && kubectl.is_some() {
        found.push((Step::Kubectl, kubectl.clone()));
    }
    // In a pod, the cluster's API is at hand, and a home directory means nothing.
    if let Some(own) =
        home.filter(|_| some("KUBERNETES_SERVICE_HOST").is_none()).map(|home| home.join(".atoll"))
    {
        let files =
            [(Step::OwnHub, own.join("kubeconfig")), (Step::Sandbox, own.join("up").join("kubeconfig"))];
        found.extend(
            files.into_iter().filter(|(_, file)| is_file(file)).map(|(step, file)| (step, Some(file))),
        );
    }
    let mut found = found.into_iter();
    let Some((step, file)) = found.next() else { return choice(Step::Kubectl, kubectl) };
    let others = found.filter_map(|(_, file)| file).filter(|other| !same_sandbox(other, file.as_deref()));
    Choice { passed_over: others.collect(), ..choice(step, file) }
}

/// The file of a list of files, if there is one only.
fn only(files: &OsString) -> Option<PathBuf> {
    let mut files = std::env::split_paths(files).filter(|file| !file.as_os_str().is_empty());
    let first = files.next();
    first.filter(|_| files.next().is_none())
}

/// Whether a file is a sandbox's kubeconfig, and the other one lies in the same sandbox.
fn same_sandbox(one: &Path, other: Option<&Path>) -> bool {
    other.is_some_and(|other| {
        one == other || one.parent().is_some_and(|dir| dir.ends_with("up") && other.starts_with(dir))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "/h/.atoll/kubeconfig";
    const SANDBOX: &str = "/h/.atoll/up/kubeconfig";
    const KUBECTL: &str = "/h/.kube/config";
    const HOME: (&str, &str) = ("HOME", "/h");

    fn chosen(flags: &Flags, env: &[(&str, &str)], files: &[&str]) -> Choice {
        let read = |key: &str| env.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).into());
        choose(flags, read, |file| files.iter().any(|one| Path::new(one) == file))
    }

    #[test]
    fn flags_come_before_the_environment_and_that_before_the_data_directory() {
        let none = Flags::default();
        let kubeconfig = Flags { kubeconfig: Some("/k".into()), ..Flags::default() };
        let data_dir = Flags { data_dir: Some("/d".into()), ..Flags::default() };
        let plugin = Flags { plugin: true, ..Flags::default() };
        let exported = ("KUBECONFIG", "/e");
        let all = [OWN, SANDBOX, KUBECTL];
        for (flags, env, files, step, file, doubt) in [
            (&kubeconfig, &[HOME, exported][..], &all[..], Step::Flag, Some("/k"), &[][..]),
            (&kubeconfig, &[HOME, ("ATOLL_DATA_DIR", "/v")], &all, Step::Flag, Some("/k"), &[]),
            (
                &data_dir,
                &[HOME, exported, ("ATOLL_DATA_DIR", "/v")],
                &all,
                Step::DataDir,
                Some("/d/kubeconfig"),
                &[],
            ),
            (
                &none,
                &[HOME, exported, ("ATOLL_DATA_DIR", "/v")],
                &all,
                Step::DataDirVariable,
                Some("/v/kubeconfig"),
                &[],
            ),
            (
                &none,
                &[HOME, exported, ("ATOLL_UP_DIR", "/u")],
                &all,
                Step::UpDirVariable,
                Some("/u/kubeconfig"),
                &[],
            ),
            (&none, &[HOME, exported, ("ATOLL_DATA_DIR", "")], &[], Step::Kubeconfig, Some("/e"), &[]),
            (&none, &[HOME, exported], &all, Step::Kubeconfig, Some("/e"), &[OWN, SANDBOX]),
            (&none, &[HOME, ("KUBECONFIG", SANDBOX)], &all, Step::Kubeconfig, Some(SANDBOX), &[OWN]),
            (
                &none,
                &[HOME, ("KUBECONFIG", "/h/.atoll/up/hub/kubeconfig")],
                &[SANDBOX],
                Step::Kubeconfig,
                Some("/h/.atoll/up/hub/kubeconfig"),
                &[],
            ),
            (&none, &[HOME, ("KUBECONFIG", "/a:/b")], &[OWN], Step::Kubeconfig, None, &[OWN]),
            (&none, &[HOME, ("KUBECONFIG", "")], &all, Step::OwnHub, Some(OWN), &[SANDBOX]),
            (&none, &[HOME], &[SANDBOX, KUBECTL], Step::Sandbox, Some(SANDBOX), &[]),
            (&none, &[HOME], &[KUBECTL], Step::Kubectl, Some(KUBECTL), &[]),
            (
                &none,
                &[HOME, ("KUBERNETES_SERVICE_HOST", "10.0.0.1")],
                &[OWN, SANDBOX],
                Step::Kubectl,
                None,
                &[],
            ),
            (&none, &[], &[], Step::Kubectl, None, &[]),
            (&plugin, &[HOME, exported], &all, Step::Kubeconfig, Some("/e"), &[OWN, SANDBOX]),
            (&plugin, &[HOME], &all, Step::Kubectl, Some(KUBECTL), &[OWN, SANDBOX]),
            (&plugin, &[HOME], &[OWN], Step::OwnHub, Some(OWN), &[]),
        ] {
            let got = chosen(flags, env, files);
            let shown =
                |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
            let place = got.file.as_deref().map(|file| file.display().to_string());
            assert_eq!((got.step, place.as_deref()), (step, file), "{flags:?} {env:?} {files:?}");
            assert_eq!(shown(&got.passed_over), doubt, "{flags:?} {env:?} {files:?}");
        }
    }

    #[test]
    fn a_context_is_one_of_the_exported_kubeconfig() {
        let flags = Flags { context: Some("hub".to_owned()), ..Flags::default() };
        let got = chosen(&flags, &[HOME, ("KUBECONFIG", "/e")], &[OWN]);
        assert_eq!(
            (got.step, got.file, got.context.as_deref()),
            (Step::Flag, Some("/e".into()), Some("hub"))
        );
        // Without one, kubectl's own rules say which file has it.
        assert_eq!(chosen(&flags, &[HOME], &[OWN, KUBECTL]).file, None);
    }
}
