//! Makes a cluster a member: checks first, then makes what is needed, and undoes it if it can't be finished.
//!
//! ```text
//!   look at both ─▶ check ─▶ rights and token in the member ─▶ CRDs, properties ─▶ Secret, Cluster in the hub
//!                     │              └──────────── fails: what this run made goes again ────────────┘
//!                   refused
//! ```

mod access;
mod check;
mod discover;
mod error;
mod make;
pub(crate) mod rbac;
mod undo;

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::crds;
use atoll_api::types::Cluster;
use atoll_engine::names::ClusterId;
use atoll_member::{Clients, Identity};
use kube::api::ListParams;
use kube::{Api, Client};

pub(crate) use check::known;
pub use check::{Known, Newcomer, Refusal, check};
pub use error::JoinError;
pub use rbac::Propagation;

use crate::api::crd;
use crate::membership::clusterset;
use crate::membership::connect;
use crate::membership::networks::Networks;
use crate::membership::roster::Credentials;
use crate::options::NAMESPACE;
use make::Entry;
use undo::Undo;

/// What is asked of [`join`].
#[derive(Debug, Clone)]
pub struct Request {
    /// The member's name.
    pub name: String,
    /// The namespace in the hub's API.
    pub namespace: String,
    /// The name of the clusterset, if this is its first member.
    pub clusterset: Option<String>,
    /// The networks that the operator declares.
    pub declared: Networks,
    /// Ranges whose endpoints pass whatever they are.
    pub endpoints: crate::membership::networks::Ranges,
    /// Join although networks overlap.
    pub allow_overlap: bool,
    /// The address under which the hub reaches the member's API, if not that of the kubeconfig.
    pub api_endpoint: Option<String>,
    /// Where it is: provider, region, zones.
    pub place: Location,
    /// What policies may bring to it.
    pub propagation: Propagation,
}

impl Request {
    /// Whether the names can be a member's and a clusterset's; worth asking before anything is connected to.
    pub fn check_names(&self) -> Result<ClusterId, JoinError> {
        if let Some(bad) = self.clusterset.as_ref().filter(|name| !clusterset::is_name(name)) {
            return Err(JoinError::BadClusterset { name: bad.clone() });
        }
        ClusterId::parse(self.name.as_str()).map_err(|_| JoinError::BadName { name: self.name.clone() })
    }
}

/// Where a cluster is; policies select by it.
#[derive(Debug, Clone, Default)]
pub struct Location {
    /// The cloud provider.
    pub provider: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The zones.
    pub zones: Vec<String>,
}

/// What has become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The member.
    pub cluster: ClusterId,
    /// Its clusterset.
    pub clusterset: String,
    /// It was a member before; its credentials were made anew.
    pub again: bool,
    /// Its networks, as far as they are known: what counts from here on.
    pub networks: Networks,
    /// Those that the operator has declared.
    pub declared: Networks,
    /// The address of a pod that is outside of the pod networks which the cluster names, which were therefore not believed.
    pub stray: Option<String>,
    /// What `--allow-overlap` let pass.
    pub tolerated: Option<String>,
}

/// Joins the cluster behind `member` to the clusterset of the hub's API behind `hub`. When `interrupted` ends before it is
/// done, what was made goes again.
pub async fn join(
    hub: Client,
    member: kube::Config,
    request: &Request,
    interrupted: impl Future<Output = ()>,
) -> Result<Joined, JoinError> {
    let cluster = request.check_names()?;
    if member.tls_server_name.is_some() && request.api_endpoint.is_none() {
        tracing::warn!(
            "tls-server-name of the kubeconfig is ignored: the certificate must include the address of the API"
        );
    }
    let admin = connect::client(member.clone())?;
    let mut interrupted = std::pin::pin!(interrupted);
    let Looked { uid, found, checked } = tokio::select! {
        looked = look(&hub, &admin, &cluster, request) => looked?,
        () = &mut interrupted => return Err(JoinError::Interrupted),
    };

    let mut undo = Undo::default();
    let interrupt = undo.interrupt();
    let discover::Found { counted, observed, stray } = found;
    let steps = Steps { hub: &hub, admin: &admin, member: &member, request, cluster, uid, observed };
    let done = tokio::select! {
        done = steps.carry_out(&mut undo) => done,
        never = interrupt.by(interrupted) => match never {},
    };
    match done {
        Ok(clusterset) => Ok(Joined {
            cluster: steps.cluster,
            clusterset: clusterset.to_string(),
            again: checked.again,
            networks: counted,
            declared: request.declared.clone(),
            stray,
            tolerated: checked.tolerated.map(|refusal| refusal.to_string()),
        }),
        Err(error) => {
            undo.all().await;
            Err(error)
        }
    }
}

