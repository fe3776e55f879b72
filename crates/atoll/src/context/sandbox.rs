//! Which sandbox of `atoll up` is meant.

use std::path::{Path, PathBuf};

/// The kubeconfig of the sandbox that is used by default. A hub that the environment names, or that runs on this machine, comes
/// before it; as for `atoll clusters`.
pub(super) fn of_environment(
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

/// Where `atoll up` writes its kubeconfig.
pub(crate) fn kubeconfig(env: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    dir(env, is_sandbox).map(|dir| dir.join("kubeconfig"))
}

/// The directory of the sandbox that is meant: `$ATOLL_UP_DIR`, or the one whose kubeconfig is in `$KUBECONFIG`, or `~/.atoll/up`.
pub(crate) fn dir(
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
        assert_eq!(dir(env, |dir| dir == Path::new("/second")), Some(PathBuf::from("/second")));
        assert_eq!(dir(env, |_| false), Some(PathBuf::from("/h/.atoll/up")));
    }

    #[test]
    fn a_named_cluster_is_one_of_the_sandbox_unless_a_hub_is_meant() {
        let meant = |pairs: &'static [(&str, &str)], files: &'static [&str]| {
            let env = move |key: &str| {
                pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).into())
            };
            let there = move |file: &Path| files.iter().any(|one| Path::new(one) == file);
            of_environment(env, |dir| dir == Path::new("/up"), there)
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
            kubeconfig(env)
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(asked(&[("ATOLL_UP_DIR", "/x"), ("HOME", "/h")]), path("/x/kubeconfig"));
        assert_eq!(asked(&[("ATOLL_UP_DIR", ""), ("HOME", "/h")]), path("/h/.atoll/up/kubeconfig"));
        assert_eq!(asked(&[]), None);
    }
}
