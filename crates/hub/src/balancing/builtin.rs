//! The built-in provider: addresses of the pool, and one `ConfigMap` per service that says what a balancer should do. The `ConfigMap` is the
//! record of what was given: a restarted hub, or another leader, reads it back.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use atoll_api::names::annotation::balancing::{ADDRESSES, ALGORITHM, OWNER, PROXY_PROTOCOL};
use atoll_api::names::label;
use atoll_api::types::Cluster;
use atoll_member::Permit;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use lb::Protocol;
use lb::provider::{Ingress, Key, Provider, ProviderError, Spec, Status, async_trait};
use lb::published::{self, Choices};
use serde_json::Value;
use tokio::sync::Mutex;

use super::addresses::{self, Refused, Taken};
use crate::connect::{code, why};
use crate::join::known;
use crate::networks::Ranges;

/// The key of the text in a `ConfigMap`.
pub(super) const TEXT: &str = "lb.json";
/// Its annotation with the addresses.
const GIVEN: &str = ADDRESSES;

/// The built-in provider.
pub(super) struct BuiltIn {
    client: Client,
    maps: Api<ConfigMap>,
    pool: Ranges,
    permit: Permit,
    /// One at a time, so that no address is given twice. Other hubs are no concern: one leads.
    giving: Mutex<()>,
}

/// The `ConfigMaps` of all services.
pub(super) fn ours() -> String {
    format!("{}={}", label::BALANCER, label::BALANCER_BUILTIN)
}

fn name(key: &Key) -> String {
    published::name(&key.namespace, &key.name)
}

fn passing(error: &kube::Error) -> ProviderError {
    ProviderError::passing(format!("the hub's API: {}", why(error)))
}

impl From<Refused> for ProviderError {
    fn from(refused: Refused) -> Self {
        Self::lasting(refused.to_string())
    }
}

impl BuiltIn {
    pub(super) fn new(client: Client, namespace: &str, pool: Ranges, permit: Permit) -> Self {
        let maps = Api::namespaced(client.clone(), namespace);
        Self { client, maps, pool, permit, giving: Mutex::new(()) }
    }

    fn may_write(&self) -> Result<(), ProviderError> {
        if self.permit.holds() {
            return Ok(());
        }
        Err(ProviderError::passing("this hub does not lead any more"))
    }

    async fn make(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        let _one = self.giving.lock().await;
        let all = self.maps.list(&ListParams::default().labels(&ours())).await;
        let (mine, others): (Vec<_>, Vec<_>) = all
            .map_err(|error| passing(&error))?
            .items
            .into_iter()
            .partition(|map| map.name_any() == name(key));
        // One of a former life of the service, whose address is nobody's any more, is written over.
        let mine = mine.into_iter().next();
        let before =
            mine.as_ref().filter(|map| owner(map) == Some(&*key.uid)).map(listeners).unwrap_or_default();
        let ports: BTreeSet<_> = spec.ports.iter().map(|port| (port.protocol, port.port)).collect();
        let asked = addresses_of(spec.annotations.get(ADDRESSES).map(String::as_str).unwrap_or_default());
        let has = mine.as_ref().map(given).unwrap_or_default();
        let given = addresses::choose(&self.pool, &asked, &has, &ports, &taken(&others))?;
        if given.iter().any(|address| !has.contains(address)) {
            self.check_pool().await?; // what a service has stays with it: a cluster that joins must not stop it
        }

        let mut whole = spec.clone();
        whole.backends.extend(published::recalled(&before, spec));
        let text = published::text(&published::listeners(key, &whole, choices(spec), &given));
        self.may_write()?;
        self.put(key, mine, text, &given).await.map_err(|error| passing(&error))?;
        Ok(status(given))
    }

    /// Whether the pool can be used beside the members that there are.
    async fn check_pool(&self) -> Result<(), ProviderError> {
        let clusters = Api::<Cluster>::all(self.client.clone()).list(&ListParams::default()).await;
        let clusters = clusters.map_err(|error| passing(&error))?.items;
        let members: Vec<_> = clusters.iter().map(known).collect();
        Ok(addresses::fits(&self.pool, members.iter().map(|(name, one)| (name.as_str(), &one.networks)))?)
    }

