//! Makes what a member needs: our rights and a token there, a Secret and a `Cluster` in the hub.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_api::names::annotation::network;
use atoll_api::names::{FIELD_MANAGER, finalizer, label, secret};
use atoll_api::types::cluster::{LocalSecretReference, SyncMode};
use atoll_api::types::{Cluster, ClusterSpec};
use atoll_engine::names::ClusterId;
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::undo::{Undo, namespaced};
use super::{JoinError, Request, rbac};
use crate::membership::clusterset;
use crate::membership::connect;
use crate::membership::networks::Networks;
use crate::membership::roster::{Credentials, Link};

/// How long the member may take to make a token.
const TOKEN_WITHIN: Duration = Duration::from_secs(5);
const TEN_YEARS: i64 = 10 * 365 * 24 * 3600;
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Makes the hub's rights in the member, and gives the token that goes with them.
pub(super) async fn rights(
    member: &Client,
    namespace: &str,
    hub: &str,
    propagation: &rbac::Propagation,
    undo: &mut Undo,
) -> Result<String, JoinError> {
    let made_namespace = clusterset::ensure_namespace(member, namespace).await.map_err(JoinError::member)?;
    if made_namespace {
        let api: Api<Namespace> = Api::all(member.clone());
        let there = api.get(namespace).await.map_err(JoinError::member)?;
        undo.made(api, &there);
    }
    let roles: Api<ClusterRole> = Api::all(member.clone());
    undo.go_on()?;
    let role =
        put(&roles, rbac::NAME, rbac::role(hub, propagation), undo).await.map_err(JoinError::member)?;
    let owner = rbac::owner(&role, hub);
    for role in rbac::users(&owner) {
        let name = role.metadata.name.clone().unwrap_or_default();
        undo.go_on()?;
        put(&roles, &name, role, undo).await.map_err(JoinError::member)?;
    }
    let accounts: Api<ServiceAccount> = namespaced(member, namespace);
    undo.go_on()?;
    put(&accounts, rbac::NAME, rbac::account(namespace, &owner), undo).await.map_err(JoinError::member)?;
    let bindings: Api<ClusterRoleBinding> = Api::all(member.clone());
    undo.go_on()?;
    put(&bindings, rbac::NAME, rbac::binding(namespace, &owner), undo).await.map_err(JoinError::member)?;
    let secrets: Api<Secret> = namespaced(member, namespace);
    undo.go_on()?;
    put(&secrets, rbac::TOKEN, rbac::token(namespace, &owner), undo).await.map_err(JoinError::member)?;

    match filled(&secrets, undo).await? {
        Some(token) => Ok(token),
        None => requested(&accounts).await,
    }
}

/// The token that the member's controller has put into the Secret.
async fn filled(secrets: &Api<Secret>, undo: &Undo) -> Result<Option<String>, JoinError> {
    let start = tokio::time::Instant::now();
    while start.elapsed() < TOKEN_WITHIN {
        undo.go_on()?;
        let secret = secrets.get(rbac::TOKEN).await.map_err(JoinError::member)?;
        let token = secret.data.and_then(|mut data| data.remove("token"));
        if let Some(token) = token.and_then(|token| String::from_utf8(token.0).ok()) {
            return Ok(Some(token));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(None)
}

/// A token from the API server itself, where no controller fills Secrets. It ends one day, and its owner is told when.
async fn requested(accounts: &Api<ServiceAccount>) -> Result<String, JoinError> {
    let spec = TokenRequestSpec { expiration_seconds: Some(TEN_YEARS), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answer = accounts.create_token_request(rbac::NAME, &PostParams::default(), &request).await;
    let status = answer.ok().and_then(|answer| answer.status).unwrap_or_default();
    let (Some(token), Some(ends)) = (status.token, status.expiration_timestamp) else {
        return Err(JoinError::NoToken { seconds: TOKEN_WITHIN.as_secs() });
    };
    tracing::warn!(
        "no controller of the cluster created a token in the Secret {}, so the hub's token expires at {}; join again before then",
        rbac::TOKEN,
        ends.0
    );
    Ok(token)
}

/// Makes an object or brings it up to date; one that this run made can be undone.
async fn put<K>(api: &Api<K>, name: &str, object: K, undo: &mut Undo) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned + Send + 'static,
{
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
pub(super) fn ca_bundle(config: &kube::Config) -> Vec<u8> {
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
    pub(super) credentials: Credentials,
}

impl Entry<'_> {
    fn endpoint(&self) -> String {
        let own = || self.member.cluster_url.to_string().trim_end_matches('/').to_owned();
        self.request.api_endpoint.clone().unwrap_or_else(own)
    }

    /// Goes the way that the hub will go, and looks whether it ends at the right cluster.
    pub(super) async fn try_out(&self, uid: &str) -> Result<(), JoinError> {
        let endpoint = self.endpoint();
        let bad = |why: String| JoinError::NotUsable { endpoint: self.endpoint(), why };
        let link = Link {
            uid: None,
            endpoint,
            insecure: self.member.accept_invalid_certs,
            proxy: self.member.proxy_url.as_ref().map(ToString::to_string),
            credentials: self.credentials.clone(),
        };
        let config = connect::of_link(&link).map_err(|error| bad(error.to_string()))?;
        let client = connect::client(config)?;
        match clusterset::cluster_uid(&client).await {
            Ok(Some(found)) if found == uid => Ok(()),
            Ok(found) => Err(bad(format!(
                "the cluster at this address has kube-system UID {}",
                found.unwrap_or_default()
            ))),
            Err(error) => Err(bad(connect::why(&error))),
        }
    }

    /// Writes the Secret, then the `Cluster`: a hub that sees the second finds the first.
    pub(super) async fn write(&self, hub: &Client, undo: &mut Undo) -> Result<(), JoinError> {
        let secrets: Api<Secret> = namespaced(hub, &self.request.namespace);
        undo.go_on()?;
        put(&secrets, self.cluster.as_str(), self.secret(), undo).await.map_err(JoinError::hub)?;
        let clusters: Api<Cluster> = Api::all(hub.clone());
        undo.go_on()?;
        put(&clusters, self.cluster.as_str(), self.object(), undo).await.map_err(JoinError::hub)?;
        Ok(())
    }

    fn secret(&self) -> Secret {
        let data = [
            (secret::TOKEN, self.credentials.token.clone().into_bytes()),
            (secret::CA_BUNDLE, self.credentials.ca.clone()),
        ];
        Secret {
            metadata: ObjectMeta {
                name: Some(self.cluster.to_string()),
                labels: Some([(label::CLUSTER.to_owned(), self.cluster.to_string())].into()),
                ..ObjectMeta::default()
            },
            data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value))).collect()),
            ..Secret::default()
        }
    }

    fn object(&self) -> Cluster {
        let Request { namespace, declared, endpoints, place, .. } = self.request;
        let spec = ClusterSpec {
            id: Some(self.uid.to_owned()),
            sync_mode: SyncMode::Push,
            api_endpoint: Some(self.endpoint()),
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
        cluster.metadata.annotations =
            Some(known.map(|(key, ranges)| (key.to_owned(), ranges.to_string())).collect());
        cluster
    }
}
