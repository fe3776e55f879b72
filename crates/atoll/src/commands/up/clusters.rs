//! The clusters of a sandbox: started side by side, joined, ready.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::time::Duration;

use anyhow::Context;
use atoll_api::names::{condition, label};
use atoll_api::types::Cluster;
use atoll_hub::explain::Questions;
use atoll_hub::join::{Location, Propagation, Request};
use atoll_hub::networks::{Networks, Ranges};
use atoll_hub::options::NAMESPACE;
use atoll_kubeapi::hosted::{self, HostError, Hosted};
use atoll_kubeapi::server::ServeError;
use atoll_lb_kube::Pool;
use atoll_sandbox::block::Block;
use atoll_sandbox::member::Member;
use atoll_sandbox::programs::Confinement;
use futures_util::{StreamExt, TryStreamExt, stream};
use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use super::kubeconfig;
use super::members::Members;
use super::state::{self, Dir, State};
use crate::commands::apply::Apply;
use crate::commands::hub::embedded;
use crate::failure::Failure;

/// The example that is applied, or that a person applies: a service, exported.
pub(super) const EXAMPLE: &str = include_str!("../../../../../examples/serve.yaml");
/// The first block that is tried: low ones are used by others, such as the machine's own resolver.
const FIRST: u8 = 32;
const LAST: u8 = 254;
/// The context, and the directory, of the hub.
pub(crate) const HUB: &str = "hub";
/// A sandbox that was down for years still has its members.
const TOKEN_LIFETIME: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// How many join at once.
const AT_ONCE: usize = 4;
/// How long the example may take to be reached from everywhere.
const EXAMPLE_WITHIN: Duration = Duration::from_secs(30);
const RESTART: &str = "free the address, or start over with `atoll up --fresh`";
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const TURN_WITHIN: Duration = Duration::from_secs(20);

/// A hub's API and its members.
pub(crate) struct Clusters {
    hub: Hosted,
    questions: Questions,
    /// The hub's block.
    block: Block,
    members: Members,
    /// So that no other sandbox takes the block of a member that is stopped.
    _claims: Vec<TcpListener>,
}

impl Clusters {
    /// Starts what the state says, and as many members more as there are to be.
    pub(crate) async fn start(
        dir: &Dir,
        known: Option<State>,
        count: usize,
        (runtime, confinement): (&Runtime, Confinement),
        say: &dyn Fn(&str),
    ) -> anyhow::Result<Self> {
        let _turn = turn().await;
        let mut blocks = Blocks::new(known.as_ref());
        let questions = Questions::default();
        let (hub, mut state) = match known {
            Some(state) => {
                let hub = start_hub(dir, Block(state.hub), runtime, questions.clone()).await;
                (
                    hub.map_err(|error| Failure::plain(&format!("cannot start the hub: {error}"), RESTART))?,
                    state,
                )
            }
            None => {
                let (hub, block) = loop {
                    let block = blocks.next()?;
                    match start_hub(dir, block, runtime, questions.clone()).await {
                        Err(error) if is_taken(&error) => {}
                        other => break (other?, block),
                    }
                };
                let state = State::new(block);
                dir.save(&state)?;
                (hub, state)
            }
        };
        say(&format!("hub      {}", hub.url));
        for number in state.members.len() + 1..=count {
            // Written down before it is made, so that the next start finds what a crash left.
            let block = blocks.next()?;
            state.members.push(state::Member { name: format!("member{number}"), block: block.0 });
        }
        dir.save(&state)?;
        let blocks = state.members.iter().map(|member| Block(member.block));
        let claims = blocks.filter_map(|block| TcpListener::bind(block.claim()).ok()).collect();
        let members = Members::new(dir, &state.members, runtime.handle(), &confinement);
        members.start_all().await?;
        let started = members.all().await;
        for member in &started {
            say(&format!("{:<8} {}", member.name(), member.url()));
        }
        let mut files = vec![(HUB.to_owned(), hub.kubeconfig.as_path())];
        files.extend(started.iter().map(|member| (member.name().to_owned(), member.kubeconfig())));
        kubeconfig::write(&dir.path("kubeconfig"), &files)?;
        Ok(Self { hub, questions, block: Block(state.hub), members, _claims: claims })
    }

    /// Where the hub hears what its API is asked.
    pub(crate) fn questions(&self) -> Questions {
        self.questions.clone()
    }

    pub(crate) fn hub_client(&self) -> kube::Client {
        embedded::client(&self.hub)
    }

