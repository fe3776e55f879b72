//! The members of a sandbox, which can be stopped and started one by one.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context;
use atoll_kubeapi::hosted::HostError;
use atoll_kubeapi::server::ServeError;
use atoll_sandbox::block::Block;
use atoll_sandbox::member::{Member, MemberError, Options};
use atoll_sandbox::network::{Network, OFFSET};
use futures_util::future::{join_all, try_join_all};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use super::state::{self, Dir};
use crate::failure::Failure;

/// All members. Clones are the same.
#[derive(Clone)]
pub(crate) struct Members {
    places: Arc<Vec<Place>>,
    runtime: Handle,
}

struct Place {
    options: Options,
    /// None while it is stopped. Held while it starts or stops.
    member: Mutex<Option<Arc<Member>>>,
}

impl Members {
    pub(crate) fn new(dir: &Dir, members: &[state::Member], runtime: &Handle) -> Self {
        let network = Network::new();
        let place = |member: &state::Member| Place {
            options: Options {
                name: member.name.clone(),
                data_dir: dir.member(&member.name),
                block: Block(member.block),
                network: network.clone(),
            },
            member: Mutex::new(None),
        };
        Self { places: Arc::new(members.iter().map(place).collect()), runtime: runtime.clone() }
    }

    /// What is added to ports below 1024, if this user may not bind them.
    pub(crate) fn port_offset(&self) -> Option<u16> {
        let api = *self.places.first()?.options.block.api().ip();
        // A port that nothing of ours uses; only whether it is refused matters.
        let refused = std::net::TcpListener::bind((api, 1));
        let denied = refused.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        denied.then_some(OFFSET)
    }

    /// Those that run.
    pub(crate) async fn all(&self) -> Vec<Arc<Member>> {
        join_all(self.places.iter().map(|place| async { place.member.lock().await.clone() }))
            .await
            .into_iter()
            .flatten()
            .collect()
    }

    /// The one of this name, if it runs.
    pub(crate) async fn get(&self, name: &str) -> anyhow::Result<Arc<Member>> {
        let member = self.place(name)?.member.lock().await.clone();
        member.with_context(|| format!("`{name}` is stopped; `atoll member start {name}` starts it"))
    }

    /// The one that has this address, if it runs.
    pub(crate) async fn at(&self, address: IpAddr) -> Option<Arc<Member>> {
        let place = self.places.iter().find(|place| place.options.block.holds(address))?;
        place.member.lock().await.clone()
    }

    /// Starts all, side by side.
    pub(crate) async fn start_all(&self) -> anyhow::Result<()> {
        try_join_all(self.places.iter().map(|place| self.start_at(place))).await?;
        Ok(())
    }

    /// Starts one that is stopped.
    pub(crate) async fn start(&self, name: &str) -> anyhow::Result<()> {
        self.start_at(self.place(name)?).await
    }

    /// Stops one: its API, its pods, its DNS. What it remembers stays.
    pub(crate) async fn stop(&self, name: &str) -> anyhow::Result<()> {
        stop_at(self.place(name)?).await;
        Ok(())
    }

    pub(crate) async fn stop_all(&self) {
        join_all(self.places.iter().map(stop_at)).await;
    }

    fn place(&self, name: &str) -> anyhow::Result<&Place> {
        self.places.iter().find(|place| place.options.name == name).with_context(|| {
            let known: Vec<&str> = self.places.iter().map(|place| place.options.name.as_str()).collect();
            format!("there is no member `{name}`; there are {}", known.join(", "))
        })
    }

    async fn start_at(&self, place: &Place) -> anyhow::Result<()> {
        let mut member = place.member.lock().await;
        if member.is_none() {
            let started = self.runtime.spawn(Member::start(place.options.clone())).await;
            let started = started.context("a member broke off while it started")?;
            *member = Some(Arc::new(started.map_err(|error| explain(&error))?));
        }
        Ok(())
    }
}

async fn stop_at(place: &Place) {
    let mut member = place.member.lock().await;
    if let Some(member) = member.take() {
        member.stop().await;
    }
}

fn explain(error: &MemberError) -> Failure {
    match error {
        MemberError::Host { name, source: HostError::Serve(ServeError::Listen { address, .. }) } => {
            let what = format!("cannot start `{name}`: {address} is taken");
            Failure::plain(
                &what,
                "another sandbox may have taken it meanwhile: stop that, or begin anew with --fresh",
            )
        }
        _ => Failure::plain(&error.to_string(), "`atoll up --fresh` begins anew"),
    }
}
