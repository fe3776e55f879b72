//! Makes what a member needs: our rights and a token there, a Secret and a `Cluster` in the hub.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_api::names::annotation::{self, network};
use atoll_api::names::{FIELD_MANAGER, finalizer, label, secret};
use atoll_api::types::cluster::{LocalSecretReference, SyncMode};
use atoll_api::types::{Cluster, ClusterSpec};
use atoll_engine::names::ClusterId;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::undo::{Undo, namespaced};
use super::{JoinError, Request, fence, rbac};
use crate::membership::clusterset;
use crate::membership::connect;
use crate::membership::credentials::{self, Life, Link, Trust};
use crate::membership::networks::Networks;
use crate::options::NAMESPACE;

/// How long new rights may take to count.
const RIGHTS_WITHIN: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Makes the hub's rights in the member, fenced where it serves policies, and gives the token that goes with them.
pub(super) async fn rights(
    member: &Client,
    hub: &str,
    request: &Request,
    fenced: bool,
    undo: &mut Undo,
) -> Result<(String, Life), JoinError> {
    let namespace = NAMESPACE;
    let made_namespace = clusterset::ensure_namespace(member, namespace).await.map_err(JoinError::member)?;
    if made_namespace {
        let api: Api<Namespace> = Api::all(member.clone());
        let there = api.get(namespace).await.map_err(JoinError::member)?;
        undo.made(api, &there);
    }
    let roles: Api<ClusterRole> = Api::all(member.clone());
    let role = rbac::role(hub, &request.propagation, request.check_authors);
    let role = put(&roles, role, undo).await?;
    let owner = rbac::owner(&role, hub);
    if fenced {
        fence(member, hub, &owner, request, undo).await?; // before the hub's account has the rights
    }
    for role in rbac::users(&owner) {
        put(&roles, role, undo).await?;
    }
    let accounts: Api<ServiceAccount> = namespaced(member, namespace);
    put(&accounts, rbac::account(namespace, &owner), undo).await?;
    let secrets: Api<Secret> = namespaced(member, namespace);
    put(&secrets, rbac::bound_to(namespace, &owner), undo).await?;
    let (local, bindings) =
        (namespaced::<Role>(member, namespace), Api::<ClusterRoleBinding>::all(member.clone()));
    put(&local, rbac::local_role(namespace, &owner), undo).await?;
    put(&namespaced::<RoleBinding>(member, namespace), rbac::local_binding(namespace, &owner), undo).await?;
    put(&bindings, rbac::binding(namespace, &owner), undo).await?;
    undo.go_on()?;
    let asked = request.token_seconds()?;
    let issued_at = Timestamp::now();
    let issued = atoll_member::issue(member, namespace, asked).await.map_err(JoinError::NoToken)?;
    Ok((issued.token, Life { issued: issued_at, expires: issued.expires, asked }))
}

/// Puts the policies up, and takes those away that an earlier join made and this one does not want.
async fn fence(
    member: &Client,
    hub: &str,
    owner: &rbac::Owner,
    request: &Request,
    undo: &mut Undo,
) -> Result<(), JoinError> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(member.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(member.clone());
    let gaps = fence::Gaps {
        propagation: &request.propagation,
        namespaces: &request.system_namespaces,
        token_seconds: request.token_seconds()?,
    };
    let wanted = fence::policies(hub, owner, &gaps);
    let unwanted = fence::NAMES
        .into_iter()
        .filter(|name| !wanted.iter().any(|(policy, _)| policy.metadata.name.as_deref() == Some(*name)));
    for name in unwanted {
        undo.go_on()?;
        absent(bindings.delete(name, &DeleteParams::default()).await)?;
        absent(policies.delete(name, &DeleteParams::default()).await)?;
    }
    for (policy, binding) in wanted {
        put(&policies, policy, undo).await?;
        put(&bindings, binding, undo).await?;
    }
    Ok(())
}

fn absent<T>(deleted: Result<T, kube::Error>) -> Result<(), JoinError> {
    match deleted {
        Ok(_) => Ok(()),
        Err(error) if connect::code(&error) == Some(404) => Ok(()),
        Err(error) => Err(JoinError::member(error)),
    }
}

/// Whether the member serves the policies that fence the hub's account.
pub(super) async fn serves_policies(member: &Client) -> Result<bool, JoinError> {
    match member.list_api_group_resources(fence::SERVED_BY).await {
        Ok(list) => Ok(list.resources.iter().any(|one| one.name == fence::RESOURCE)),
        Err(error) if connect::code(&error) == Some(404) => Ok(false),
        Err(error) => Err(JoinError::member(error)),
    }
}

