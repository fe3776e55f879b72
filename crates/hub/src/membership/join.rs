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
mod fence;
mod grants;
mod make;
pub(crate) mod rbac;
mod undo;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::crds;
use atoll_api::types::Cluster;
use atoll_engine::names::ClusterId;
use atoll_member::{Clients, Identity};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::ListParams;
use kube::{Api, Client};

pub use check::{Known, Newcomer, Refusal, check, known};
pub use error::JoinError;
pub use grants::{Regrant, granted, regrant};
pub use rbac::{Propagation, needed};

use crate::api::crd;
use crate::membership::clusterset;
use crate::membership::connect;
use crate::membership::networks::Networks;
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
    /// Whether policies bring only what their authors may make in the member too.
    pub check_authors: bool,
    /// Join although the kubeconfig turns off the check of the API server's certificate.
    pub allow_insecure: bool,
    /// How long the hub's token lasts; it is renewed at half of that.
    pub token_lifetime: Duration,
    /// Namespaces of Kubernetes' control plane that the hub may bring services to.
    pub system_namespaces: Vec<String>,
}

/// How long the hub's token lasts by default: a hub that is away for half of that still has a token.
pub const TOKEN_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// No API server issues shorter ones, or longer ones.
const SHORTEST_TOKEN: u64 = 600;
const LONGEST_TOKEN: u64 = 1 << 32;

impl Request {
    /// How long a token is asked for.
    fn token_seconds(&self) -> Result<i64, JoinError> {
        let seconds = self.token_lifetime.as_secs();
        let fits = (SHORTEST_TOKEN..=LONGEST_TOKEN).contains(&seconds);
        let asked = i64::try_from(seconds).ok().filter(|_| fits);
        asked.ok_or(JoinError::BadLifetime { seconds })
    }

    /// Whether the hub's token would be safe on its way.
    fn check_way(&self, member: &kube::Config) -> Result<(), JoinError> {
        let endpoint = make::endpoint(member, self);
        if !endpoint.starts_with("https://") {
            return Err(JoinError::PlainHttp { endpoint });
        }
        if member.accept_invalid_certs && !self.allow_insecure {
            return Err(JoinError::Insecure);
        }
        Ok(())
    }

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
    /// A member that says it has the same kube-system uid, although it is another cluster.
    pub same_uid: Option<String>,
    /// When the hub's token ends unless it is renewed.
    pub token_expires: jiff::Timestamp,
    /// Whether the member's API server keeps the hub's account to what is the hub's.
    pub fenced: bool,
    /// The API server's certificate is checked against the root certificates of the hub's host.
    pub system_roots: bool,
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
    request.token_seconds()?;
    request.check_way(&member)?;
    let admin = connect::client(member.clone())?;
    let mut interrupted = std::pin::pin!(interrupted);
    let Looked { uid, found, checked, fenced } = tokio::select! {
        looked = look(&hub, &admin, &cluster, request) => looked?,
        () = &mut interrupted => return Err(JoinError::Interrupted),
    };

