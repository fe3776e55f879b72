//! The embedded server, started for a run of the suite: behind its TLS listener, on a store in memory.

use crate::programs::Programs;
use crate::target::Way;
use atoll_kubeapi::authn::TokenAuthenticator;
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::server::Server;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options};

/// Cases that the embedded server does not pass on purpose, and why; `docs/kubeapi.md` tells users.
pub(crate) const LEFT_OUT: &[(&str, &str)] = &[
    ("rules_structure::a_rule_may_not_cost_too_much", "no estimate is made of what a rule costs"),
    (
        "rules_structure::types_in_a_rule_must_fit",
        "rules are parsed when they are written, types are seen when they run",
    ),
    ("policies::a_policy_must_be_of_type_bool", "the same for the expressions of policies"),
];

/// A running embedded server.
pub(crate) struct Embedded {
    way: Way,
    _folder: tempfile::TempDir,
    serving: tokio::task::JoinHandle<()>,
}

impl Embedded {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let now = std::time::UNIX_EPOCH.elapsed()?.as_secs().try_into()?;
        let pki = Pki::ephemeral(&["127.0.0.1".to_owned()], now)?;
        let api = Api::start(
            Store::memory(),
            Options::default().tokens(TokenAuthenticator::new(&pki)?).pods(std::sync::Arc::new(Programs)),
        )
        .await?;
        let server = Server::bind("127.0.0.1:0".parse()?, &pki).await?;
        let url = format!("https://{}", server.address()?);
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, with_token(&pki, &url))?;
        let way = Way { kubeconfig, server: url, ca: pki.ca.clone(), token: pki.admin_token.clone() };
        Ok(Self { way, _folder: folder, serving: tokio::spawn(server.run(api)) })
    }

    pub(crate) fn way(&self) -> Way {
        self.way.clone()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A kubeconfig with the admin's token: a certificate would win over a token that a program is given beside it.
fn with_token(pki: &Pki, url: &str) -> String {
    use base64::Engine as _;
    let ca = base64::engine::general_purpose::STANDARD.encode(&pki.ca);
    serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "embedded",
        "clusters": [{"name": "embedded", "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": "admin", "user": {"token": pki.admin_token}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "admin"}}],
    })
    .to_string()
}
