//! The directory of a sandbox: who runs in it, which clusters it has, and that it is ours.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

use anyhow::Context;
use atoll_engine::names::ClusterId;
use atoll_sandbox::block::Block;
use serde::{Deserialize, Serialize};

use crate::context::sandbox;
use crate::failure::Failure;

/// A symbolic link in the place of one of these files could lead to a file of another user.
pub(crate) const NO_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
/// The layout that this version writes.
const FORMAT: u32 = 1;
/// Everything that a sandbox puts into its directory.
const OURS: [&str; 8] =
    ["lock", "state.json", "hub", "members", "kubeconfig", "log", "control.sock", "serve.yaml"];

/// A sandbox's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dir(pub(crate) PathBuf);

/// What is remembered of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    format: u32,
    /// The block of each cluster's addresses.
    pub(crate) hub: u8,
    pub(crate) members: Vec<Member>,
}

/// One member of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) block: u8,
}

impl State {
    pub(crate) fn new(hub: Block) -> Self {
        Self { format: FORMAT, hub: hub.0, members: Vec::new() }
    }
}

/// The right to a directory; whoever has it runs there.
#[derive(Debug)]
pub(crate) struct Lock(#[allow(dead_code, reason = "the lock is in the open file")] File);

impl Dir {
    /// The default directory of a sandbox.
    pub(crate) fn default_path() -> Option<PathBuf> {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
        Some(PathBuf::from(home).join(".atoll").join("up"))
    }

    /// The one to start in.
    pub(crate) fn for_start(asked: Option<PathBuf>) -> anyhow::Result<Self> {
        Self::or(asked, Self::default_path())
    }

    /// The one that is there already and meant: that of the exported kubeconfig comes before the usual one.
    pub(crate) fn existing(asked: Option<PathBuf>) -> anyhow::Result<Self> {
        Self::or(asked, sandbox::dir(|key| std::env::var_os(key), sandbox::is_sandbox))
    }

    fn or(asked: Option<PathBuf>, otherwise: Option<PathBuf>) -> anyhow::Result<Self> {
        let chosen = asked.or(otherwise).ok_or_else(|| {
            Failure::usage("cannot determine the directory of the sandbox: HOME is not set", "set --dir")
        })?;
        Ok(Self(std::path::absolute(chosen)?))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        debug_assert!(OURS.contains(&name), "{name} would be left behind");
        self.0.join(name)
    }

    pub(crate) fn member(&self, name: &str) -> PathBuf {
        self.path("members").join(name)
    }

    /// Takes the directory, which is made if it is not there.
    pub(crate) fn lock(&self) -> anyhow::Result<Lock> {
        let unusable = |error: std::io::Error| {
            Failure::directory(&format!("cannot use {}", self.0.display()), &error.to_string())
        };
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(unusable)?;
        self.check_ours()?;
        // Keys and sockets are for this user only.
        fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700)).map_err(unusable)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_LINKS);
        let mut file = options.open(self.path("lock")).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let who = pid_in(&mut file).map_or_else(String::new, |pid| format!(", process {pid}"));
                let what = format!("another `atoll up` is running in {}{who}", self.0.display());
                return Err(Failure::usage(&what, "stop it with `atoll down`, or use another --dir").into());
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error).into()),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(unusable)?;
        Ok(Lock(file))
    }

    /// The process that runs here, if any does.
    pub(crate) fn running(&self) -> anyhow::Result<Option<u32>> {
        let mut file = match OpenOptions::new().read(true).write(true).open(self.path("lock")) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", self.path("lock").display()));
            }
        };
        match file.try_lock() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => pid_in(&mut file)
                .map(Some)
                .with_context(|| format!("{} does not contain a process id", self.path("lock").display())),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// What is remembered; none at the first start.
    pub(crate) fn load(&self) -> anyhow::Result<Option<State>> {
        let path = self.path("state.json");
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let damaged = |error: serde_json::Error| {
            let what = format!("{} cannot be read", path.display());
            Failure::directory(&what, &format!("{error}; `atoll up --fresh` deletes it and starts over"))
        };
        let head: Head = serde_json::from_slice(&text).map_err(damaged)?;
        if head.format != FORMAT {
            let what = format!("{} was made by another version of atoll", self.0.display());
            let why = format!("its format is {}, this version supports {FORMAT}", head.format);
            return Err(Failure::other_version(&what, &why).into());
        }
        let state: State = serde_json::from_slice(&text).map_err(damaged)?;
        let mut blocks = BTreeSet::from([state.hub]);
        let odd = state
            .members
            .iter()
            .find(|member| ClusterId::parse(member.name.as_str()).is_err() || !blocks.insert(member.block));
        if let Some(member) = odd {
            let what = format!("{} cannot be used", path.display());
            let why = format!(
                "member `{}` has an invalid name or the addresses of another; `atoll up --fresh` deletes it and starts over",
                member.name
            );
            return Err(Failure::directory(&what, &why).into());
        }
        Ok(Some(state))
    }

    /// Remembers; a crash leaves the old or the new.
    pub(crate) fn save(&self, state: &State) -> anyhow::Result<()> {
        let path = self.path("state.json");
        let beside = path.with_extension("json.new");
        let write = || {
            let mut file = File::create(&beside)?;
            file.write_all(&serde_json::to_vec_pretty(state)?)?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Deletes what a sandbox made here, and nothing else. The lock stays: it is held.
    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        for name in OURS.into_iter().filter(|name| *name != "lock") {
            let path = self.0.join(name);
            let removed = match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
                Ok(_) => fs::remove_file(&path),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
            };
            removed.with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    /// Are there clusters here?
    pub(crate) fn has_clusters(&self) -> bool {
        self.path("hub").exists() || self.path("members").exists()
    }

    /// Refuses a directory of another user, or one with other files in it.
    fn check_ours(&self) -> anyhow::Result<()> {
        let found = fs::metadata(&self.0).with_context(|| format!("cannot read {}", self.0.display()))?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            let what = format!("{} belongs to another user", self.0.display());
            return Err(Failure::usage(&what, "set --dir to a directory of your own").into());
        }
        if self.0.join("lock").exists() {
            return Ok(());
        }
        let mut entries =
            fs::read_dir(&self.0).with_context(|| format!("cannot read {}", self.0.display()))?;
        if entries.next().is_some() {
            let what = format!("{} is not empty, and not the directory of a sandbox", self.0.display());
            return Err(Failure::usage(&what, "set --dir to an empty or a new directory").into());
        }
        Ok(())
    }
}

fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> (tempfile::TempDir, Dir) {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir(temp.path().join("up"));
        (temp, dir)
    }

    #[test]
    fn a_directory_is_taken_once() {
        let (_temp, dir) = dir();
        assert_eq!(dir.running().unwrap(), None);
        let lock = dir.lock().unwrap();
        assert_eq!(dir.running().unwrap(), Some(std::process::id()));
        let second = dir.lock().unwrap_err().to_string();
        assert!(second.contains("another `atoll up` is running in"), "{second}");
        drop(lock);
        assert_eq!(dir.running().unwrap(), None);
        dir.lock().unwrap();
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_leads_nowhere() {
        let (temp, dir) = dir();
        let victim = temp.path().join("victim");
        fs::write(&victim, "years of work").unwrap();
        fs::create_dir_all(&dir.0).unwrap();
        std::os::unix::fs::symlink(&victim, dir.0.join("lock")).unwrap();
        dir.lock().unwrap_err();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "years of work");
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let (_temp, dir) = dir();
        fs::create_dir_all(&dir.0).unwrap();
        fs::write(dir.0.join("thesis.txt"), "years of work").unwrap();
        let refused = dir.lock().unwrap_err().to_string();
        assert!(refused.contains("is not empty"), "{refused}");
        assert!(!dir.0.join("lock").exists());
        fs::remove_file(dir.0.join("thesis.txt")).unwrap();
        let _lock = dir.lock().unwrap();
        fs::write(dir.0.join("thesis.txt"), "years of work").unwrap();
        fs::create_dir_all(dir.member("member1")).unwrap();
        dir.save(&State::new(Block(32))).unwrap();
        dir.clear().unwrap();
        let mut left: Vec<_> =
            fs::read_dir(&dir.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["lock", "thesis.txt"]);
    }

    #[test]
    fn state_is_remembered_and_a_newer_one_is_refused() {
        let (_temp, dir) = dir();
        let _lock = dir.lock().unwrap();
        assert_eq!(dir.load().unwrap(), None);
        let mut state = State::new(Block(32));
        state.members.push(Member { name: "member1".to_owned(), block: 33 });
        dir.save(&state).unwrap();
        assert_eq!(dir.load().unwrap(), Some(state));
        for (text, want) in [
            (r#"{"format": 2, "rooms": []}"#, "another version"),
            (r#"{"format": 1}"#, "cannot be read"),
            (r#"{"format": 1, "hub": 32, "members": [{"name": "../x", "block": 33}]}"#, "cannot be used"),
            (r#"{"format": 1, "hub": 32, "members": [{"name": "a", "block": 32}]}"#, "cannot be used"),
            ("", "cannot be read"),
        ] {
            fs::write(dir.path("state.json"), text).unwrap();
            let refused = dir.load().unwrap_err().to_string();
            assert!(refused.contains(want), "{text}: {refused}");
        }
    }
}
