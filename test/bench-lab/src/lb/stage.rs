//! Where one subject is measured: a client, the balancer and the backends in network namespaces of their own, in a row. Every
//! subject has such a row for itself, all alike, so that what one leaves in the kernel (rules, tracked connections,
//! ports that wait) does not touch another.
//!
//! ```text
//!   client 10.71.0.2 ── 10.71.0.1 balancer 10.72.0.1 ── 10.72.0.2 backends, also 10.72.0.11 to 14
//! ```

use super::case::Case;
use super::load::Measured;
use super::subject::{BACKENDS, PORT, Subject};
use anyhow::{Context, bail, ensure};
use atoll_lab::Process;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Begins the name of every namespace; then comes the process that made it.
const PREFIX: &str = "atoll-bench-lb-";

/// Gone when dropped, with everything in it.
pub(super) struct Stage {
    pub(super) subject: Subject,
    names: Names,
    folder: PathBuf,
    /// What runs, the balancer last.
    running: Vec<Child>,
}

struct Names {
    client: String,
    balancer: String,
    backend: String,
}

impl Names {
    fn all(&self) -> [&str; 3] {
        [&self.client, &self.balancer, &self.backend]
    }
}

impl Stage {
    /// Makes the networks, and starts the backends and the balancer.
    pub(super) fn open(subject: Subject, atoll: &Path, folder: &Path) -> anyhow::Result<Self> {
        let number = subject as u8;
        let name = |role: &str| format!("{PREFIX}{}-{number}-{role}", std::process::id());
        let names = Names { client: name("client"), balancer: name("balancer"), backend: name("backend") };
        let folder = folder.join(number.to_string());
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // From here on, whatever is made is removed again.
        let mut stage = Self { subject, names, folder, running: Vec::new() };
        stage.lay_cables()?;
        let this = std::env::current_exe().context("where is this program?")?.display().to_string();
        let backend = stage.command(
            &stage.names.backend,
            &[&this, "lb-backend", &format!("0.0.0.0:{PORT}")],
            "backend",
        )?;
        stage.start(backend)?;
        if let Some((name, text)) = subject.configuration() {
            fs::write(stage.folder.join(name), text)?;
        }
        if let Some(argv) = subject.program(atoll, &stage.folder) {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            let mut balancer = stage.command(&stage.names.balancer, &argv, "balancer")?;
            if subject == Subject::BareRule {
                ensure!(balancer.status()?.success(), "nft refused the rule: {}", stage.log("balancer"));
            } else {
                stage.start(balancer)?;
            }
        }
        Ok(stage)
    }

    fn lay_cables(&self) -> anyhow::Result<()> {
        let Names { client, balancer, backend } = &self.names;
        let mut text = String::new();
        for name in self.names.all() {
            writeln!(text, "netns add {name}")?;
        }
        ip(&[], &text)?;
        for (end, number, to) in [(client, 71, "front"), (backend, 72, "back")] {
            ip(
                &["-n", end],
                &format!(
                    "link set lo up
link add eth0 type veth peer name {to} netns {balancer}
addr add 10.{number}.0.2/24 dev eth0
link set eth0 up
route add default via 10.{number}.0.1
"
                ),
            )?;
            ip(&["-n", balancer], &format!("addr add 10.{number}.0.1/24 dev {to}\nlink set {to} up\n"))?;
        }
        let addresses = BACKENDS.map(|address| format!("addr add {address}/24 dev eth0\n")).concat();
        ip(&["-n", backend], &addresses)?;
        ip(&["-n", balancer], "link set lo up\n")?;
        // As on any machine that is meant to carry many connections.
        for name in [client, balancer] {
            let settings = "echo 1024 65535 > /proc/sys/net/ipv4/ip_local_port_range
echo 1 > /proc/sys/net/ipv4/ip_forward";
            let done = Command::new("ip").args(["netns", "exec", name, "sh", "-ec", settings]).status()?;
            ensure!(done.success(), "cannot set up the network of {name}");
        }
        Ok(())
    }

    /// A command in a namespace, whose words go to a log.
    fn command(&self, namespace: &str, argv: &[&str], log: &str) -> anyhow::Result<Command> {
        let log = File::create(self.folder.join(format!("{log}.log")))?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).args(argv);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    fn start(&mut self, mut command: Command) -> anyhow::Result<()> {
        self.running.push(command.spawn().with_context(|| format!("cannot start {command:?}"))?);
        Ok(())
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(format!("{name}.log"))).unwrap_or_default()
    }

    /// Loads it once.
    pub(super) fn measure(
        &self,
        case: Case,
        clients: usize,
        rate: u32,
        seconds: f64,
    ) -> anyhow::Result<Measured> {
        let this = std::env::current_exe().context("where is this program?")?;
        let targets: Vec<String> = self.subject.targets().iter().map(ToString::to_string).collect();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names.client]).arg(this).args(["lb-load", case.name()]);
        command.args(["--to", &targets.join(","), "--clients", &case.clients(clients).to_string()]);
        command.args(["--rate", &rate.to_string(), "--seconds", &seconds.to_string()]);
        if self.subject.is_a_process() {
            // `ip` becomes the program that it starts, so this is the balancer.
            let balancer = self.running.last().context("the balancer runs")?;
            command.args(["--pid", &balancer.id().to_string()]);
        }
        let output = command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            bail!(
                "{} could not be measured: {}\n  the balancer said: {}\n  the backend said: {}",
                self.subject,
                String::from_utf8_lossy(&output.stderr).trim_end(),
                self.log("balancer").trim_end(),
                self.log("backend").trim_end()
            );
        }
        serde_json::from_slice(&output.stdout).context("the load did not print its result")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in &mut self.running {
            // Its children go with the namespace's other processes below.
            let _ = child.kill();
            let _ = child.wait();
        }
        for name in self.names.all() {
            remove(name);
        }
    }
}

/// Removes what a run that was killed has left.
pub(super) fn sweep() {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if maker(&name).is_some_and(|pid| Process::of(pid).is_none()) {
            remove(&name);
        }
    }
}

/// The process that made the namespace of this name, if it is one of ours.
fn maker(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Ends the processes in a namespace, and removes it. One that is gone already is fine.
fn remove(name: &str) {
    if let Ok(output) = Command::new("ip").args(["netns", "pids", name]).output() {
        let pids = String::from_utf8_lossy(&output.stdout).into_owned();
        for process in pids.split_whitespace().filter_map(|pid| Process::of(pid.parse().ok()?)) {
            let _ = process.kill();
        }
    }
    let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
}

fn ip(flags: &[&str], batch: &str) -> anyhow::Result<()> {
    let mut command = Command::new("ip");
    let mut child =
        command.args(flags).args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("stdin was piped")?.write_all(batch.as_bytes())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "`ip` refused {batch:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_namespaces_of_this_benchmark_are_swept() {
        for (name, want) in [
            ("atoll-bench-lb-42-3-client", Some(42)),
            ("atoll-bench-lb-x-3-client", None),
            ("atoll-lb-42", None),
            ("someone", None),
        ] {
            assert_eq!(maker(name), want, "{name}");
        }
    }
}
