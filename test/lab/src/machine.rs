//! A machine of the lab: Linux namespaces (network, processes, mounts, host name) and a control group on the host.
//!
//! A cluster runs on one, and so does a bystander. Everything hangs on the machine's first process: when it
//! ends, the kernel ends every other process on it, pods included, and removes mounts and links. So a
//! crash can leave nothing half-cleaned.

use crate::command::stdout_of;
use crate::error::{Doing, Error, Result};
use crate::layout::{Layout, MARK, make_dir, read, write_private};
use crate::process::{Process, child_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Hides the host's run-time folders behind empty ones and its control groups behind the machine's own, then
/// waits for ever and reaps orphans. Control groups are one hierarchy (version 2) or several (1, or mixed).
const FIRST_PROCESS: &str = r#"set -e
hostname "$1"
mount -t proc proc /proc
for folder in /run /var/log /var/lib/cni /var/lib/kubelet; do mount -t tmpfs lab "$folder"; done
hierarchies=/sys/fs/cgroup
[ -e /sys/fs/cgroup/cgroup.controllers ] || hierarchies=$(echo /sys/fs/cgroup/*)
for hierarchy in $hierarchies; do
  [ -e "$hierarchy/cgroup.procs" ] || continue
  group=$hierarchy
  for part in atoll-lab "$2" "$1"; do
    [ ! -e "$group/cgroup.controllers" ] || for controller in $(cat "$group/cgroup.controllers"); do
      echo "+$controller" > "$group/cgroup.subtree_control" || true
    done
    parent=$group group=$group/$part
    mkdir -p "$group"
    # In version 1 a new group has no processors and no memory until it is given some.
    [ ! -e "$group/cgroup.clone_children" ] || for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$group/$file" ] || cat "$parent/$file" > "$group/$file"
    done
  done
  echo 0 > "$group/cgroup.procs"
  mount --bind "$group" "$hierarchy"
done
mount --make-rshared /
ip link set lo up
# The group that it is in now becomes the root that everything inside sees.
exec unshare --cgroup sh -c "$3" enter tini -s -- sleep infinity"#;

/// Puts itself into the machine's control groups, then becomes the program that its arguments name. In
/// version 2 a group with children holds no processes, so they go into one beside the pods'.
const ENTER: &str = r#"hierarchies=/sys/fs/cgroup
[ -e /sys/fs/cgroup/cgroup.controllers ] || hierarchies=$(echo /sys/fs/cgroup/*)
for hierarchy in $hierarchies; do
  [ -e "$hierarchy/cgroup.procs" ] || continue
  group=$hierarchy
  [ ! -e "$hierarchy/cgroup.controllers" ] || group=$hierarchy/components
  mkdir -p "$group" && echo 0 > "$group/cgroup.procs"
done
exec "$@""#;

/// Linux namespaces, held by their first process.
#[derive(Debug, Clone)]
pub struct Machine {
    name: String,
    dir: PathBuf,
    mark: PathBuf,
    first: Process,
}

impl Machine {
    /// Opens a new machine called `name` in the lab at `layout`.
    pub(crate) fn open(layout: &Layout, name: &str) -> Result<Self> {
        let dir = layout.member(name);
        make_dir(&dir.join("logs"))?;
        // Programs have these paths built in; inside they are empty folders of the machine's own.
        for folder in ["/var/lib/cni", "/var/lib/kubelet"] {
            make_dir(Path::new(folder))?;
        }
        let log = open_log(&dir, "machine")?;
        let mut command = Command::new("unshare");
        command
            .args(["--fork", "--pid", "--mount", "--net", "--uts", "--ipc", "--propagation", "private"])
            .args(["sh", "-c", FIRST_PROCESS, "first", name])
            .args([layout.group().as_str(), ENTER])
            .env_clear()
            .env("PATH", PATH)
            .env(MARK, layout.dir());
        let outer = spawn_detached(command, log)?;
        let first = inner_process(outer, &dir, "machine", |pid| {
            read(Path::new(&format!("/proc/{pid}/comm"))).is_ok_and(|comm| comm.trim() == "tini")
        })?;
        let machine = Self { name: name.to_owned(), dir, mark: layout.dir().to_owned(), first };
        let record = serde_json::to_vec(&first).expect("two numbers always serialize");
        write_private(&machine.dir.join("machine.json"), record)?;
        Ok(machine)
    }

    /// The machine called `name` of the lab at `layout`, if it is still there.
    pub(crate) fn find(layout: &Layout, name: &str) -> Option<Self> {
        let dir = layout.member(name);
        let first: Process = serde_json::from_str(&read(&dir.join("machine.json")).ok()?).ok()?;
        first.alive().then(|| Self { name: name.to_owned(), dir, mark: layout.dir().to_owned(), first })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folder of its lab.
    pub fn lab(&self) -> &Path {
        &self.mark
    }

    /// The process that holds it open.
    pub fn first(&self) -> Process {
        self.first
    }

    /// A command that will run `program` inside.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let target = self.first.pid().to_string();
        command
            .args(["--target", &target, "--pid", "--mount", "--net", "--uts", "--ipc", "--cgroup", "--wd=/"])
            .args(["--", "sh", "-c", ENTER, "enter"])
            .arg(program)
            .env_clear()
            .env("PATH", PATH)
            .env(MARK, &self.mark);
        command
    }

    /// Starts `argv` inside, its output going to `logs/<log>.log`; it outlives us.
    pub fn spawn(&self, log: &str, argv: &[String]) -> Result<Process> {
        let (program, arguments) = argv.split_first().ok_or_else(|| {
            Error::refused("there is no program to start", "give the program and its arguments")
        })?;
        let mut command = self.command(program);
        command.args(arguments);
        let outer = spawn_detached(command, open_log(&self.dir, log)?)?;
        inner_process(outer, &self.dir, log, |_| true)
    }

    /// Runs a shell script inside and returns what it printed.
    pub(crate) fn shell(&self, script: &str) -> Result<String> {
        stdout_of(self.command("sh").args(["-ec", script]))
    }
}

fn open_log(dir: &Path, name: &str) -> Result<std::fs::File> {
    let path = log_path(dir, name);
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true).open(&path).doing(|| format!("open {}", path.display()))
}

/// Where the output of `name` in the machine at `dir` goes.
pub(crate) fn log_path(dir: &Path, name: &str) -> PathBuf {
    dir.join("logs").join(format!("{name}.log"))
}

/// Starts `command` in a process group of its own (so that Ctrl-C is ours alone) and returns its id.
fn spawn_detached(mut command: Command, log: std::fs::File) -> Result<u32> {
    use std::os::unix::process::CommandExt;
    let line = crate::command::render(&command);
    let doing = || format!("start `{line}`");
    let second = log.try_clone().doing(doing)?;
    let mut child =
        command.stdin(Stdio::null()).stdout(log).stderr(second).process_group(0).spawn().doing(doing)?;
    let pid = child.id();
    // We collect its exit status while we live; afterwards the host's init does.
    std::thread::spawn(move || child.wait());
    Ok(pid)
}

/// `unshare` and `nsenter` fork, because entering a process namespace takes effect in children only.
/// Waits for that child, and until `settled`.
fn inner_process(outer: u32, dir: &Path, log: &str, settled: impl Fn(u32) -> bool) -> Result<Process> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(pid) = child_of(outer).filter(|pid| settled(*pid))
            && let Some(process) = Process::of(pid)
        {
            return Ok(process);
        }
        let gone = Process::of(outer).is_none();
        if gone || Instant::now() > deadline {
            let text = std::fs::read(log_path(dir, log)).unwrap_or_default();
            return Err(Error::Command {
                command: format!("start of {log} in {}", dir.display()),
                status: if gone { "it ended at once".into() } else { "it did not start within 10 s".into() },
                output: crate::command::last_lines(&text, 10),
            });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
