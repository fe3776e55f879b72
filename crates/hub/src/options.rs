//! What can be chosen when a hub is started.

use std::net::SocketAddr;
use std::time::Duration;

use atoll_engine::facts::Settings;
use atoll_engine::names::Namespace;
use atoll_lb_kube::Pool;

use crate::explain::Questions;
use crate::mcs::balancing::Balancing;

/// The namespace in the hub's API, and in members, where what is ours and belongs to no service lives.
pub const NAMESPACE: &str = atoll_api::names::namespace::HUB;

/// The Lease in [`NAMESPACE`] that says which hub leads.
pub const LEASE: &str = "atoll-hub";

/// The shortest lease that can be renewed in time.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(2);
/// The longest lease: no replica takes over before it has ended.
pub const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// What becomes of policies and `MultiClusterServices` whose authors are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unstamped {
    /// Nothing follows from them, and copies that are there stay.
    #[default]
    Refuse,
    /// They count as if their authors had all rights.
    Allow,
}

/// What policies may do.
#[derive(Debug, Clone, Copy)]
pub struct Propagation {
    /// What becomes of policies without an author.
    pub unstamped: Unstamped,
    /// Whether copies of Services keep their `externalIPs`.
    pub external_ips: bool,
    /// Whether bindings without a seal are believed: those of a hub from before there were seals.
    pub adopt_bindings: bool,
    /// After this, authors' rights are asked for again: they come and go.
    pub ask_again: Duration,
}

impl Default for Propagation {
    fn default() -> Self {
        let ask_again = Duration::from_secs(60);
        Self { unstamped: Unstamped::default(), external_ips: false, adopt_bindings: false, ask_again }
    }
}

/// How a hub runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The namespace in the hub's API for memory, credentials and the Lease.
    pub namespace: String,
    /// How long the leader or a member may be silent before it counts as lost.
    pub lease_time: Duration,
    /// Who we are in the Lease. The same after a restart, so that it is taken up again at once; different in each replica.
    pub identity: String,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; nowhere if none.
    pub metrics_address: Option<SocketAddr>,
    /// What holds for exports that do not say otherwise.
    pub settings: Settings,
    /// How long a new leader waits for members before it plans without them: whoever is planned first wins conflicts.
    pub settle: Duration,
    /// Whether namespaces of the hub are made in every member.
    pub sync_namespaces: bool,
    /// Who makes load balancers.
    pub balancing: Balancing,
    /// Where writes into members are noted, if anywhere.
    pub audit: Option<atoll_audit::Log>,
    /// What policies may do.
    pub propagation: Propagation,
    /// Whether members may be used that were joined without a check of their certificate.
    pub allow_insecure_members: bool,
    /// System namespaces whose services are shared.
    pub allowed_namespaces: Vec<Namespace>,
    /// Namespaces whose services are not shared: names, or names in which `*` stands for any part.
    pub denied_namespaces: Vec<String>,
    /// Where the leader is asked for explanations.
    pub questions: Questions,
    /// How questions get there.
    pub explain: Explain,
}

/// How questions get from users to the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Explain {
    /// The hub's API answers by itself: it serves [`crate::explain::group`].
    #[default]
    ByApi,
    /// The hub's API is another program: it passes questions on to this address, where the hub listens.
    At(SocketAddr),
    /// Not at all: the hub's API is another program, and no address was given.
    Nowhere,
}

impl Options {
    /// The defaults, for a replica of this name.
    pub fn new(identity: impl Into<String>) -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            lease_time: Duration::from_secs(10),
            identity: identity.into(),
            metrics_address: None,
            settings: Settings::default(),
            settle: Duration::from_secs(1),
            sync_namespaces: true,
            balancing: Balancing::BuiltIn(Pool::default()),
            audit: None,
            propagation: Propagation::default(),
            allow_insecure_members: false,
            allowed_namespaces: Vec::new(),
            denied_namespaces: Vec::new(),
            questions: Questions::default(),
            explain: Explain::default(),
        }
    }
}
