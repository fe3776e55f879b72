//! Which sandbox of `atoll up` is meant.

use std::path::{Path, PathBuf};

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
    fn the_sandbox_lies_where_it_is_said_or_at_home() {
        let asked = |pairs: &'static [(&str, &str)]| {
            let env = move |key: &str| {
                pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).into())
            };
            dir(env, |_| false)
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(asked(&[("ATOLL_UP_DIR", "/x"), ("HOME", "/h")]), path("/x"));
        assert_eq!(asked(&[("ATOLL_UP_DIR", ""), ("HOME", "/h")]), path("/h/.atoll/up"));
        assert_eq!(asked(&[]), None);
    }
}
