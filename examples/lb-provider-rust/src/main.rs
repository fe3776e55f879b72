//! A provider of load balancers that only hands out addresses (of 198.51.100.0/24, which is for documentation) and remembers what
//! was wanted. Replace what [`Addresses`] does by calls of your cloud.
//!
//! Run it with `cargo run -p lb-provider-rust -- 127.0.0.1:7070`, and lead the hub to `grpc://127.0.0.1:7070`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use atoll_lb::provider::{Ingress, Key, Provider, ProviderError, Spec, Status, async_trait, serve};
use tokio::net::TcpListener;

/// Who has which last byte, and what for.
#[derive(Default)]
struct Addresses {
    given: Mutex<BTreeMap<Key, (u8, Spec)>>,
}

fn status(last: u8) -> Status {
    Status { ingress: vec![Ingress::Ip(Ipv4Addr::new(198, 51, 100, last).into())] }
}

impl Addresses {
    fn given(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, (u8, Spec)>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Provider for Addresses {
    async fn get(&self, key: &Key) -> Result<Option<Status>, ProviderError> {
        Ok(self.given().get(key).map(|(last, _)| status(*last)))
    }

    async fn ensure(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        let mut given = self.given();
        let last = match given.get(key) {
            Some((last, _)) => *last,
            None => (1..=254)
                .find(|last| given.values().all(|(taken, _)| taken != last))
                .ok_or_else(|| ProviderError::passing("all addresses are given away; delete a service"))?,
        };
        println!("{key}: 198.51.100.{last} to {} backends", spec.backends.len());
        given.insert(key.clone(), (last, spec.clone()));
        Ok(status(last))
    }

    async fn update(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        self.ensure(key, spec).await
    }

    async fn ensure_deleted(&self, key: &Key) -> Result<(), ProviderError> {
        self.given().remove(key);
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7070".to_owned());
    let listener = TcpListener::bind(&address).await?;
    println!("listening on {}", listener.local_addr()?);
    serve(listener, Arc::new(Addresses::default())).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use atoll_lb::provider::{Remote, conformance};

    use super::*;

    #[tokio::test]
    async fn it_keeps_the_contract_over_grpc() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("grpc://{}", listener.local_addr().unwrap());
        tokio::spawn(serve(listener, Arc::new(Addresses::default())));
        let patience = Duration::from_secs(20);
        let remote = Remote::new(&url, patience).unwrap();
        assert_eq!(conformance::run(&remote, "rust", patience).await, []);
    }
}