/// Deletes the token without end that an earlier join made: the hub has another one now.
pub(super) async fn forget_earlier_token(member: &Client, hub: &str) -> Result<(), kube::Error> {
    let secrets: Api<Secret> = namespaced(member, NAMESPACE);
    let found = secrets.get_opt(rbac::TOKEN).await?;
    let Some(found) = found.filter(|secret| rbac::is_of(secret, hub)) else { return Ok(()) };
    let only = Preconditions { uid: found.uid(), resource_version: None };
    match secrets.delete(rbac::TOKEN, &DeleteParams::default().preconditions(only)).await {
        Err(error) if connect::code(&error) != Some(404) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Makes an object in the member or brings it up to date, unless the user has asked to stop.
async fn put<K>(api: &Api<K>, object: K, undo: &mut Undo) -> Result<K, JoinError>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned + Send + 'static,
{
    undo.go_on()?;
    write(api, object, undo).await.map_err(JoinError::member)
}

/// Makes an object or brings it up to date; one that this run made can be undone.
async fn write<K>(api: &Api<K>, object: K, undo: &mut Undo) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned + Send + 'static,
{
    let name = &object.name_any();
    let there = api.get_opt(name).await?.is_some();
    let mut json = serde_json::to_value(&object).map_err(kube::Error::SerdeError)?;
    json["apiVersion"] = K::api_version(&()).as_ref().into();
    json["kind"] = K::kind(&()).as_ref().into();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let put = api.patch(name, &params, &Patch::Apply(&json)).await?;
    if !there {
        undo.made(api.clone(), &put);
    }
    Ok(put)
}

/// The certificates that the member's API is checked against, in PEM as the Secret holds them.
fn ca_bundle(config: &kube::Config) -> Vec<u8> {
    let mut pem = String::new();
    for der in config.root_cert.iter().flatten() {
        // A ByteString is written as base64, which is what PEM is made of.
        let encoded = serde_json::to_value(ByteString(der.clone())).unwrap_or_default();
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in encoded.as_str().unwrap_or_default().as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem.into_bytes()
}

/// What is written into the hub.
pub(super) struct Entry<'a> {
    pub(super) cluster: &'a ClusterId,
    pub(super) uid: &'a str,
    pub(super) member: &'a kube::Config,
    pub(super) request: &'a Request,
    pub(super) observed: &'a Networks,
    pub(super) token: String,
    pub(super) life: Life,
}

/// The address under which the hub reaches the member's API.
pub(super) fn endpoint(member: &kube::Config, request: &Request) -> String {
    let own = || member.cluster_url.to_string();
    credentials::url(&request.api_endpoint.clone().unwrap_or_else(own))
}

impl Entry<'_> {
    /// The way that the hub will go.
    fn link(&self) -> Link {
        Link {
            secret: self.cluster.to_string(),
            uid: Some(self.uid.to_owned()),
            endpoint: endpoint(self.member, self.request),
            proxy: self.member.proxy_url.as_ref().map(ToString::to_string),
            // It belongs to the address of the kubeconfig.
            server_name: self.member.tls_server_name.clone().filter(|_| self.request.api_endpoint.is_none()),
            trust: match (&self.member.root_cert, self.member.accept_invalid_certs) {
                (_, true) => Trust::Nothing,
                (Some(_), false) => Trust::Ca(ca_bundle(self.member)),
                (None, false) => Trust::SystemRoots,
            },
            token: self.token.clone(),
            life: Some(self.life),
        }
    }

    /// Goes the way that the hub will go, and looks whether it ends at the right cluster.
    pub(super) async fn try_out(&self) -> Result<(), JoinError> {
        let link = self.link();
        let bad = |why: String| JoinError::NotUsable { endpoint: link.endpoint.clone(), why };
        let config = connect::with_token(&link).map_err(|error| bad(error.to_string()))?;
        let client = connect::client(config)?;
        let start = tokio::time::Instant::now();
        loop {
            match clusterset::cluster_uid(&client).await {
                Ok(Some(found)) if found == self.uid => return Ok(()),
                Ok(found) => {
                    let found = found.unwrap_or_default();
                    return Err(bad(format!("the cluster at this address has kube-system UID {found}")));
                }
                // The API server may not have heard of the new rights yet.
                Err(error)
                    if matches!(connect::code(&error), Some(401 | 403))
                        && start.elapsed() < RIGHTS_WITHIN =>
                {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                Err(error) => return Err(bad(connect::why(&error))),
            }
        }
    }

    /// Writes the Secret, then the `Cluster`: a hub that sees the second finds the first.
    pub(super) async fn write(&self, hub: &Client, undo: &mut Undo) -> Result<(), JoinError> {
        let secrets: Api<Secret> = namespaced(hub, &self.request.namespace);
        undo.go_on()?;
        write(&secrets, self.secret(), undo).await.map_err(JoinError::hub)?;
        let clusters: Api<Cluster> = Api::all(hub.clone());
        undo.go_on()?;
        write(&clusters, self.object(), undo).await.map_err(JoinError::hub)?;
        Ok(())
    }

    /// The credentials, and the record of what they are for.
    fn secret(&self) -> Secret {
        let link = self.link();
        let (trust, ca) = match link.trust {
            Trust::Ca(pem) => (secret::trust::CA, pem),
            Trust::SystemRoots => (secret::trust::SYSTEM_ROOTS, Vec::new()),
            Trust::Nothing => (secret::trust::NONE, Vec::new()),
        };
        let text = |text: &str| Some(text.as_bytes().to_vec());
        let data = [
            (secret::TOKEN, text(&link.token)),
            (secret::CA_BUNDLE, Some(ca)),
            (secret::CLUSTER, text(self.cluster.as_str())),
            (secret::CLUSTER_UID, text(self.uid)),
            (secret::API_ENDPOINT, text(&link.endpoint)),
            (secret::PROXY_URL, link.proxy.as_deref().and_then(text)),
            (secret::TLS_SERVER_NAME, link.server_name.as_deref().and_then(text)),
            (secret::SERVER_TRUST, text(trust)),
            (secret::TOKEN_ISSUED_AT, text(&self.life.issued.to_string())),
            (secret::TOKEN_EXPIRES_AT, text(&self.life.expires.to_string())),
            (secret::TOKEN_LIFETIME, text(&self.life.asked.to_string())),
        ];
        let data = data.into_iter().filter_map(|(key, value)| Some((key.to_owned(), ByteString(value?))));
        let mut annotations = self.networks();
        annotations.insert(network::BOUND.to_owned(), "true".to_owned());
        Secret {
            metadata: ObjectMeta {
                name: Some(self.cluster.to_string()),
                annotations: Some(annotations),
                labels: Some([(label::CLUSTER.to_owned(), self.cluster.to_string())].into()),
                ..ObjectMeta::default()
            },
            data: Some(data.collect()),
            ..Secret::default()
        }
    }

    /// What is known of its networks: on the Secret it counts, on the `Cluster` it is shown.
    fn networks(&self) -> BTreeMap<String, String> {
        let Request { declared, endpoints, .. } = self.request;
        let networks = [
            (network::PODS, &declared.pods),
            (network::SERVICES, &declared.services),
            (network::NODES, &declared.nodes),
            (network::ENDPOINTS, endpoints),
            (network::OBSERVED_PODS, &self.observed.pods),
            (network::OBSERVED_SERVICES, &self.observed.services),
        ];
        let known = networks.into_iter().filter(|(_, ranges)| !ranges.0.is_empty());
        let known = known.chain([(network::OBSERVED_NODES, &self.observed.nodes)]); // empty or not: it pins the others
        known.map(|(key, ranges)| (key.to_owned(), ranges.to_string())).collect()
    }

    fn object(&self) -> Cluster {
        let Request { namespace, place, .. } = self.request;
        let spec = ClusterSpec {
            id: Some(self.uid.to_owned()),
            sync_mode: SyncMode::Push,
            api_endpoint: Some(endpoint(self.member, self.request)),
            secret_ref: Some(LocalSecretReference {
                namespace: namespace.clone(),
                name: self.cluster.to_string(),
            }),
            impersonator_secret_ref: None,
            insecure_skip_tls_verification: self.member.accept_invalid_certs.then_some(true),
            proxy_url: self.member.proxy_url.as_ref().map(ToString::to_string),
            proxy_header: BTreeMap::new(),
            provider: place.provider.clone(),
            region: place.region.clone(),
            zone: None,
            zones: place.zones.clone(),
            taints: Vec::new(),
            resource_models: Vec::new(),
        };
        let mut cluster = Cluster::new(self.cluster.as_str(), spec);
        cluster.metadata.finalizers = Some(vec![finalizer::CLUSTER.to_owned()]);
        let asks =
            self.request.check_authors.then(|| (annotation::CHECK_AUTHORS.to_owned(), "true".to_owned()));
        cluster.metadata.annotations = Some(self.networks().into_iter().chain(asks).collect());
        cluster
    }
}
