//! Leads CoreDNS to us: shows, makes or undoes the part of its Corefile that forwards the zone.

use std::net::{IpAddr, SocketAddr};

use atoll_dns::Name;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde::Serialize;
use serde_json::json;

use crate::corefile::{self, Corefile};
use crate::manifest;

/// Who writes, for the API's books.
const WRITER: &str = "atoll-dns-setup";
/// What was put in last is remembered in this `ConfigMap`, so that it is noticed when it has gone.
const MEMORY: &str = "atoll-dns-setup";

/// Where CoreDNS's configuration is, and where it should lead.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The namespace of CoreDNS's `ConfigMap`.
    pub namespace: String,
    /// The `ConfigMap`.
    pub config_map: String,
    /// The key in it.
    pub key: String,
    /// The zone to forward.
    pub zone: Name,
    /// Our servers; the addresses of the Service that the manifest makes, if none are given.
    pub servers: Vec<SocketAddr>,
    /// Our own namespace.
    pub own_namespace: String,
}

/// How things stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum State {
    /// Our part is there, as it should be.
    InPlace,
    /// It was never there, or was undone.
    Absent,
    /// It is there, but would be written otherwise today: our addresses have changed, or a user edited it.
    Outdated,
    /// It was put in, and is gone: something wrote the Corefile anew.
    Reverted {
        /// When it was put in.
        applied: String,
    },
}

/// How things stand, and what applying would write.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Look {
    /// How things stand.
    #[serde(flatten)]
    pub state: State,
    /// Our part as it should be.
    pub stub: String,
    /// CoreDNS's own `multicluster` option serves the zone: our block goes before it.
    pub multicluster: bool,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    version: Option<String>,
}

/// Why it can't be looked at, made or undone.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// CoreDNS keeps its configuration elsewhere, or is not there.
    #[error("the ConfigMap `{namespace}/{name}` does not exist, or has no key `{key}`")]
    NoCorefile {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The key.
        key: String,
    },
    /// Our servers have no address.
    #[error("the Service `{0}/{name}` has no address to forward to", name = manifest::NAME)]
    NoServers(String),
    /// Another block serves the zone.
    #[error("the Corefile already has a block for `{0}` that atoll did not write")]
    ServedByOthers(Name),
    /// Another writer wrote the Corefile at the same time.
    #[error("the Corefile was changed by another writer at the same time")]
    Raced,
    /// The API said no.
    #[error("cannot {doing}")]
    Api {
        /// What was tried.
        doing: &'static str,
        /// What it said.
        source: Box<kube::Error>,
    },
}

impl SetupError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoCorefile { .. } => Some(
                "set --config-map and --key; k3s and AKS read a ConfigMap `coredns-custom` of their own"
                    .to_owned(),
            ),
            Self::NoServers(_) => {
                Some("apply the output of `atoll dns manifest` first, or set --server".to_owned())
            }
            Self::ServedByOthers(_) => {
                Some("delete that block: CoreDNS accepts only one per zone".to_owned())
            }
            Self::Raced => Some("run the command again".to_owned()),
            Self::Api { .. } => None,
        }
    }
}

fn api(doing: &'static str) -> impl FnOnce(kube::Error) -> SetupError {
    move |error| match &error {
        kube::Error::Api(status) if status.code == 409 => SetupError::Raced,
        _ => SetupError::Api { doing, source: Box::new(error) },
    }
}

impl Setup {
    /// Looks how things stand, and changes nothing.
    pub async fn look(&self, client: &kube::Client) -> Result<Look, SetupError> {
        let (text, version) = self.read(client).await?;
        let stub = Corefile::read(&text).stub(&self.zone, &self.servers(client).await?);
        if Corefile::read(&text).served_by_others(&self.zone) {
            return Err(SetupError::ServedByOthers(self.zone.clone()));
        }
        let remembered =
            self.memory(client).get_opt(MEMORY).await.map_err(api("read the record of the set-up"))?;
        let applied = remembered.and_then(|memory| memory.data?.remove("applied"));
        let state = match (corefile::find(&text), applied) {
            (Some(found), _) if found == stub => State::InPlace,
            (Some(_), _) => State::Outdated,
            (None, Some(applied)) => State::Reverted { applied },
            (None, None) => State::Absent,
        };
        let multicluster = corefile::has_multicluster(&text, &self.zone);
        Ok(Look { state, stub, multicluster, text, version })
    }

    /// Puts our part in, and remembers that it did. Returns how things stood before.
    pub async fn apply(&self, client: &kube::Client) -> Result<Look, SetupError> {
        let look = self.look(client).await?;
        if look.state != State::InPlace {
            self.write(client, &corefile::with(&look.text, &look.stub), look.version.as_deref()).await?;
        }
        let memory = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": MEMORY},
            "data": {"applied": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), "stub": look.stub},
        });
        let params = PatchParams::apply(WRITER).force();
        let remembering = api("write the record of the set-up; does its namespace exist?");
        self.memory(client).patch(MEMORY, &params, &Patch::Apply(memory)).await.map_err(remembering)?;
        Ok(look)
    }

    /// Takes our part out. False: it was not there.
    pub async fn undo(&self, client: &kube::Client) -> Result<bool, SetupError> {
        let (text, version) = self.read(client).await?;
        let there = corefile::find(&text).is_some();
        if there {
            self.write(client, &corefile::without(&text), version.as_deref()).await?;
        }
        match self.memory(client).delete(MEMORY, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(api("delete the record of the set-up")(error)),
        }
        Ok(there)
    }

    /// The Corefile, and the version that it is of.
    async fn read(&self, client: &kube::Client) -> Result<(String, Option<String>), SetupError> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &self.namespace);
        let map = maps.get_opt(&self.config_map).await.map_err(api("read CoreDNS's configuration"))?;
        let found = map.and_then(|map| {
            let version = map.metadata.resource_version;
            Some((map.data?.remove(&self.key)?, version))
        });
        found.ok_or_else(|| SetupError::NoCorefile {
            namespace: self.namespace.clone(),
            name: self.config_map.clone(),
            key: self.key.clone(),
        })
    }

    /// Writes the one key, if no other client wrote since.
    async fn write(
        &self,
        client: &kube::Client,
        text: &str,
        version: Option<&str>,
    ) -> Result<(), SetupError> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &self.namespace);
        let patch = json!({"metadata": {"resourceVersion": version}, "data": {&self.key: text}});
        let params = PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
        let written = maps.patch(&self.config_map, &params, &Patch::Merge(patch)).await;
        written.map(drop).map_err(api("write CoreDNS's configuration"))
    }

    fn memory(&self, client: &kube::Client) -> Api<ConfigMap> {
        Api::namespaced(client.clone(), &self.own_namespace)
    }

    async fn servers(&self, client: &kube::Client) -> Result<Vec<SocketAddr>, SetupError> {
        if !self.servers.is_empty() {
            return Ok(self.servers.clone());
        }
        let services: Api<Service> = Api::namespaced(client.clone(), &self.own_namespace);
        let service =
            services.get_opt(manifest::NAME).await.map_err(api("read the Service of the DNS servers"))?;
        let addresses = service.and_then(|service| service.spec?.cluster_ips).unwrap_or_default();
        let addresses: Vec<SocketAddr> = addresses
            .iter()
            .filter_map(|address| Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, manifest::PORT)))
            .collect();
        if addresses.is_empty() {
            return Err(SetupError::NoServers(self.own_namespace.clone()));
        }
        Ok(addresses)
    }
}
