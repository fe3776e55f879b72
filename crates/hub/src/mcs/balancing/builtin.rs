//! The built-in provider: addresses of the pool, and one `ConfigMap` per service that says what a balancer should do. The `ConfigMap` is the
//! record of what was given: a restarted hub, or another leader, reads it back.

use std::collections::BTreeSet;
use std::net::IpAddr;

use atoll_api::names::annotation::balancing::{ADDRESSES, ALGORITHM, OWNER, PROXY_PROTOCOL};
use atoll_api::names::label;
use atoll_api::types::Cluster;
use atoll_lb::provider::{Ingress, Key, Provider, ProviderError, Spec, Status, async_trait};
use atoll_lb::published::{self, Choices};
use atoll_member::Permit;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;
use tokio::sync::Mutex;

use super::addresses::{self, Refused};
use super::ledger::Ledger;
use crate::membership::connect::{code, why};
use crate::membership::join::known;
use crate::membership::networks::Ranges;

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
    /// Who has which addresses, as far as this hub knows. Held while one is given, so that none is given twice; other hubs are
    /// no concern: one leads.
    ledger: Mutex<Option<Ledger>>,
}

/// The `ConfigMaps` of all services.
pub(super) fn ours() -> String {
    format!("{}={}", label::BALANCER, label::BALANCER_BUILTIN)
}

fn is_ours(map: &ConfigMap) -> bool {
    map.labels().get(label::BALANCER).map(String::as_str) == Some(label::BALANCER_BUILTIN)
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
        Self { client, maps, pool, permit, ledger: Mutex::new(None) }
    }

    fn may_write(&self) -> Result<(), ProviderError> {
        if self.permit.holds() {
            return Ok(());
        }
        Err(ProviderError::passing("this hub is no longer the leader"))
    }

    async fn make(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        let mut ledger = self.ledger.lock().await;
        let mine = self.maps.get_opt(&name(key)).await.map_err(|error| passing(&error))?.filter(is_ours);
        // One of a former life of the service, whose address is nobody's any more, is written over.
        let before =
            mine.as_ref().filter(|map| owner(map) == Some(&*key.uid)).map(listeners).unwrap_or_default();
        let ports: BTreeSet<_> = spec.ports.iter().map(|port| (port.protocol, port.port)).collect();
        let asked = addresses_of(spec.annotations.get(ADDRESSES).map(String::as_str).unwrap_or_default());
        let has = mine.as_ref().map(given).unwrap_or_default();
        let choose = |ledger: &Ledger| {
            addresses::choose(&self.pool, &asked, &has, &ports, &ledger.taken_beside(&name(key)))
        };
        let given = match ledger.as_ref().map(choose) {
            Some(Ok(given)) => given,
            // Nobody is refused for something that a person has taken away by hand since.
            Some(Err(_)) | None => choose(ledger.insert(self.read().await?))?,
        };
        if given.iter().any(|address| !has.contains(address)) {
            self.check_pool().await?; // what a service has stays with it: a cluster that joins must not stop it
        }

        let mut whole = spec.clone();
        whole.backends.extend(published::recalled(&before, spec));
        let text = published::text(&published::listeners(key, &whole, choices(spec), &given));
        self.may_write()?;
        let known = ledger.take(); // What came of a write that fails is not known.
        let map = self.put(key, mine, text, &given).await.map_err(|error| passing(&error))?;
        *ledger = known.map(|known| known.with(&map));
        Ok(status(given))
    }

    /// Who has which addresses.
    async fn read(&self) -> Result<Ledger, ProviderError> {
        let all = self.maps.list(&ListParams::default().labels(&ours())).await;
        let maps = all.map_err(|error| passing(&error))?.items;
        Ok(maps.iter().fold(Ledger::default(), Ledger::with))
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
    ) -> Result<ConfigMap, kube::Error> {
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
            Some(before) if before == map => Ok(map),
            // With the version that was read: whoever leads by now has the last word.
            Some(_) => self.maps.replace(&name(key), &PostParams::default(), &map).await,
            None => self.maps.create(&PostParams::default(), &map).await,
        }
    }
}

fn owner(map: &ConfigMap) -> Option<&str> {
    map.annotations().get(OWNER).map(String::as_str)
}

pub(super) fn given(map: &ConfigMap) -> Vec<IpAddr> {
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

pub(super) fn listeners(map: &ConfigMap) -> Vec<Value> {
    published::read(map.data.as_ref().and_then(|data| data.get(TEXT)).map(String::as_str).unwrap_or_default())
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
        let mut ledger = self.ledger.lock().await;
        let map = self.maps.get_opt(&name(key)).await.map_err(|error| passing(&error))?;
        let Some(map) = map.filter(|map| owner(map) == Some(&*key.uid)) else { return Ok(()) };
        self.may_write()?;
        let preconditions = Preconditions { uid: map.uid(), resource_version: map.resource_version() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let known = ledger.take();
        match self.maps.delete(&name(key), &params).await {
            Ok(_) => {}
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => return Err(passing(&error)),
        }
        *ledger = known.map(|known| known.without(&name(key)));
        Ok(())
    }
}
