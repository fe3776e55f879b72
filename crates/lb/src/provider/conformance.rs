//! Whether a provider keeps to the contract. Any provider can be run against it; it makes two services and takes them away again.

use std::fmt;
use std::time::Duration;

use super::{Backend, Ingress, Key, Port, Provider, ProviderError, Share, Spec, Status};
use crate::desired::Protocol;

/// What a provider did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was asked of it.
    pub step: &'static str,
    /// What it did.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.what)
    }
}

/// A spec with everything in it.
pub fn example_spec() -> Spec {
    let backend = |address: &str, port_name: &str, cluster: &str, ready| Backend {
        address: address.parse().expect("an address"),
        port_name: port_name.to_owned(),
        cluster: cluster.to_owned(),
        zone: format!("{cluster}-a"),
        ready,
    };
    let port = |name: &str, protocol, port| Port { name: name.to_owned(), protocol, port };
    Spec {
        ports: vec![port("web", Protocol::Tcp, 80), port("dns", Protocol::Udp, 53)],
        backends: vec![
            backend("10.1.0.4:8080", "web", "paris", true),
            backend("[fd00:10:2::9]:8080", "web", "tokyo", false),
            backend("10.1.0.5:5353", "dns", "paris", true),
        ],
        shares: [
            ("paris".to_owned(), Share { weight: 3, tier: 0 }),
            ("tokyo".to_owned(), Share { weight: 1, tier: 1 }),
        ]
        .into(),
        annotations: [("example.com/size".to_owned(), "small".to_owned())].into(),
        affinity: Some(Duration::from_secs(60)),
        unheard: ["lima".to_owned()].into(),
    }
}

struct Trial<'a> {
    provider: &'a dyn Provider,
    patience: Duration,
    findings: Vec<Finding>,
}

impl Trial<'_> {
    fn found(&mut self, step: &'static str, what: impl Into<String>) {
        self.findings.push(Finding { step, what: what.into() });
    }

    /// The outcome of a call; none, and a finding, if it failed or took too long.
    async fn call<T>(
        &mut self,
        step: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Option<T> {
        match tokio::time::timeout(self.patience, call).await {
            Ok(Ok(outcome)) => Some(outcome),
            Ok(Err(error)) => {
                self.found(step, format!("failed: {error}"));
                None
            }
            Err(_) => {
                self.found(step, format!("no answer within {:?}", self.patience));
                None
            }
        }
    }

    /// Asks until there is an address.
    async fn ingress(&mut self, step: &'static str, key: &Key, status: Status) -> Vec<Ingress> {
        let deadline = tokio::time::Instant::now() + self.patience;
        let mut status = status;
        while status.ingress.is_empty() {
            if tokio::time::Instant::now() > deadline {
                self.found(step, format!("no address within {:?}", self.patience));
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            match self.call(step, self.provider.get(key)).await {
                Some(Some(now)) => status = now,
                Some(None) => {
                    self.found(step, "what was made is not there");
                    break;
                }
                None => break,
            }
        }
        status.ingress.sort();
        status.ingress
    }

    async fn gone(&mut self, step: &'static str, key: &Key) {
        if let Some(Some(status)) = self.call(step, self.provider.get(key)).await {
            self.found(step, format!("there is still {:?}", status.ingress));
        }
    }
}

/// Runs the whole contract against `provider`; no findings if it keeps to it. No step takes longer than `patience`. `run_id` keeps runs apart.
pub async fn run(provider: &dyn Provider, run_id: &str, patience: Duration) -> Vec<Finding> {
    let mut trial = Trial { provider, patience, findings: Vec::new() };
    let key = |name: &str, uid: &str| Key {
        clusterset: "conformance".to_owned(),
        namespace: "conformance".to_owned(),
        name: name.to_owned(),
        uid: format!("{run_id}-{uid}"),
    };
    let (one, reborn, other) = (key("one", "1"), key("one", "2"), key("other", "3"));
    let spec = example_spec();

    trial.gone("get before anything was made", &one).await;
    trial.call("delete what was never made", provider.ensure_deleted(&one)).await;

    let Some(made) = trial.call("ensure", provider.ensure(&one, &spec)).await else {
        // The rest would only say the same.
        return trial.findings;
    };
    let address = trial.ingress("ensure", &one, made).await;

    let again = trial.call("ensure again", provider.ensure(&one, &spec)).await.unwrap_or_default();
    if trial.ingress("ensure again", &one, again).await != address {
        trial.found("ensure again", "the address has changed");
    }

    let mut fewer = spec.clone();
    fewer.backends.truncate(1);
    fewer.ports.truncate(1);
    for (step, spec) in [
        ("update to fewer backends and ports", fewer),
        ("update to no backends", Spec { backends: Vec::new(), ..spec.clone() }),
        ("update to everything again", spec.clone()),
        ("update to the same", spec.clone()),
    ] {
        if let Some(status) = trial.call(step, provider.update(&one, &spec)).await
            && trial.ingress(step, &one, status).await != address
        {
            trial.found(step, "the address has changed");
        }
    }

    trial.gone("get of another service of the same name", &reborn).await;
    if let Some(status) = trial.call("ensure another service", provider.ensure(&other, &spec)).await {
        let second = trial.ingress("ensure another service", &other, status).await;
        if second.iter().any(|ingress| address.contains(ingress)) {
            trial.found("ensure another service", "two services with the same ports have the same address");
        }
    }

    trial.call("delete", provider.ensure_deleted(&one)).await;
    trial.gone("get after delete", &one).await;
    trial.call("delete again", provider.ensure_deleted(&one)).await;
    if let Some(None) = trial.call("get of the other service", provider.get(&other)).await {
        trial.found("get of the other service", "it went with the first");
    }
    trial.call("delete the other service", provider.ensure_deleted(&other)).await;
    trial.gone("get after everything was deleted", &other).await;
    trial.findings
}
