//! `bench api`: the embedded API and kube-apiserver on etcd, side by side, each on a machine of its own.

use super::environment::product;
use atoll_bench::api::{Options, Server, measure};
use atoll_lab::cli::Format;
use atoll_lab::{Bystander, Cluster, Component, Lab, Process, Progress, Spec};
use clap::Args;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[derive(Args)]
pub(super) struct Api {
    #[command(flatten)]
    options: Options,
    /// The `atoll` binary, whose hub has the embedded API [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The lab to start and to remove; one of this name that is up is removed first.
    #[arg(long, default_value = "bench-api")]
    name: String,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Api {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let program = product(self.binary)?;
        // With fsync, as ours has it; without audit logs, which ours has not.
        let spec =
            Spec { fsync: true, audit: false, ..Spec::api_only(&self.name, 1).with_bystander("embedded") };
        let lab = Lab::start(&spec, &Progress::to_stderr()).await?;
        let real = Real(lab.member(1).clone());
        real.stop().await.map_err(anyhow::Error::msg)?;
        let embedded =
            Embedded { program, host: lab.bystander("embedded").clone(), process: Mutex::new(None) };
        let servers: [Box<dyn Server>; 2] = [Box::new(embedded), Box::new(real)];
        let report = Box::pin(measure(&servers, &self.options, &|doing| eprintln!("bench: {doing}"))).await?;
        Ok(self.output.print(&report, ToString::to_string)?)
    }
}

/// How long a server may take to end when it is asked politely.
const GRACE: Duration = Duration::from_secs(30);
const PORT: u16 = 6443;

/// Ours.
struct Embedded {
    program: PathBuf,
    host: Bystander,
    process: Mutex<Option<Process>>,
}

impl Embedded {
    fn data_dir(&self) -> PathBuf {
        self.host.machine().dir().join("data")
    }

    fn process(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server for Embedded {
    fn name(&self) -> &str {
        "embedded"
    }

    fn start(&self, empty: bool) -> BoxFuture<'_, Result<(), String>> {
        async move {
            if empty {
                gone(fs::remove_file(self.data_dir().join("store.redb")))?;
            }
            let (program, dir) = (self.program.display().to_string(), self.data_dir().display().to_string());
            let address = format!("0.0.0.0:{PORT}");
            let flags = ["hub", "--data-dir", &dir, "--api-address", &address, "--metrics-address", "none"];
            let argv: Vec<String> =
                std::iter::once(program.as_str()).chain(flags).map(str::to_owned).collect();
            let started = self.host.machine().spawn("embedded", &argv).map_err(|error| error.to_string())?;
            *self.process() = Some(started);
            Ok(())
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let Some(process) = self.process().take() else { return Ok(()) };
            process.end(GRACE).map_err(|error| error.to_string())?;
            // Its first thread is gone; one that waits for the disk still holds the data directory.
            let traces = PathBuf::from(format!("/proc/{}", process.pid()));
            for _ in 0..GRACE.as_millis() / 10 {
                if !traces.exists() {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err("the embedded server does not go".to_owned())
        }
        .boxed()
    }

    /// As the server wrote it, but with the address under which it is reached from outside.
    fn kubeconfig(&self) -> Result<String, String> {
        let text =
            fs::read_to_string(self.data_dir().join("kubeconfig")).map_err(|error| error.to_string())?;
        let mut config: serde_json::Value =
            serde_saphyr::from_str(&text).map_err(|error| error.to_string())?;
        let cluster = &mut config["clusters"][0]["cluster"];
        cluster["server"] = format!("https://{}:{PORT}", self.host.addresses().v4).into();
        cluster["tls-server-name"] = "localhost".into();
        Ok(config.to_string())
    }

    fn ended(&self) -> Option<String> {
        let ended = self.process().is_some_and(|process| !process.alive());
        ended.then(|| last_words(&self.host.machine().dir().join("logs/embedded.log")))
    }

    fn processes(&self) -> Vec<u32> {
        self.process().iter().map(Process::pid).collect()
    }
}

/// kube-apiserver on etcd.
struct Real(Cluster);

impl Server for Real {
    fn name(&self) -> &str {
        "kube-apiserver + etcd"
    }

    fn start(&self, empty: bool) -> BoxFuture<'_, Result<(), String>> {
        async move {
            if empty {
                gone(fs::remove_dir_all(self.0.dir().join("etcd")))?;
            }
            for component in Component::API {
                self.0.start(component).map_err(|error| error.to_string())?;
            }
            Ok(())
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), String>> {
        async move {
            for component in Component::API.into_iter().rev() {
                if let Some(process) = self.0.process(component) {
                    process.end(GRACE).map_err(|error| error.to_string())?;
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn kubeconfig(&self) -> Result<String, String> {
        Ok(self.0.kubeconfig())
    }

    fn ended(&self) -> Option<String> {
        let ended = Component::API.into_iter().find(|part| self.0.process(*part).is_none())?;
        Some(last_words(&self.0.log(ended)))
    }

    fn processes(&self) -> Vec<u32> {
        Component::API
            .into_iter()
            .filter_map(|part| self.0.process(part))
            .map(|process| process.pid())
            .collect()
    }
}

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// What isn't there needs no removing.
fn gone(removed: std::io::Result<()>) -> Result<(), String> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}
