//! The members of a sandbox, which can be stopped and started one by one.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context;
use atoll_kubeapi::hosted::HostError;
use atoll_kubeapi::server::ServeError;
use atoll_sandbox::block::Block;
use atoll_sandbox::member::{Member, MemberError, Options};
use atoll_sandbox::network::{Network, OFFSET};
use atoll_sandbox::programs::Confinement;
use futures_util::future::{join_all, try_join_all};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::state::{self, Dir};
use crate::failure::Failure;

/// All members. Clones are the same.
#[derive(Clone)]
pub(crate) struct Members {
    slots: Arc<Vec<Slot>>,
    runtime: Handle,
}

struct Slot {
    options: Options,
    /// None while it is stopped. Held while it starts or stops.
    member: Mutex<Option<Arc<Member>>>,
}

impl Members {
    pub(crate) fn new(
        dir: &Dir,
        members: &[state::Member],
        runtime: &Handle,
        confinement: &Confinement,
    ) -> Self {
        let network = Network::new();
        let slot = |member: &state::Member| Slot {
            options: Options {
                name: member.name.clone(),
                data_dir: dir.member(&member.name),
                block: Block(member.block),
                network: network.clone(),
                confinement: confinement.clone(),
            },
            member: Mutex::new(None),
        };
        Self { slots: Arc::new(members.iter().map(slot).collect()), runtime: runtime.clone() }
    }

    /// What is added to ports below 1024, if this user may not bind them.
    pub(crate) fn port_offset(&self) -> Option<u16> {
        let api = *self.slots.first()?.options.block.api().ip();
        // A port that nothing of ours uses; only whether it is refused matters.
        let refused = std::net::TcpListener::bind((api, 1));
        let denied = refused.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        denied.then_some(OFFSET)
    }

    /// Those that run.
    pub(crate) async fn all(&self) -> Vec<Arc<Member>> {
        join_all(self.slots.iter().map(|slot| async { slot.member.lock().await.clone() }))
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    /// The one of this name, if it runs.
    pub(crate) async fn get(&self, name: &str) -> anyhow::Result<Arc<Member>> {
        let member = self.slot(name)?.member.lock().await.clone();
        member.with_context(|| format!("`{name}` is stopped; start it with `atoll member start {name}`"))
    }

    /// The one that has this address, if it runs.
    pub(crate) async fn at(&self, address: IpAddr) -> Option<Arc<Member>> {
        let slot = self.slots.iter().find(|slot| slot.options.block.holds(address))?;
        slot.member.lock().await.clone()
    }

    /// Starts all, side by side.
    pub(crate) async fn start_all(&self) -> anyhow::Result<()> {
        try_join_all(self.slots.iter().map(|slot| self.start_at(slot))).await?;
        Ok(())
    }

    /// Starts one that is stopped.
    pub(crate) async fn start(&self, name: &str) -> anyhow::Result<()> {
        self.start_at(self.slot(name)?).await
    }

    /// Stops one: its API, its pods, its DNS. What it remembers stays.
    pub(crate) async fn stop(&self, name: &str) -> anyhow::Result<()> {
        stop_at(self.slot(name)?).await;
        Ok(())
    }

    pub(crate) async fn stop_all(&self) {
        join_all(self.slots.iter().map(stop_at)).await;
    }

    fn slot(&self, name: &str) -> anyhow::Result<&Slot> {
        self.slots.iter().find(|slot| slot.options.name == name).with_context(|| {
            let known: Vec<&str> = self.slots.iter().map(|slot| slot.options.name.as_str()).collect();
            format!("member `{name}` not found; the members are {}", known.join(", "))
        })
    }

    async fn start_at(&self, slot: &Slot) -> anyhow::Result<()> {
        let mut member = slot.member.lock().await;
        if member.is_none() {
            let started = self.runtime.spawn(Member::start(slot.options.clone())).await;
            let started = started.context("a member failed while it started")?;
            *member = Some(Arc::new(started.map_err(|error| explain(&error))?));
        }
        Ok(())
    }
}

async fn stop_at(slot: &Slot) {
    let mut member = slot.member.lock().await;
    if let Some(member) = member.take() {
        member.stop().await;
    }
}

fn explain(error: &MemberError) -> Failure {
    match error {
        MemberError::Host { name, source: HostError::Serve(ServeError::Listen { address, .. }) } => {
            let what = format!("cannot start `{name}`: {address} is already in use");
            Failure::plain(&what, "stop the other sandbox, or start over with --fresh")
        }
        _ => Failure::plain(&error.to_string(), "start over with `atoll up --fresh`"),
    }
}
