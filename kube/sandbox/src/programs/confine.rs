//! Keeps commands of this machine from what is not theirs: the keys of the hub and of the members, the administrators' kubeconfigs.
//!
//! A command reads what this user reads, but for what is hidden, and writes to temporary directories only. It can't look into or signal
//! processes that it did not start, and gains no rights by programs that have more. The kernel's Landlock does that, for any user. Started by
//! root, a command is also another user, with no rights of root's.
//!
//! Rules hold for a thread and for what it starts. So a command is started by a thread of its own, which ends with that: nothing runs between
//! fork and exec, and nothing of it is unsafe.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use tokio::process::{Child, Command};

/// What Landlock is asked for; older kernels do less of it.
const WANTED: ABI = ABI::V6;
/// User ids that no account has: one for each member, after this.
const FIRST_USER: u32 = 2_000_000_000;
/// What commands get of `/dev`: no disks, no memory.
const DEVICES: [&str; 10] =
    ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "console"];

/// How commands of this machine are kept from what is not theirs.
#[derive(Clone, Debug)]
pub enum Confinement {
    /// They are not, by the operator's word.
    Off,
    /// They read neither of these paths, nor what is below them.
    Hidden(Arc<[PathBuf]>),
}

impl Default for Confinement {
    fn default() -> Self {
        Self::Hidden(Arc::from([]))
    }
}

impl Confinement {
    /// Hides this path too.
    #[must_use]
    pub fn and_hidden(&self, path: &Path) -> Self {
        match self {
            Self::Off => Self::Off,
            Self::Hidden(paths) => Self::Hidden(paths.iter().cloned().chain([path.to_owned()]).collect()),
        }
    }
}

/// Why a command is not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfineError {
    #[error(
        "this kernel can't keep a process from the keys of the clusters (Landlock, Linux 5.13 or later); `atoll up --allow-unconfined-processes` runs it all the same"
    )]
    NotSupported,
    #[error("cannot confine it: {0}")]
    Rules(#[from] RulesetError),
    #[error("cannot confine it: {0}")]
    Io(#[from] io::Error),
}

/// Whether commands are other users than we are.
pub(crate) fn changes_user(confinement: &Confinement) -> bool {
    match confinement {
        Confinement::Off => false,
        Confinement::Hidden(_) => rustix::process::geteuid().is_root(),
    }
}

/// Starts a command, confined. `member` is a number of its own for each member.
pub(crate) async fn spawn(
    mut command: Command,
    confinement: &Confinement,
    member: u8,
) -> Result<Child, ConfineError> {
    let Confinement::Hidden(hidden) = confinement else { return Ok(command.spawn()?) };
    let (hidden, is_root) = (Arc::clone(hidden), changes_user(confinement));
    if is_root {
        let user = FIRST_USER + u32::from(member);
        command.uid(user).gid(user);
    }
    let (send, started) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new().name("confine".to_owned()).spawn(move || {
        let _runtime = runtime.enter();
        let mut start = || -> Result<Child, ConfineError> {
            match restrict(&hidden) {
                // As another user it can't read what only root can.
                Err(ConfineError::NotSupported) if is_root => {
                    rustix::thread::set_no_new_privs(true).map_err(io::Error::from)?;
                }
                other => other?,
            }
            Ok(command.spawn()?)
        };
        // The caller waits no more: the child ends with the value.
        let _ = send.send(start());
    })?;
    started.await.map_err(|_| io::Error::other("the thread that starts it has failed"))?
}

/// From now on, this thread and what it starts.
fn restrict(hidden: &[PathBuf]) -> Result<(), ConfineError> {
    let read = AccessFs::from_read(WANTED);
    let all = AccessFs::from_all(WANTED);
    let hidden: Vec<PathBuf> = hidden.iter().map(|path| real(path)).collect();
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(WANTED))?
        .create()?;
    // Names are no secret, and a shell wants to know where it is.
    rules = allow(rules, Path::new("/"), AccessFs::ReadDir.into())?;
    let mut shown = Vec::new();
    show(Path::new("/"), &hidden, &mut shown);
    for path in &shown {
        rules = allow(rules, path, read)?;
    }
    for name in DEVICES {
        rules = allow(rules, &Path::new("/dev").join(name), all)?;
    }
    let mut temporary = Vec::new();
    for folder in [std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")] {
        let folder = real(&folder);
        // One that has something hidden in it is open but for that; one that is not temporary at all is not.
        if folder.parent().is_some() && !hidden.iter().any(|path| folder.starts_with(path)) {
            match hidden.iter().any(|path| path.starts_with(&folder)) {
                true => show(&folder, &hidden, &mut temporary),
                false => temporary.push(folder),
            }
        }
    }
    for path in &temporary {
        rules = allow(rules, path, all)?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(ConfineError::NotSupported),
    }
}

/// Allows this at `path` and below, if it is there. A link is not followed: what it leads to has a path of its own.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(about) = path.symlink_metadata() else { return Ok(rules) };
    if about.file_type().is_symlink() {
        return Ok(rules);
    }
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    let access = if about.is_dir() { access } else { access & AccessFs::from_file(WANTED) };
    rules.add_rule(PathBeneath::new(opened, access))
}

/// All that is in `folder` but what is hidden: whole folders where nothing in them is.
fn show(folder: &Path, hidden: &[PathBuf], shown: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let is_hidden = hidden.iter().any(|one| path.starts_with(one)) || path == Path::new("/dev");
        let is_link = path.symlink_metadata().is_ok_and(|about| about.file_type().is_symlink());
        if is_hidden || is_link {
            continue;
        }
        match hidden.iter().any(|one| one.starts_with(&path)) {
            true => show(&path, hidden, shown),
            false => shown.push(path),
        }
    }
}

/// The path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        (Err(_), _, _) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_left_out_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| real(folder.path()).join(path);
        for path in ["home/keys/deep", "home/work/deep", "etc"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        std::fs::write(at("home/note"), "").unwrap();
        // A link must not be a way in.
        std::os::unix::fs::symlink(at("home/keys"), at("home/link")).unwrap();
        for (hidden, want) in [
            (vec!["home/keys"], vec!["etc", "home/note", "home/work"]),
            (vec!["home/keys", "home/work/deep"], vec!["etc", "home/note"]),
            (vec!["home/not-yet"], vec!["etc", "home/keys", "home/note", "home/work"]),
            (vec![], vec!["etc", "home"]),
        ] {
            let hidden: Vec<PathBuf> = hidden.into_iter().map(&at).collect();
            let mut shown = Vec::new();
            show(&real(folder.path()), &hidden, &mut shown);
            shown.sort();
            assert_eq!(shown, want.into_iter().map(&at).collect::<Vec<_>>(), "{hidden:?}");
        }
        assert_eq!(real(&at("home/link/later")), at("home/keys/later"));
    }
}