/// What was seen of both sides.
struct Looked {
    uid: String,
    found: discover::Found,
    checked: check::Checked,
}

/// Looks, and touches nothing.
async fn look(
    hub: &Client,
    admin: &Client,
    cluster: &ClusterId,
    request: &Request,
) -> Result<Looked, JoinError> {
    access::in_member(admin, NAMESPACE).await?;
    access::in_hub(hub, &request.namespace).await?;
    let uid =
        clusterset::cluster_uid(admin).await.map_err(JoinError::member)?.ok_or(JoinError::NoKubeSystem)?;
    let found = discover::networks(admin, &request.declared).await.map_err(JoinError::member)?;
    let known = members(hub).await?;
    let newcomer = Newcomer { name: cluster.clone(), uid: uid.clone(), networks: found.counted.clone() };
    let checked = check(&newcomer, &known, request.allow_overlap)?;
    Ok(Looked { uid, found, checked })
}

struct Steps<'a> {
    hub: &'a Client,
    admin: &'a Client,
    member: &'a kube::Config,
    request: &'a Request,
    cluster: ClusterId,
    uid: String,
    observed: Networks,
}

impl Steps<'_> {
    async fn carry_out(&self, undo: &mut Undo) -> Result<Arc<str>, JoinError> {
        let Self { hub, admin, member, request, .. } = self;
        let namespace = request.namespace.as_str();
        clusterset::ensure_namespace(hub, namespace).await.map_err(JoinError::hub)?;
        crd::ensure(hub, &crds::cluster()).await.map_err(JoinError::hub)?;
        let hub_uid = clusterset::hub_uid(hub, namespace).await.map_err(JoinError::hub)?;
        let wished = request.clusterset.as_deref();
        undo.go_on()?;
        let named = clusterset::name(hub, namespace, &hub_uid, wished).await.map_err(JoinError::hub)?;
        if let Some(map) = &named.made {
            undo.made(undo::namespaced(hub, namespace), map); // a join that fails decides nothing
        }
        let set = named.name;
        if let Some(wished) = wished.filter(|wished| **wished != *set) {
            return Err(JoinError::OtherClusterset { wished: wished.to_owned(), is: set.to_string() });
        }

        let identity =
            Identity { cluster: self.cluster.clone(), hub: hub_uid.clone(), clusterset: Arc::clone(&set) };
        let clients = Clients::new((*member).clone()).map_err(JoinError::member)?;
        // Before any right is written: another hub's are under the same names.
        atoll_member::may_enter(&identity, &clients).await.map_err(JoinError::entering)?;
        let token = make::rights(admin, NAMESPACE, &hub_uid, &request.propagation, undo).await?;
        let entry = Entry {
            cluster: &self.cluster,
            uid: &self.uid,
            member,
            request,
            observed: &self.observed,
            credentials: Credentials { token, ca: make::ca_bundle(member) },
        };
        entry.try_out(&self.uid).await?;

        undo.go_on()?;
        undo.properties(admin, &hub_uid).await.map_err(JoinError::member)?;
        atoll_member::enter(&identity, &clients).await.map_err(JoinError::entering)?;
        entry.write(hub, undo).await?;
        Ok(set)
    }
}

/// The members that there are, by name.
async fn members(hub: &Client) -> Result<BTreeMap<String, Known>, JoinError> {
    let listed = Api::<Cluster>::all(hub.clone()).list(&ListParams::default()).await;
    let clusters = match listed {
        Ok(clusters) => clusters.items,
        Err(error) if connect::code(&error) == Some(404) => Vec::new(), // no CRD, no members
        Err(error) => return Err(JoinError::hub(error)),
    };
    Ok(clusters.iter().map(known).collect())
}