    /// The addresses of load balancers: the hub's own part of the loopback network, which no member uses.
    pub(crate) fn pool(&self) -> anyhow::Result<Pool> {
        let text = format!("{}/24", self.block.service_cidr().network());
        text.parse().map_err(|error| anyhow::anyhow!("{text}: {error}"))
    }

    pub(crate) fn hub_url(&self) -> &str {
        &self.hub.url
    }

    pub(crate) fn members(&self) -> Members {
        self.members.clone()
    }

    /// Makes members of the clusters that are none yet.
    pub(crate) async fn join(&self, say: &dyn Fn(&str)) -> anyhow::Result<()> {
        let listed = match Api::<Cluster>::all(self.hub_client()).list(&ListParams::default()).await {
            Ok(list) => list.items,
            // The hub is just making the CRDs.
            Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
            Err(error) => return Err(error).context("cannot list members"),
        };
        let members = self.members.all().await;
        for member in &members {
            if let Some(cluster) = listed.iter().find(|cluster| cluster.name_any() == member.name()) {
                check_same(member, cluster).await?;
            }
        }
        let joined: BTreeSet<String> = listed.iter().map(ResourceExt::name_any).collect();
        let mut new = members.iter().filter(|member| !joined.contains(member.name()));
        // The first alone: it gives the clusterset its name. Their networks can't overlap, so the others need no order.
        if joined.is_empty()
            && let Some(first) = new.next()
        {
            self.join_one(first).await?;
        }
        let mut joining = stream::iter(new.map(|member| self.join_one(member))).buffer_unordered(AT_ONCE);
        while joining.try_next().await?.is_some() {}
        drop(joining);
        say("joined");
        Ok(())
    }

    async fn join_one(&self, member: &Member) -> anyhow::Result<()> {
        let block = member.block();
        let ranges = |cidr: Ipv4Net| Ranges([cidr.into()].into());
        let request = Request {
            name: member.name().to_owned(),
            namespace: NAMESPACE.to_owned(),
            clusterset: None,
            declared: Networks {
                pods: ranges(block.pod_cidr()),
                services: ranges(block.service_cidr()),
                ..Networks::default()
            },
            // Loopback addresses pass from here, and from here only because they are declared.
            endpoints: Ranges(block.pod_ranges().into_iter().map(Into::into).collect()),
            allow_overlap: false,
            api_endpoint: None,
            place: Location { zones: vec![member.name().to_owned()], ..Location::default() },
            // These clusters are for trying things out: policies may bring whatever there is.
            propagation: Propagation::Everything,
            allow_insecure: false,
            token_lifetime: TOKEN_LIFETIME,
            system_namespaces: Vec::new(),
            check_authors: false,
        };
        let config = atoll_hub::connect::config(Some(member.kubeconfig()), None).await?;
        let joining = atoll_hub::join::join(self.hub_client(), config, &request, std::future::pending());
        Box::pin(joining).await.map_err(|error| Failure::join(member.name(), &error))?;
        Ok(())
    }

