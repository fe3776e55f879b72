//! Processes that outlive us: recorded by id *and* start time, so that a reused id is never signalled.

use crate::error::{Doing, Error, Result};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long threads that run may take to notice that they are stopped.
const STOPPING: Duration = Duration::from_secs(10);

/// A process of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pid: u32,
    /// In clock ticks since boot: field 22 of `/proc/<pid>/stat`.
    started: u64,
}

impl Process {
    /// The process that has `pid` now; `None` when there is none.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = Stat::read(pid)?;
        (!stat.dead).then_some(Self { pid, started: stat.started })
    }

    /// The process's id on the host.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it still runs (a frozen process does).
    pub fn alive(&self) -> bool {
        Self::of(self.pid) == Some(*self)
    }

    /// Freezes it, and waits until none of its threads runs: SIGSTOP reaches those on other processors later.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        let deadline = Instant::now() + STOPPING;
        while self.alive() && !self.frozen() {
            if Instant::now() > deadline {
                return Err(Error::refused(
                    format!("process {} does not freeze within {} s", self.pid, STOPPING.as_secs()),
                    "a thread may hang in the kernel: see `dmesg`",
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Whether it is frozen: every thread of it is stopped.
    pub fn frozen(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten().flatten();
        let mut states = threads.filter_map(|thread| Stat::of(&thread.path().join("stat"))).peekable();
        self.alive() && states.peek().is_some() && states.all(|stat| stat.stopped)
    }

    /// The process that started it, unless that is the system's first.
    pub(crate) fn parent(&self) -> Option<Self> {
        let stat = Stat::read(self.pid).filter(|stat| stat.started == self.started)?;
        (stat.parent > 1).then(|| Self::of(stat.parent)).flatten()
    }

    /// Sends `signal`; a process that is gone is no error.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let doing = || format!("signal process {}", self.pid);
        let Some(pid) = Pid::from_raw(self.pid.cast_signed()) else { return Ok(()) };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::SRCH) => return Ok(()),
            Err(errno) => return Err(std::io::Error::from(errno)).doing(doing),
        };
        // The handle pins the process, so from here on the id cannot come to mean another one.
        if !self.alive() {
            return Ok(());
        }
        match pidfd_send_signal(handle, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(std::io::Error::from(errno)).doing(doing),
        }
    }

    /// Waits until it is gone; false when it is still there after `limit`.
    pub fn wait_gone(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.alive() {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Ends it: politely, and after `grace` for certain.
    pub fn end(&self, grace: Duration) -> Result<()> {
        self.signal(Signal::TERM)?;
        // A frozen process hears SIGTERM only once it runs again.
        self.signal(Signal::CONT)?;
        if self.wait_gone(grace) { Ok(()) } else { self.kill() }
    }

    /// Ends it at once, and waits until it is gone. The first process of a namespace goes last of all in it,
    /// which takes a while on a busy host.
    pub fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)?;
        if self.wait_gone(Duration::from_secs(60)) {
            return Ok(());
        }
        Err(Error::refused(
            format!("process {} does not end", self.pid),
            "it may hang in the kernel: see `dmesg`",
        ))
    }
}

/// The first child of process `pid`.
pub(crate) fn child_of(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// Every process whose environment has the entry `mark`.
pub(crate) fn marked(mark: &str) -> Vec<Process> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
        })
        .filter_map(Process::of)
        .collect()
}

struct Stat {
    parent: u32,
    started: u64,
    dead: bool,
    stopped: bool,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::of(Path::new(&format!("/proc/{pid}/stat")))
    }

    fn of(file: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(file).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The program's name stands in brackets and may hold anything, brackets too.
        let fields: Vec<_> = text[text.rfind(')')? + 1..].split_whitespace().collect();
        let state = fields.first()?;
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
            dead: matches!(*state, "Z" | "X"),
            stopped: matches!(*state, "T" | "t"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_name_with_brackets_does_not_confuse_the_reader() {
        let text = "7 (a ) b) T 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.started, stat.dead, stat.stopped), (4242, false, true));
    }

    #[test]
    fn a_process_is_frozen_thawed_and_killed() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        process.freeze().unwrap();
        assert!(process.frozen());
        process.signal(Signal::CONT).unwrap();
        process.kill().unwrap();
        assert!(!process.alive(), "a zombie counts as gone");
        child.wait().unwrap();
    }

    #[test]
    fn another_process_under_the_same_id_is_not_touched() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let now = Process::of(child.id()).unwrap();
        let former = Process { started: now.started - 1, ..now };
        assert!(!former.alive());
        former.signal(Signal::KILL).unwrap();
        assert!(now.alive());
        now.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn marked_processes_are_found_by_their_environment() {
        let value = format!("/nowhere/{}", std::process::id());
        let mut child = Command::new("sleep").arg("60").env("ATOLL_LAB_UNIT", &value).spawn().unwrap();
        let found = marked(&format!("ATOLL_LAB_UNIT={value}"));
        assert_eq!(found.iter().map(Process::pid).collect::<Vec<_>>(), [child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
