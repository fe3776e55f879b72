//! Takes a lab away, whole or half-made, also one whose driver was killed.
//!
//! Nothing is found by a program's name: processes carry the lab's mark in their environment, links carry
//! the lab's slot in their name, and control groups lie in the lab's own folder.

use crate::addresses;
use crate::error::{Doing, Result};
use crate::layout::{Layout, read};
use crate::network::remove_bridge;
use crate::process::marked;
use crate::record::Record;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Removes everything of the lab at `layout`; whether there was anything.
pub(crate) fn sweep(layout: &Layout) -> Result<bool> {
    let mut found = layout.dir().exists();
    // Ending a place's first process ends what the mark does not reach: containers have an environment of
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
            return Err(crate::Error::refused(
                format!("{} processes of the lab do not end", processes.len()),
                "they may hang in the kernel: see `dmesg`, and try again",
            ));
        }
    }
    if let Some(record) = read(&layout.record()).ok().and_then(|text| Record::parse(&text)) {
        remove_bridge(record.slot)?;
    }
    remove_cgroups(layout)?;
    if layout.dir().exists() {
        // A mount made outside a place (there should be none) would be emptied through: never follow one.
        unmount_below(layout.dir())?;
        std::fs::remove_dir_all(layout.dir()).doing(|| format!("remove {}", layout.dir().display()))?;
    }
    Ok(found)
}

/// The links of slot `slot` that are still there: empty when the lab is gone.
pub fn links(slot: u8) -> Vec<String> {
    let (bridge, cable) = (addresses::bridge(slot), format!("atoll{slot}p"));
    let links = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    links
        .filter_map(|link| link.file_name().into_string().ok())
        .filter(|name| *name == bridge || name.starts_with(&cable))
        .collect()
}

/// The mounts at or below `dir` that this process sees.
pub fn mounts_below(dir: &Path) -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut mounts: Vec<_> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(PathBuf::from)
        .filter(|mount| mount.starts_with(dir))
        .collect();
    mounts.sort();
    mounts
}

fn unmount_below(dir: &Path) -> Result<()> {
    for mount in mounts_below(dir).iter().rev() {
        crate::command::run(std::process::Command::new("umount").arg("-l").arg(mount))?;
    }
    Ok(())
}

/// The lab's folders in every control group hierarchy.
pub fn cgroups(layout: &Layout) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let below = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = layout.dir().file_name().unwrap_or_default();
    std::iter::once(root.to_owned())
        .chain(below)
        .map(|hierarchy| hierarchy.join("atoll-lab").join(name))
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