    /// Waits until every member is ready, its DNS included.
    pub(crate) async fn ready(&self, within: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        let api = Api::<Cluster>::all(self.hub_client());
        let members = self.members.all().await;
        loop {
            let listed = api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
            let ready = |name: &str| {
                let conditions = listed.iter().find(|cluster| cluster.name_any() == name)?.status.as_ref()?;
                let ready =
                    conditions.conditions.iter().find(|one| one.type_ == condition::cluster::READY)?;
                Some(ready.status == "True")
            };
            let waiting: Vec<&str> = members
                .iter()
                .filter(|member| ready(member.name()) != Some(true) || !member.knows_names())
                .map(|member| member.name())
                .collect();
            if waiting.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let what =
                    format!("{} did not become ready within {} s", waiting.join(", "), within.as_secs());
                return Err(Failure::plain(&what, "see `atoll clusters -o wide` and the log").into());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Exports the service of the walkthrough from the first member.
    pub(crate) async fn apply_example(&self, say: &dyn Fn(&str)) -> anyhow::Result<()> {
        const FILE: &str = "examples/serve.yaml";
        let members = self.members.all().await;
        let Some(first) = members.first() else { return Ok(()) };
        let config = atoll_hub::connect::config(Some(first.kubeconfig()), None).await?;
        Box::pin(Apply::example(config, FILE, EXAMPLE, say)).await?;
        // Whoever is told that it is ready calls it next.
        let deadline = Instant::now() + EXAMPLE_WITHIN;
        for member in &members {
            let slices = Api::<EndpointSlice>::namespaced(member.client(), "default");
            let of_example = ListParams::default().labels(&format!("{}=serve", label::MCS_SERVICE_NAME));
            let is_ready = |slice: &EndpointSlice| {
                let mut endpoints = slice.endpoints.iter().flatten();
                endpoints
                    .any(|one| one.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true))
            };
            while !slices.list(&of_example).await?.items.iter().any(is_ready) {
                if Instant::now() > deadline {
                    let what = format!("the example service has no ready endpoint in {}", member.name());
                    return Err(
                        Failure::plain(&what, "see `atoll get -C member1 pods,serviceexports`").into()
                    );
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
        Ok(())
    }

    /// Switches everything off and closes the stores.
    pub(crate) async fn stop(self) {
        self.members.stop_all().await;
    }
}

/// A member that lost its data, or its place, is not the one that joined, whatever its last condition says.
async fn check_same(member: &Member, cluster: &Cluster) -> anyhow::Result<()> {
    let system = Api::<Namespace>::all(member.client()).get("kube-system").await?;
    let moved = cluster.spec.api_endpoint.as_deref().is_some_and(|endpoint| endpoint != member.url());
    let other = cluster.spec.id.is_some() && cluster.spec.id != system.uid();
    if moved || other {
        let name = member.name();
        let why = if moved { "its API endpoint changed" } else { "its data was lost" };
        let what = format!("`{name}` is not the cluster that joined: {why}");
        return Err(Failure::plain(&what, "restore its files, or start over with `atoll up --fresh`").into());
    }
    Ok(())
}

async fn start_hub(
    dir: &Dir,
    block: Block,
    runtime: &Runtime,
    questions: Questions,
) -> anyhow::Result<Hosted> {
    let (data_dir, address) = (dir.path(HUB), SocketAddr::V4(block.api()));
    let started = runtime.spawn(async move {
        let host = hosted::HostOptions { data_dir: &data_dir, address, names: &[] };
        Hosted::start(&host, embedded::options(questions)).await
    });
    Ok(started.await.context("the hub's API server failed while it started")??)
}

fn is_taken(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<HostError>() {
        Some(HostError::Serve(ServeError::Listen { source, .. })) => {
            source.kind() == std::io::ErrorKind::AddrInUse
        }
        _ => false,
    }
}

/// One sandbox starts at a time: a block that was chosen is seen to be taken only when its API listens. Whoever has this socket has the
/// turn; it ends with the value, or with the process. One that never comes is not waited for: then a block may turn out to be taken.
async fn turn() -> Option<TcpListener> {
    let place = SocketAddrV4::new(Ipv4Addr::new(127, FIRST - 1, 255, 254), Block(FIRST).api().port());
    let give_up = Instant::now() + TURN_WITHIN;
    loop {
        match TcpListener::bind(place) {
            Ok(turn) => return Some(turn),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && Instant::now() < give_up => {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Err(_) => return None,
        }
    }
}

/// Blocks that look unused.
struct Blocks {
    used: BTreeSet<u8>,
    next: u8,
}

impl Blocks {
    fn new(known: Option<&State>) -> Self {
        let used = known.into_iter().flat_map(|state| {
            std::iter::once(state.hub).chain(state.members.iter().map(|member| member.block))
        });
        Self { used: used.collect(), next: FIRST }
    }

    /// Another one in which nothing listens, and which no sandbox claims.
    fn next(&mut self) -> anyhow::Result<Block> {
        while self.next < LAST {
            let block = Block(self.next);
            self.next += 1;
            let is_free = |place: SocketAddrV4| TcpListener::bind(place).is_ok();
            if !self.used.contains(&block.0) && is_free(block.api()) && is_free(block.claim()) {
                return Ok(block);
            }
        }
        let hint = "stop another sandbox with `atoll down --dir DIR`";
        Err(Failure::plain("all blocks of loopback addresses are in use", hint).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_of_a_member_that_is_stopped_is_not_chosen_by_another_sandbox() {
        let mut blocks = Blocks { used: BTreeSet::new(), next: LAST - 3 };
        let first = blocks.next().unwrap();
        let claimed = TcpListener::bind(first.claim()).unwrap();
        let again = Blocks { used: BTreeSet::new(), next: first.0 }.next().unwrap();
        assert_ne!(again.0, first.0, "its API does not listen, and it is claimed");
        drop(claimed);
        assert_eq!(Blocks { used: BTreeSet::new(), next: first.0 }.next().unwrap().0, first.0);
    }
}
