//! Where another API server passes questions on to: a socket of our own, and whom to believe there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use atoll_api::names::kind::explain;
use atoll_kubeapi::extension::{Server, Trust, Trusting};
use atoll_kubeapi::pki::Pki;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};

use super::access::Access;
use super::serve;
use crate::membership::connect::why;
use crate::options::Options;

/// Where an API server says how it shows who it is, and for whom it speaks.
const AUTHENTICATION: (&str, &str) = ("kube-system", "extension-apiserver-authentication");
/// How often that is read again: an authority that was replaced is not believed for longer.
const AGAIN: Duration = Duration::from_secs(30);
/// The same, while no authority is known.
const SOON: Duration = Duration::from_secs(5);

/// A socket that listens. It ends with this value.
pub(crate) struct Listening {
    /// Where.
    pub(crate) address: SocketAddr,
    /// What its certificate is checked against, in PEM. Its key is known to this process alone and ends with it.
    pub(crate) ca: String,
    tasks: [tokio::task::JoinHandle<()>; 2],
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

/// The name that the API server knows us by.
fn names(namespace: &str) -> Vec<String> {
    let service = explain::ATOLL_EXPLAIN;
    vec![format!("{service}.{namespace}.svc"), format!("{service}.{namespace}.svc.cluster.local")]
}

/// Listens at an address.
pub(crate) async fn listen(
    client: &Client,
    options: &Options,
    address: SocketAddr,
) -> Result<Listening, std::io::Error> {
    let now = jiff::Timestamp::now().as_second();
    let pki = Pki::ephemeral(&names(&options.namespace), now).map_err(std::io::Error::other)?;
    let groups = [serve::group(options.questions.clone())];
    let access = Arc::new(Access::new(client.clone()));
    let server = Server::bind(address, &pki, &groups, access).await.map_err(std::io::Error::other)?;
    let address = server.address()?;
    let trusting = server.trusting();
    tracing::info!(%address, "serving explanations to the hub's API server");
    let tasks = [tokio::spawn(server.run()), tokio::spawn(follow(client.clone(), trusting))];
    Ok(Listening { address, ca: pki.ca.clone(), tasks })
}

/// Believes whom the API server says, and no others.
async fn follow(client: Client, trusting: Trusting) {
    let (namespace, name) = AUTHENTICATION;
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    let mut said = String::new();
    loop {
        let problem = match api.get_opt(name).await {
            // Whoever was believed is believed until the API server can be asked again.
            Err(error) => Some(format!("cannot read it: {}", why(&error))),
            Ok(map) => trust(&trusting, &map.and_then(|map| map.data).unwrap_or_default()),
        };
        let problem = problem.unwrap_or_default();
        if problem != said && !problem.is_empty() {
            tracing::warn!(configmap = %format!("{namespace}/{name}"), "explanations cannot be asked for: {problem}");
        }
        tokio::time::sleep(if problem.is_empty() { AGAIN } else { SOON }).await;
        said = problem;
    }
}

/// Believes whom the data say; says what is wrong with them.
fn trust(trusting: &Trusting, data: &std::collections::BTreeMap<String, String>) -> Option<String> {
    match Trust::read(data) {
        Ok(Some(trust)) => trusting.trust(Some(trust)).err().map(|error| error.to_string()),
        Ok(None) => {
            let _ = trusting.trust(None);
            let flags =
                "--requestheader-client-ca-file, --proxy-client-cert-file and --proxy-client-key-file";
            Some(format!("the API server has no request header CA: start it with {flags}"))
        }
        Err(error) => {
            let _ = trusting.trust(None);
            Some(error.to_string())
        }
    }
}
