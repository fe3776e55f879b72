//! The built-in provider: an address of the pool, and one `ConfigMap` per service that says what a balancer should do. The `ConfigMap` is the
//! record of what was given: a restarted hub, or another leader, reads it back.

mod addresses;
mod ledger;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use atoll_api::names::annotation::balancing::ADDRESSES;
use atoll_lb::config::{Config, ConfigError};
use atoll_lb::provider::{Ingress, Key, Provider, ProviderError, Spec, Status, async_trait};
use atoll_watch::why;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use tokio::sync::Mutex;

use self::addresses::Refused;
use self::ledger::Ledger;
use crate::configmap::{self, is_ours, owner};
use crate::pool::Pool;
use crate::render;

/// What only the hub that runs the provider knows.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Whether it leads: nothing is written otherwise.
    fn leads(&self) -> bool;
    /// Whether addresses of the pool can be given beside the networks of the members.
    async fn check(&self, pool: &Pool) -> Result<(), ProviderError>;
}

/// The built-in provider.
pub struct BuiltIn {
    maps: Api<ConfigMap>,
    pool: Pool,
    host: Arc<dyn Host>,
    /// Who has which addresses, as far as this hub knows. Held while one is given, so that none is given twice; other hubs are
    /// no concern: one leads.
    ledger: Mutex<Option<Ledger>>,
}

fn name(key: &Key) -> String {
    configmap::name(&key.namespace, &key.name)
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
    /// Gives addresses of `pool`, and writes into this namespace of the hub's API.
    pub fn new(client: Client, namespace: &str, pool: Pool, host: Arc<dyn Host>) -> Self {
        Self { maps: Api::namespaced(client, namespace), pool, host, ledger: Mutex::new(None) }
    }

    fn may_write(&self) -> Result<(), ProviderError> {
        if self.host.leads() {
            return Ok(());
        }
        Err(ProviderError::passing("this hub no longer leads"))
    }

    async fn make(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        let mut ledger = self.ledger.lock().await;
        let mine = self.maps.get_opt(&name(key)).await.map_err(|error| passing(&error))?.filter(is_ours);
        // One of a former service of this name, whose backends are not this one's, is written over.
        let before = mine.as_ref().filter(|map| owner(map) == Some(&*key.uid)).map(published);
        let before = before.transpose()?.unwrap_or_default();
        let ports: BTreeSet<_> = spec.ports.iter().map(|port| (port.protocol, port.port)).collect();
        let asked = spec.annotations.get(ADDRESSES).map(String::as_str).unwrap_or_default();
        let asked = configmap::parse_addresses(asked);
        let has = mine.as_ref().map(configmap::addresses).unwrap_or_default();
        let choose = |ledger: &Ledger| {
            addresses::choose(&self.pool, &asked, &has, &ports, &ledger.taken_beside(&name(key)))
        };
        let given = match ledger.as_ref().map(choose) {
            Some(Ok(given)) => given,
            // What a person has removed by hand since is no reason to refuse.
            Some(Err(_)) | None => choose(ledger.insert(self.read().await?))?,
        };
        if given.iter().any(|address| !has.contains(address)) {
            self.host.check(&self.pool).await?; // what a service has stays with it: a cluster that joins must not stop it
        }

        let mut whole = spec.clone();
        whole.backends.extend(render::retained(&before, spec));
        let config = render::config(key, &whole, &given);
        self.may_write()?;
        let known = ledger.take(); // What came of a write that fails is not known.
        let map = self.put(key, mine, &given, &config).await.map_err(|error| passing(&error))?;
        *ledger = known.map(|known| known.with(&map));
        Ok(status(given))
    }

    /// Who has which addresses.
    async fn read(&self) -> Result<Ledger, ProviderError> {
        let all = self.maps.list(&ListParams::default().labels(&configmap::selector())).await;
        let maps = all.map_err(|error| passing(&error))?.items;
        Ok(maps.iter().fold(Ledger::default(), Ledger::with))
    }

    async fn put(
        &self,
        key: &Key,
        before: Option<ConfigMap>,
        given: &[IpAddr],
        config: &Config,
    ) -> Result<ConfigMap, kube::Error> {
        let map = configmap::with(before.clone().unwrap_or_default(), key, given, config);
        match before {
            Some(before) if before == map => Ok(map),
            // With the version that was read: whoever leads by now has the last word.
            Some(_) => self.maps.replace(&name(key), &PostParams::default(), &map).await,
            None => self.maps.create(&PostParams::default(), &map).await,
        }
    }
}

/// What was published for the service. What can't be read is nothing, and written anew; what a newer release wrote is left alone.
fn published(map: &ConfigMap) -> Result<Config, ProviderError> {
    match configmap::config(map) {
        Ok(config) => Ok(config),
        Err(error @ ConfigError::Version(_)) => {
            Err(ProviderError::lasting(format!("the ConfigMap {}: {error}", map.name_any())))
        }
        Err(error) => {
            tracing::warn!(configmap = map.name_any(), %error, "cannot read the configuration of a load balancer; it is written anew");
            Ok(Config::default())
        }
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
        Ok(map.filter(|map| owner(map) == Some(&*key.uid)).map(|map| status(configmap::addresses(&map))))
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
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(passing(&error)),
        }
        *ledger = known.map(|known| known.without(&name(key)));
        Ok(())
    }
}
