//! The built-in provider: an address of the pool, and one `ConfigMap` per service that says what a balancer should do. The `ConfigMap` is the
//! record of what was given: a restarted hub, or another leader, reads it back.

mod addresses;
mod ledger;

use std::net::IpAddr;
use std::sync::Arc;

use atoll_api::names::annotation::balancing::{ADDRESSES, SHARE_WITH};
use atoll_lb::config::{Config, ConfigError};
use atoll_lb::provider::{Failure, Ingress, Key, Provider, ProviderError, Spec, Status, async_trait};
use atoll_watch::why;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use tokio::sync::Mutex;

use self::addresses::{Ports, Refused, Taken, Wanted};
use self::ledger::Ledger;
use crate::configmap::{self, Given, is_ours, owner};
use crate::pool::Pool;
use crate::render;
use crate::sharing::Sharing;

/// What only the hub that runs the provider knows.
#[async_trait]
pub trait Host: Send + Sync + 'static {
    /// Whether it leads: nothing is written otherwise.
    fn leads(&self) -> bool;
    /// Whether addresses of the pool can be given beside the networks of the members.
    async fn check(&self, pool: &Pool) -> Result<(), ProviderError>;
    /// Something happened to other services than the one that was asked for.
    fn news(&self, news: News);
}

/// What happened to other services.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A service lost an address to one that had it first and no longer shares it.
    Displaced {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// What others were refused may be free now.
    Room,
}

/// The built-in provider.
pub struct BuiltIn {
    maps: Api<ConfigMap>,
    pool: Pool,
    /// So many addresses can the services of one namespace have; none: as many as there are.
    per_namespace: Option<usize>,
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

/// What a service that is refused hears. One that keeps addresses goes on with what was published for them.
fn refusal(refused: &Refused, keeps: bool) -> ProviderError {
    let kind = if keeps { Failure::Lasting } else { Failure::Withdrawn };
    ProviderError { kind, text: refused.to_string() }
}

impl BuiltIn {
    /// Gives addresses of `pool`, and writes into this namespace of the hub's API.
    pub fn new(client: Client, namespace: &str, pool: Pool, host: Arc<dyn Host>) -> Self {
        let maps = Api::namespaced(client, namespace);
        Self { maps, pool, per_namespace: None, host, ledger: Mutex::new(None) }
    }

    /// With at most so many addresses for the services of one namespace.
    #[must_use]
    pub fn per_namespace(mut self, most: Option<usize>) -> Self {
        self.per_namespace = most;
        self
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
        let ports: Ports = spec.ports.iter().map(|port| (port.protocol, port.port)).collect();
        let annotation = |key: &str| spec.annotations.get(key).map(String::as_str).unwrap_or_default();
        let (asked, sharing) =
            (configmap::parse_addresses(annotation(ADDRESSES)), Sharing::parse(annotation(SHARE_WITH)).0);
        let has = mine.as_ref().map(configmap::addresses).unwrap_or_default();
        let choose = |ledger: &Ledger| {
            let taken = ledger.taken_beside(&name(key), &sharing);
            let of_namespace = &ledger.of_namespace(&key.namespace, &name(key));
            let most = self.per_namespace;
            let wanted = Wanted { asked: &asked, has: &has, ports: &ports, of_namespace, most };
            let chosen = addresses::choose(&self.pool, &wanted, &taken);
            (chosen, taken)
        };
        let (chosen, taken) = match ledger.as_ref().map(choose) {
            Some((Ok(chosen), taken)) => (Ok(chosen), taken),
            // What a person has removed by hand since is no reason to refuse.
            Some((Err(_), _)) | None => choose(ledger.insert(self.read().await?)),
        };
        let chosen = match chosen {
            Ok(chosen) => chosen,
            Err(refused) => {
                let keeps = self.hand_back(&mut ledger, mine, &has, &taken).await?;
                return Err(refusal(&refused, keeps));
            }
        };
        if chosen.iter().any(|address| !has.contains(address)) {
            self.host.check(&self.pool).await?; // what a service has stays with it: a cluster that joins must not stop it
        }
        self.clear(&mut ledger, &chosen, &taken).await?;

        let mut whole = spec.clone();
        whole.backends.extend(render::retained(&before, spec));
        let config = render::config(key, &whole, &chosen);
        self.may_write()?;
        // What came of a write that fails is not known.
        let known = match ledger.take() {
            Some(known) => known,
            None => self.read().await?,
        };
        let turns = known.turns(&name(key), &chosen);
        let room = mine.as_ref().is_some_and(|mine| configmap::sharing(mine) != sharing)
            || has.iter().any(|address| !chosen.contains(address));
        let given = Given { addresses: chosen.clone(), turns, sharing };
        let map = self.put(key, mine, &given, &config).await.map_err(|error| passing(&error))?;
        *ledger = Some(known.with(&map));
        if room {
            self.host.news(News::Room);
        }
        Ok(status(chosen))
    }

    /// Takes what others no longer share with the service off its `ConfigMap`: it gets nothing else, but that is not its own. Whether
    /// it has addresses still.
    async fn hand_back(
        &self,
        ledger: &mut Option<Ledger>,
        mine: Option<ConfigMap>,
        has: &[IpAddr],
        taken: &Taken,
    ) -> Result<bool, ProviderError> {
        let lost: Vec<IpAddr> =
            has.iter().copied().filter(|address| addresses::is_lost(*address, taken)).collect();
        if let Some(map) = mine.filter(|_| !lost.is_empty()) {
            self.strip(ledger, map, &lost).await?;
        }
        Ok(lost.len() < has.len())
    }

    /// Takes these addresses off the `ConfigMaps` of those whom the service no longer lets share them, and who came after it.
    async fn clear(
        &self,
        ledger: &mut Option<Ledger>,
        chosen: &[IpAddr],
        taken: &Taken,
    ) -> Result<(), ProviderError> {
        let leave = |address: &IpAddr| {
            let address = *address;
            addresses::leave(address, taken).map(move |one| (address, one.map.clone()))
        };
        let guests: Vec<(IpAddr, String)> = chosen.iter().flat_map(leave).collect();
        for (address, guest) in guests {
            let map = self.maps.get_opt(&guest).await.map_err(|error| passing(&error))?;
            if let Some(map) = map.filter(is_ours) {
                self.strip(ledger, map, &[address]).await?;
            }
            let (namespace, name) = configmap::service(&guest);
            tracing::info!(%address, namespace, name, "the address is no longer shared with it");
            self.host.news(News::Displaced { namespace: namespace.to_owned(), name: name.to_owned() });
        }
        Ok(())
    }

    async fn strip(
        &self,
        ledger: &mut Option<Ledger>,
        map: ConfigMap,
        lost: &[IpAddr],
    ) -> Result<(), ProviderError> {
        let map_name = map.name_any();
        let stripped = configmap::without(map, lost).map_err(|error| {
            ProviderError::lasting(format!("an address of the pool can't be taken back: {error}"))
        })?;
        self.may_write()?;
        let known = ledger.take();
        let written = self.maps.replace(&map_name, &PostParams::default(), &stripped).await;
        let written = written.map_err(|error| passing(&error))?;
        *ledger = known.map(|known| known.with(&written));
        Ok(())
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
        given: &Given,
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