    let mut undo = Undo::default();
    let interrupt = undo.interrupt();
    let discover::Found { counted, observed, stray } = found;
    let steps = Steps { hub: &hub, admin: &admin, member: &member, request, cluster, uid, observed, fenced };
    let done = tokio::select! {
        done = steps.carry_out(&mut undo) => done,
        never = interrupt.by(interrupted) => match never {},
    };
    match done {
        Ok((clusterset, token_expires)) => Ok(Joined {
            cluster: steps.cluster,
            same_uid: checked.same_uid,
            token_expires,
            fenced,
            system_roots: member.root_cert.is_none() && !member.accept_invalid_certs,
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
    fenced: bool,
}

/// Looks, and touches nothing.
async fn look(
    hub: &Client,
    admin: &Client,
    cluster: &ClusterId,
    request: &Request,
) -> Result<Looked, JoinError> {
    let fenced = make::serves_policies(admin).await?;
    access::in_member(admin, NAMESPACE, fenced).await?;
    access::in_hub(hub, &request.namespace).await?;
    let uid =
        clusterset::cluster_uid(admin).await.map_err(JoinError::member)?.ok_or(JoinError::NoKubeSystem)?;
    let found = discover::networks(admin, &request.declared).await.map_err(JoinError::member)?;
    let known = members(hub, &request.namespace).await?;
    let newcomer = Newcomer {
        name: cluster.clone(),
        uid: uid.clone(),
        called: called(hub, admin, &request.namespace).await?,
        hub: is_hub(hub, admin, &uid, &request.namespace).await?,
        networks: found.counted.clone(),
    };
    let checked = check(&newcomer, &known, request.allow_overlap)?;
    Ok(Looked { uid, found, checked, fenced })
}

/// What this hub calls the cluster, if it ever was a member.
async fn called(hub: &Client, admin: &Client, namespace: &str) -> Result<Option<ClusterId>, JoinError> {
    let Some(called) = atoll_member::called(admin).await.map_err(JoinError::member)? else { return Ok(None) };
    let ours = match clusterset::hub_uid(hub, namespace).await {
        Ok(uid) => *uid == *called.hub,
        Err(error) if connect::code(&error) == Some(404) => false, // no hub has run yet
        Err(error) => return Err(JoinError::hub(error)),
    };
    Ok(Some(called.cluster).filter(|_| ours))
}

/// Whether a cluster with the uid of the hub's own is that one: it must know the uid of the hub's namespace too, which no member
/// is told.
async fn is_hub(hub: &Client, admin: &Client, uid: &str, namespace: &str) -> Result<Option<bool>, JoinError> {
    if clusterset::cluster_uid(hub).await.map_err(JoinError::hub)?.as_deref() != Some(uid) {
        return Ok(None);
    }
    let of = async |client: &Client| {
        let found = Api::<Namespace>::all(client.clone()).get_opt(namespace).await?;
        Ok::<_, kube::Error>(found.and_then(|found| found.metadata.uid))
    };
    Ok(Some(of(hub).await.map_err(JoinError::hub)? == of(admin).await.map_err(JoinError::member)?))
}

struct Steps<'a> {
    hub: &'a Client,
    admin: &'a Client,
    member: &'a kube::Config,
    request: &'a Request,
    cluster: ClusterId,
    uid: String,
    observed: Networks,
    fenced: bool,
}

impl Steps<'_> {
    async fn carry_out(&self, undo: &mut Undo) -> Result<(Arc<str>, jiff::Timestamp), JoinError> {
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
        let clients = Clients::new((*member).clone(), None, None).map_err(JoinError::member)?;
        // Before any right is written: another hub's are under the same names.
        atoll_member::may_enter(&identity, &clients).await.map_err(JoinError::entering)?;
        let (token, life) = make::rights(admin, &hub_uid, request, self.fenced, undo).await?;
        let entry = Entry {
            cluster: &self.cluster,
            uid: &self.uid,
            member,
            request,
            observed: &self.observed,
            token,
            life,
        };
        entry.try_out().await?;

        undo.go_on()?;
        undo.properties(admin, &hub_uid).await.map_err(JoinError::member)?;
        atoll_member::enter(&identity, &clients).await.map_err(JoinError::entering)?;
        entry.write(hub, undo).await?;
        if let Err(error) = make::forget_earlier_token(admin, &hub_uid).await {
            tracing::warn!(
                why = connect::why(&error),
                "cannot delete the Secret {} in the member: its token still counts",
                rbac::TOKEN
            );
        }
        Ok((set, life.expires))
    }
}

/// The members that there are, by name.
async fn members(hub: &Client, namespace: &str) -> Result<BTreeMap<String, Known>, JoinError> {
    let listed = Api::<Cluster>::all(hub.clone()).list(&ListParams::default()).await;
    let clusters = match listed {
        Ok(clusters) => clusters.items,
        Err(error) if connect::code(&error) == Some(404) => Vec::new(), // no CRD, no members
        Err(error) => return Err(JoinError::hub(error)),
    };
    let secrets = Api::<Secret>::namespaced(hub.clone(), namespace).list(&ListParams::default()).await;
    let secrets = match secrets {
        Ok(secrets) => secrets.items,
        Err(error) if matches!(connect::code(&error), Some(403 | 404)) => Vec::new(), // what is shown has to do
        Err(error) => return Err(JoinError::hub(error)),
    };
    Ok(clusters.iter().map(|cluster| known(cluster, &secrets)).collect())
}
