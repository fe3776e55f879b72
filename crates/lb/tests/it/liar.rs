//! A provider that behaves, but for the services that it lies about.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use atoll_lb::provider::{Ingress, Key, Provider, ProviderError, Spec, Status, async_trait};

/// How it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lie {
    /// It never answers.
    Hang,
    /// It panics.
    Panic,
    /// It fails.
    Fail,
    /// It answers, with what makes no sense.
    Nonsense,
    /// Another address every time.
    Restless,
    /// What was deleted is still there.
    Undead,
    /// An address that is every client's own.
    Loopback,
    /// The metadata service of the cloud that clients run in.
    Metadata,
    /// More than a status can hold.
    Huge,
}

/// A provider that keeps balancers in memory.
#[derive(Debug, Default)]
pub(crate) struct Liar {
    made: Mutex<BTreeMap<Key, u8>>,
    lies: Mutex<BTreeMap<String, Lie>>,
    count: Mutex<u8>,
    calls: AtomicUsize,
}

impl Liar {
    /// From now on it lies about services of this name.
    pub(crate) fn about(&self, key: &Key, lie: Option<Lie>) {
        let mut lies = self.lies.lock().unwrap();
        match lie {
            Some(lie) => drop(lies.insert(key.name.clone(), lie)),
            None => drop(lies.remove(&key.name)),
        }
    }

    /// What there is.
    pub(crate) fn made(&self) -> Vec<Key> {
        self.made.lock().unwrap().keys().cloned().collect()
    }

    fn lie(&self, key: &Key) -> Option<Lie> {
        self.lies.lock().unwrap().get(&key.name).copied()
    }

    /// How often it was called.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    async fn tempt(&self, key: &Key) -> Result<(), ProviderError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.lie(key) {
            Some(Lie::Hang) => std::future::pending().await,
            Some(Lie::Panic) => panic!("a provider that panics"),
            Some(Lie::Fail) => Err(ProviderError::passing("out of quota")),
            Some(Lie::Nonsense | Lie::Restless | Lie::Undead | Lie::Loopback | Lie::Metadata | Lie::Huge)
            | None => Ok(()),
        }
    }

    fn next(&self) -> u8 {
        let mut count = self.count.lock().unwrap();
        *count += 1;
        *count
    }

    fn status(&self, key: &Key, number: u8) -> Status {
        let ingress = match self.lie(key) {
            Some(Lie::Nonsense) => Ingress::Hostname("not a host name!".to_owned()),
            Some(Lie::Restless) => Ingress::Ip(Ipv4Addr::new(192, 0, 2, self.next()).into()),
            Some(Lie::Loopback) => Ingress::Ip(Ipv4Addr::LOCALHOST.into()),
            Some(Lie::Metadata) => Ingress::Ip(Ipv4Addr::new(169, 254, 169, 254).into()),
            Some(Lie::Huge) => {
                let all =
                    (0..100_000_u32).map(|number| Ingress::Ip(Ipv4Addr::from(number + (10 << 24)).into()));
                return Status { ingress: all.collect() };
            }
            _ => Ingress::Ip(Ipv4Addr::new(192, 0, 2, number).into()),
        };
        Status { ingress: vec![ingress] }
    }
}

#[async_trait]
impl Provider for Liar {
    async fn get(&self, key: &Key) -> Result<Option<Status>, ProviderError> {
        self.tempt(key).await?;
        let number = self.made.lock().unwrap().get(key).copied();
        Ok(number.map(|number| self.status(key, number)))
    }

    async fn ensure(&self, key: &Key, _: &Spec) -> Result<Status, ProviderError> {
        self.tempt(key).await?;
        let number = self.next();
        let number = *self.made.lock().unwrap().entry(key.clone()).or_insert(number);
        Ok(self.status(key, number))
    }

    async fn update(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        self.ensure(key, spec).await
    }

    async fn ensure_deleted(&self, key: &Key) -> Result<(), ProviderError> {
        self.tempt(key).await?;
        if self.lie(key) != Some(Lie::Undead) {
            self.made.lock().unwrap().remove(key);
        }
        Ok(())
    }
}
