//! A provider of load balancers that only hands out addresses (of 198.51.100.0/24, which is for documentation) and remembers what
//! was wanted. Replace what [`Addresses`] does by calls of your cloud.
//!
//! On the hub's machine: `cargo run -p lb-provider-rust -- unix:///run/atoll/provider.sock`, and `atoll hub --lb-provider` with the same.
//! Elsewhere: `cargo run -p lb-provider-rust -- grpcs://0.0.0.0:7070 ca.crt provider.crt provider.key`, and `atoll hub --lb-provider
//! grpcs://HOST:7070 --lb-provider-ca ca.crt --lb-provider-cert hub.crt --lb-provider-key hub.key`. Each side shows a certificate of `ca.crt`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use atoll_lb::provider::{
    Ingress, Key, Provider, ProviderError, Spec, Status, TlsFiles, async_trait, listen_unix, serve_tls,
    serve_unix,
};
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
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let url = arguments.first().map_or("unix:///tmp/atoll-provider/provider.sock", String::as_str);
    let provider = Arc::new(Addresses::default());
    match (url.split_once("://"), &arguments[1.min(arguments.len())..]) {
        (Some(("unix", path)), []) => {
            let listener = listen_unix(Path::new(path))?;
            println!("listening on {url}");
            serve_unix(listener, provider).await;
        }
        (Some(("grpcs", address)), [ca, certificate, key]) => {
            let listener = TcpListener::bind(address).await?;
            println!("listening on {url}");
            let files = TlsFiles { ca: ca.into(), certificate: certificate.into(), key: key.into() };
            serve_tls(listener, files, provider).await?;
        }
        _ => {
            return Err(
                "usage: lb-provider-rust unix:///PATH | grpcs://ADDRESS:PORT CA CERTIFICATE KEY".into()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use atoll_lb::provider::{Access, Remote, conformance};

    use super::*;

    #[tokio::test]
    async fn it_keeps_the_contract_over_grpc() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("provider.sock");
        tokio::spawn(serve_unix(listen_unix(&path).unwrap(), Arc::new(Addresses::default())));
        let patience = Duration::from_secs(20);
        let remote =
            Remote::new(&format!("unix://{}", path.display()), &Access::default(), patience).unwrap();
        assert_eq!(conformance::run(&remote, "rust", patience).await, []);
    }
}
