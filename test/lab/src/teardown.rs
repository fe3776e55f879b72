//! Removes a lab, whole or half-made, also one whose driver was killed.
//!
//! Nothing is found by a program's name: processes carry the lab's mark in their environment, links carry
//! its folder as their alias, and control groups lie in the lab's own folder.

use crate::error::{Doing, Error, Result};
use crate::layout::Layout;
use crate::network;
use crate::process::marked;
use crate::record::Record;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Removes everything of the lab at `layout`; whether there was anything.
pub(crate) fn sweep(layout: &Layout) -> Result<bool> {
    let dir = layout.dir();
    refuse_what_is_no_lab(layout)?;
    let mut found = dir.exists();
    // Everything marked at once, inside and outside the machines: a machine goes only when the programs that put
    // others into it have collected those, and one of them may be stopped.
    // Ending a machine's first process ends what the mark does not reach: containers have an environment of
    // their own. The mark finds first processes too, so ending all that is marked is enough.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let processes = marked(&layout.mark());
        if processes.is_empty() {
            break;
        }
        found = true;
        for process in &processes {
            process.signal(rustix::process::Signal::KILL)?;
        }
        for process in &processes {
            process.wait_gone(deadline.saturating_duration_since(Instant::now()));
        }
        if Instant::now() > deadline {
            return Err(Error::refused(
                format!("{} processes of the lab do not end", processes.len()),
                "they may hang in the kernel: see `dmesg`, and try again",
            ));
        }
    }
    network::remove(&links(layout))?;
    remove_cgroups(layout)?;
    if dir.exists() {
        for mount in mounts_below(dir).iter().rev() {
            crate::command::run(std::process::Command::new("umount").arg("-l").arg(mount))?;
        }
        // There should be no mounts at all outside the machines. To delete through one would be unforgivable.
        if let Some(mount) = mounts_below(dir).first() {
            return Err(Error::refused(
                format!("{} is still mounted", mount.display()),
                "unmount it, then try again",
            ));
        }
        std::fs::remove_dir_all(dir).doing(|| format!("remove {}", dir.display()))?;
    }
    Ok(found)
}

/// A lab's record is the first file that is written and the last thing that makes its folder ours.
fn refuse_what_is_no_lab(layout: &Layout) -> Result<()> {
    let empty = std::fs::read_dir(layout.dir()).map_or(true, |mut entries| entries.next().is_none());
    if empty || layout.record().exists() {
        return Ok(());
    }
    Err(Error::refused(
        format!("{} is not the folder of a lab", layout.dir().display()),
        "choose another name or another ATOLL_LAB_STATE; if it is what a crash left, remove it by hand",
    ))
}

/// The links of the lab at `layout` that are still there: none when it is gone.
pub fn links(layout: &Layout) -> Vec<String> {
    network::links_of(layout.dir(), Record::read(layout).map(|record| record.slot))
}

/// The mounts at or below `dir` that this process sees.
pub fn mounts_below(dir: &Path) -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut mounts: Vec<_> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(unescape)
        .filter(|mount| mount.starts_with(dir))
        .collect();
    mounts.sort();
    mounts
}

/// The kernel writes spaces and the like as a backslash and three octal digits.
fn unescape(path: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) if byte == b'\\' => {
                bytes.push(escaped);
                rest = &after[3..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// The lab's folders in every control group hierarchy.
pub fn cgroups(layout: &Layout) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let below = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = layout.group();
    std::iter::once(root.to_owned())
        .chain(below)
        .map(|hierarchy| hierarchy.join("atoll-lab").join(&name))
        .filter(|group| group.is_dir())
        .collect()
}

fn remove_cgroups(layout: &Layout) -> Result<()> {
    for group in cgroups(layout) {
        remove_group(&group)?;
        if let Some(parent) = group.parent() {
            // Another lab may still have its own in there.
            let _ = std::fs::remove_dir(parent);
        }
    }
    Ok(())
}

/// A control group is removed by removing its folder, innermost first; its files go by themselves.
fn remove_group(group: &Path) -> Result<()> {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path())?;
        }
    }
    // The kernel lets go of a group a moment after its last process.
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        match std::fs::remove_dir(group) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome.doing(|| format!("remove the control group {}", group.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_mount_points_are_read_back() {
        assert_eq!(unescape("/a\\040b/c"), PathBuf::from("/a b/c"));
        assert_eq!(unescape("/plain\\x"), PathBuf::from("/plain\\x"));
    }

    #[test]
    fn a_folder_that_is_no_lab_is_never_removed() {
        let root = std::env::temp_dir().join(format!("lab-unit-{}", std::process::id()));
        let layout = Layout::at(root.join("thesis"));
        std::fs::create_dir_all(layout.dir()).unwrap();
        std::fs::write(layout.dir().join("chapter1"), "years of work").unwrap();
        let refused = sweep(&layout).unwrap_err().to_string();
        assert!(refused.contains("not the folder of a lab"), "{refused}");
        assert!(layout.dir().join("chapter1").exists());
        std::fs::remove_dir_all(root).unwrap();
    }
}