    async fn put(
        &self,
        key: &Key,
        before: Option<ConfigMap>,
        text: String,
        given: &[IpAddr],
    ) -> Result<(), kube::Error> {
        let mut map = before.clone().unwrap_or_default();
        map.metadata.name = Some(name(key));
        map.data = Some([(TEXT.to_owned(), text)].into());
        let labels = map.metadata.labels.get_or_insert_default();
        labels.insert(label::BALANCER.to_owned(), label::BALANCER_BUILTIN.to_owned());
        let annotations = map.metadata.annotations.get_or_insert_default();
        annotations.insert(OWNER.to_owned(), key.uid.clone());
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        annotations.insert(GIVEN.to_owned(), given.join(","));
        match before {
            Some(before) if before == map => Ok(()),
            // With the version that was read: whoever leads by now has the last word.
            Some(_) => self.maps.replace(&name(key), &PostParams::default(), &map).await.map(drop),
            None => self.maps.create(&PostParams::default(), &map).await.map(drop),
        }
    }
}

fn owner(map: &ConfigMap) -> Option<&str> {
    map.annotations().get(OWNER).map(String::as_str)
}

fn given(map: &ConfigMap) -> Vec<IpAddr> {
    addresses_of(map.annotations().get(GIVEN).map(String::as_str).unwrap_or_default())
}

/// What can't be read is said by [`super::remarks`].
fn addresses_of(text: &str) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for address in text.split(',').filter_map(|one| one.trim().parse().ok()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

fn listeners(map: &ConfigMap) -> Vec<Value> {
    published::read(map.data.as_ref().and_then(|data| data.get(TEXT)).map(String::as_str).unwrap_or_default())
}

fn taken(maps: &[ConfigMap]) -> Taken {
    let mut taken = Taken::new();
    for map in maps {
        let who = map.name_any();
        let who = who.strip_prefix("lb.").unwrap_or(&who).replacen('.', "/", 1);
        let mut ports: BTreeMap<IpAddr, BTreeSet<(Protocol, u16)>> =
            given(map).into_iter().map(|address| (address, BTreeSet::new())).collect();
        for listener in listeners(map) {
            let address = listener["address"].as_str().and_then(|text| text.parse::<SocketAddr>().ok());
            let Some(address) = address else { continue };
            let protocol = if listener["protocol"] == "UDP" { Protocol::Udp } else { Protocol::Tcp };
            ports.entry(address.ip()).or_default().insert((protocol, address.port()));
        }
        for (address, ports) in ports {
            taken.entry(address).or_default().push((who.clone(), ports));
        }
    }
    taken
}

fn choices(spec: &Spec) -> Choices {
    let is = |key: &str, value: &str| spec.annotations.get(key).is_some_and(|text| text == value);
    Choices {
        least_connections: is(ALGORITHM, "LeastConnections"),
        proxy_protocol: is(PROXY_PROTOCOL, "true"),
    }
}

fn status(given: Vec<IpAddr>) -> Status {
    let mut ingress: Vec<Ingress> = given.into_iter().map(Ingress::Ip).collect();
    ingress.sort();
    Status { ingress }
}

#[async_trait]
impl Provider for BuiltIn {
    async fn get(&self, key: &Key) -> Result<Option<Status>, ProviderError> {
        let map = self.maps.get_opt(&name(key)).await.map_err(|error| passing(&error))?;
        Ok(map.filter(|map| owner(map) == Some(&*key.uid)).map(|map| status(given(&map))))
    }

    async fn ensure(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        self.make(key, spec).await
    }

    async fn update(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        self.make(key, spec).await
    }

    async fn ensure_deleted(&self, key: &Key) -> Result<(), ProviderError> {
        let _one = self.giving.lock().await;
        let map = self.maps.get_opt(&name(key)).await.map_err(|error| passing(&error))?;
        let Some(map) = map.filter(|map| owner(map) == Some(&*key.uid)) else { return Ok(()) };
        self.may_write()?;
        let preconditions = Preconditions { uid: map.uid(), resource_version: map.resource_version() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.maps.delete(&name(key), &params).await {
            Ok(_) => Ok(()),
            Err(error) if code(&error) == Some(404) => Ok(()),
            Err(error) => Err(passing(&error)),
        }
    }
}
