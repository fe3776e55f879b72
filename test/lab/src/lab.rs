//! A lab: clusters and bystanders on one network, taken down when dropped.

use crate::addresses::{self, ClusterAddresses, Pair};
use crate::boot::boot;
use crate::cluster::Cluster;
use crate::config;
use crate::error::{Error, Result};
use crate::install::{Installed, install};
use crate::layout::{Layout, cache_root, make_dir, try_lock, write_private};
use crate::machine::Machine;
use crate::network;
use crate::process::Process;
use crate::progress::{Progress, say};
use crate::record::Record;
use crate::spec::Spec;
use crate::teardown::sweep;

/// A host outside all clusters, on the same network.
#[derive(Debug, Clone)]
pub struct Bystander {
    machine: Machine,
    addresses: Pair,
}

impl Bystander {
    /// Where it lives: run programs in there.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Its addresses.
    pub fn addresses(&self) -> Pair {
        self.addresses
    }
}

/// Clusters that are up. Dropping it takes them down, unless it was [left](Lab::leave_running).
#[derive(Debug)]
pub struct Lab {
    record: Record,
    layout: Layout,
    clusters: Vec<Cluster>,
    bystanders: Vec<Bystander>,
    owned: bool,
    // Whoever drives the lab holds it, so that no other process takes the lab down meanwhile.
    _lock: Option<std::fs::File>,
}

impl Lab {
    /// Starts a lab, after taking away what an earlier one of its name left.
    pub async fn start(spec: &Spec, progress: &Progress) -> Result<Self> {
        spec.check()?;
        let layout = Layout::of(&spec.name);
        layout.check()?;
        let lock = take_lock(&layout)?;
        let (for_install, oldest) = (progress.clone(), !spec.oldest.is_empty());
        let installed = crate::boot::blocking(move || {
            let mut installed = install(&cache_root(), &for_install)?;
            if oldest {
                installed.programs.oldest_api_server =
                    Some(crate::install::oldest_api_server(&cache_root(), &for_install)?);
            }
            Ok::<_, Error>(installed)
        })
        .await??;
        if sweep(&layout)? {
            progress.reached(&spec.name, "removed what was left of an earlier lab");
        }
        let record = Record::claim(&layout, spec, &installed.programs)?;
        // From here on, whatever fails, dropping removes what was made.
        let (clusters, bystanders) = (Vec::new(), Vec::new());
        let mut lab = Self { record, layout, clusters, bystanders, owned: true, _lock: Some(lock) };
        match lab.build(&installed, progress).await {
            Ok(()) => Ok(lab),
            Err(error) => Err(lab.keep_logs(error)),
        }
    }

    /// Moves the logs of a start that failed to where they outlive it.
    fn keep_logs(&self, error: Error) -> Error {
        let kept = self.layout.failed();
        let _ = std::fs::remove_dir_all(&kept);
        for machine in self.machines() {
            let target = kept.join(machine.name());
            if make_dir(&target).is_ok() {
                let _ = std::fs::rename(machine.dir().join("logs"), target.join("logs"));
            }
        }
        match error {
            Error::Component { cluster, component, what, tail, log } => {
                let log = log.strip_prefix(self.layout.dir()).map(|path| kept.join(path)).unwrap_or(log);
                Error::Component { cluster, component, what, tail, log }
            }
            other => other,
        }
    }

    fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.clusters.iter().map(Cluster::machine).chain(self.bystanders.iter().map(Bystander::machine))
    }

    async fn build(&mut self, installed: &Installed, progress: &Progress) -> Result<()> {
        let (slot, spec) = (self.record.slot, self.record.spec.clone());
        let numbers: Vec<_> = (1..=spec.clusters).map(|number| ClusterAddresses { slot, number }).collect();
        for (name, addresses) in spec.cluster_names().zip(&numbers) {
            let cluster = Cluster::prepare(&self.layout, &spec, &name, *addresses, &installed.programs)?;
            network::plug_in(cluster.machine(), slot, addresses.number, &numbers)?;
            write_private(&cluster.dir().join("kubeconfig"), cluster.kubeconfig())?;
            self.clusters.push(cluster);
        }
        for (name, index) in spec.bystanders.iter().zip(0..) {
            let host = addresses::bystander_host(index);
            let machine = Machine::open(&self.layout, name)?;
            network::plug_in(&machine, slot, host, &numbers)?;
            self.bystanders.push(Bystander { machine, addresses: addresses::on_bridge(slot, host) });
        }
        let entries: Vec<_> = self.clusters.iter().map(Cluster::access).collect();
        write_private(&self.layout.kubeconfig(), config::kubeconfig(&entries))?;
        let booting = self.clusters.iter().map(|cluster| boot(cluster, &installed.images, progress));
        futures_util::future::try_join_all(booting).await?;
        self.record.complete = true;
        self.record.write(&self.layout)
    }

    /// The lab called `name`, if it is up, cabled, and every component runs; this process does not own it.
    pub fn find(name: &str) -> Result<Option<Self>> {
        let runs = |process: Option<Process>| process.is_some_and(|process| !process.frozen());
        let whole = |cluster: &Cluster| cluster.components().iter().all(|part| runs(cluster.process(*part)));
        let cabled = |lab: &Self| {
            crate::teardown::links(&lab.layout).len() > lab.clusters.len() + lab.bystanders.len()
        };
        Ok(Self::find_broken(name)?.filter(|lab| lab.clusters.iter().all(whole) && cabled(lab)))
    }

    /// The lab called `name`, if it is up, even if components have ended; this process does not own it.
    pub fn find_broken(name: &str) -> Result<Option<Self>> {
        crate::spec::check_name("lab", name)?;
        let layout = Layout::of(name);
        let Some(record) = Record::read(&layout).filter(|record| record.complete) else { return Ok(None) };
        let (slot, spec, programs) = (record.slot, &record.spec, &record.programs);
        let clusters: Option<Vec<_>> = spec
            .cluster_names()
            .zip(1..)
            .map(|(name, number)| {
                Cluster::find(&layout, spec, &name, ClusterAddresses { slot, number }, programs)
            })
            .collect();
        let bystanders: Option<Vec<_>> = spec
            .bystanders
            .iter()
            .zip(0..)
            .map(|(name, index)| {
                let addresses = addresses::on_bridge(slot, addresses::bystander_host(index));
                Some(Bystander { machine: Machine::find(&layout, name)?, addresses })
            })
            .collect();
        let (Some(clusters), Some(bystanders)) = (clusters, bystanders) else { return Ok(None) };
        Ok(Some(Self { record, layout, clusters, bystanders, owned: false, _lock: None }))
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.record.spec
    }

    /// Which of the host's slots it has; its links are named by it.
    pub fn slot(&self) -> u8 {
        self.record.slot
    }

    /// Where its files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// All clusters, in order.
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// The `number`th cluster, from 1.
    ///
    /// # Panics
    /// When the lab has fewer: the test that asks is wrong.
    pub fn member(&self, number: usize) -> &Cluster {
        &self.clusters[number - 1]
    }

    /// The bystander called `name`.
    ///
    /// # Panics
    /// When the lab has none of that name: the test that asks is wrong.
    pub fn bystander(&self, name: &str) -> &Bystander {
        let found = self.bystanders.iter().find(|bystander| bystander.machine.name() == name);
        found.unwrap_or_else(|| panic!("the lab was started without a bystander `{name}`"))
    }

    /// All bystanders.
    pub fn bystanders(&self) -> &[Bystander] {
        &self.bystanders
    }

    /// The host's own addresses on the lab's network.
    pub fn host(&self) -> Pair {
        addresses::host(self.record.slot)
    }

    /// Lets the clusters run on when this value goes.
    pub fn leave_running(mut self) {
        self.owned = false;
    }

    /// Takes everything down and says what went wrong on the way, if anything.
    pub fn down(mut self) -> Result<()> {
        self.owned = false;
        sweep(&self.layout).map(drop)
    }
}

impl Lab {}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.owned
            && let Err(error) = sweep(&self.layout)
        {
            say(&format!("could not take `{}` down: {error}", self.record.spec.name));
        }
    }
}

/// Takes down the lab called `name`, however little of it is left; whether there was anything.
pub fn down(name: &str) -> Result<bool> {
    crate::spec::check_name("lab", name)?;
    let layout = Layout::of(name);
    let lock = take_lock(&layout)?;
    let found = sweep(&layout)?;
    drop(lock);
    Ok(found)
}

fn take_lock(layout: &Layout) -> Result<std::fs::File> {
    try_lock(&layout.lock())?.ok_or_else(|| {
        let name = layout.dir().file_name().unwrap_or_default().to_string_lossy();
        Error::refused(
            format!("another process is driving the lab `{name}`"),
            "wait for it, or use another name: `--name`, or ATOLL_LAB_NAME for tests",
        )
    })
}
