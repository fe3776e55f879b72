//! Ways into a Kubernetes API: a kubeconfig that a person names, or what a `Cluster` and its Secret say.

use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use atoll_member::code;
pub use atoll_watch::why;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::membership::credentials::{Link, Trust};

/// How long an API may take to answer. One that accepts a connection and says nothing must not hold us for ever.
const ANSWER: Duration = Duration::from_secs(10);

/// A kubeconfig that leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The file can't be read, or is no kubeconfig, or lacks the context.
    #[error("cannot use the kubeconfig {}", path.as_deref().map_or_else(|| "of the environment".to_owned(), |path| format!("`{}`", path.display())))]
    Kubeconfig {
        /// The file; none if it was not named.
        path: Option<PathBuf>,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No client can be made of it.
    #[error("cannot create a client for `{url}`")]
    Client {
        /// The API's address.
        url: String,
        /// What is wrong.
        source: Box<kube::Error>,
    },
}

impl ConnectError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Kubeconfig { .. } => Some(
                "use an existing file, and a context in it (list them with `kubectl config get-contexts`)"
                    .to_owned(),
            ),
            Self::Client { .. } => None,
        }
    }
}

/// Loads a kubeconfig as kubectl does: the file named, else `$KUBECONFIG`, else the home directory's, else the pod's own.
pub async fn config(file: Option<&Path>, context: Option<&str>) -> Result<kube::Config, ConnectError> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let mut config = match (file, context) {
        (None, None) => kube::Config::infer().await.map_err(|error| unusable(None, not_inferred(&error)))?,
        _ => {
            let read = read(file)?;
            if let Some(context) = context.filter(|name| !read.contexts.iter().any(|one| one.name == **name))
            {
                return Err(unusable(file, no_context(context, &read)));
            }
            let config = kube::Config::from_custom_kubeconfig(read, &options).await;
            config.map_err(|error| unusable(file, without_text(&error)))?
        }
    };
    bound(&mut config);
    Ok(config)
}

/// Reads a kubeconfig: the file named, else what `$KUBECONFIG` or the home directory says. Its text is in no error: it holds secrets.
///
/// # Errors
/// Where there is none, or it is no kubeconfig.
pub fn read(file: Option<&Path>) -> Result<Kubeconfig, ConnectError> {
    let read = file.map_or_else(Kubeconfig::read, Kubeconfig::read_from);
    read.map_err(|error| unusable(file, without_text(&error)))
}

fn unusable(file: Option<&Path>, why: String) -> ConnectError {
    ConnectError::Kubeconfig { path: file.map(Path::to_owned), source: why.into() }
}

/// What is wrong with a kubeconfig. An error of the parser quotes the lines around it, and tokens and keys are in them.
fn without_text(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => {
                format!("it is not a valid kubeconfig: see line {} column {}", at.line(), at.column())
            }
            None => "it is not a valid kubeconfig".to_owned(),
        },
        KubeconfigError::ReadConfig(error, file) => format!("cannot read {}: {error}", file.display()),
        other => other.to_string(),
    }
}

/// Why there is neither a kubeconfig nor a pod's own cluster.
fn not_inferred(error: &kube::config::InferConfigError) -> String {
    let of_file =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<KubeconfigError>());
    match of_file {
        Some(KubeconfigError::ReadConfig(error, file)) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("there is no file {}, and this is not a pod of a cluster", file.display())
        }
        Some(KubeconfigError::FindPath) | None => {
            "no kubeconfig is named, and this is not a pod of a cluster".to_owned()
        }
        Some(other) => without_text(other),
    }
}

fn no_context(context: &str, read: &Kubeconfig) -> String {
    let known: Vec<&str> = read.contexts.iter().map(|one| one.name.as_str()).collect();
    match known[..] {
        [] => format!("there is no context `{context}` in it: it has no contexts"),
        _ => format!("there is no context `{context}` in it; there are {}", known.join(", ")),
    }
}

/// A client for it.
pub fn client(config: kube::Config) -> Result<kube::Client, ConnectError> {
    let url = config.cluster_url.to_string();
    kube::Client::try_from(config).map_err(|error| ConnectError::Client { url, source: Box::new(error) })
}

/// kube's own limits are those of a person at a keyboard: up to 1000 s of retries.
fn bound(config: &mut kube::Config) {
    config.connect_timeout = Some(Duration::from_secs(3));
    config.read_timeout = Some(ANSWER);
    config.write_timeout = Some(ANSWER);
    config.reset_reader_on_write = true; // from the question on, not from the last answer
    config.default_retry = false;
}

/// The same for watches, which may be silent for long.
pub(crate) fn patient(mut config: kube::Config) -> kube::Config {
    config.read_timeout = Some(atoll_watch::READ_TIMEOUT);
    config
}

/// The hub's own API, as a hub uses it.
#[derive(Clone)]
pub struct Api {
    /// For everything that has an answer soon.
    pub requests: kube::Client,
    /// For watches, which may be silent for long.
    pub watches: kube::Client,
    /// Where it is, for people.
    pub place: String,
}

impl Api {
    /// The API that a kubeconfig leads to.
    ///
    /// # Errors
    /// Where no client can be made.
    pub fn reached_by(config: kube::Config) -> Result<Self, kube::Error> {
        let place = config.cluster_url.to_string();
        let watches = kube::Client::try_from(patient(config.clone()))?;
        Ok(Self { requests: kube::Client::try_from(config)?, watches, place })
    }

    /// An API in this process.
    pub fn within(client: kube::Client) -> Self {
        Self { requests: client.clone(), watches: client, place: "this process".to_owned() }
    }
}

/// A `Cluster` or its Secret that no client can be made of.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadLink {
    #[error("spec.apiEndpoint is not a valid URL: {0}")]
    Endpoint(http::uri::InvalidUri),
    #[error("spec.proxyURL is not a valid URL: {0}")]
    Proxy(http::uri::InvalidUri),
    #[error("the key caBundle of its Secret has no valid PEM certificates: {0}")]
    Ca(rustls_pki_types::pem::Error),
    #[error("the key caBundle of its Secret is empty")]
    NoCa,
    #[error("the address of its API is not an https:// URL")]
    NotHttps,
}

/// The configuration that a member's `Cluster` and Secret amount to, without its token. What it connects to is checked against the
/// certificates of the link before anything is sent.
pub(crate) fn of_link(link: &Link) -> Result<kube::Config, BadLink> {
    let url: http::Uri = link.endpoint.parse().map_err(BadLink::Endpoint)?;
    if url.scheme() != Some(&http::uri::Scheme::HTTPS) {
        return Err(BadLink::NotHttps);
    }
    let mut config = kube::Config::new(url);
    match &link.trust {
        Trust::Nothing => config.accept_invalid_certs = true,
        Trust::SystemRoots => {}
        Trust::Ca(pem) => {
            let certificates = CertificateDer::pem_slice_iter(pem);
            let der = certificates.map(|one| one.map(|one| one.to_vec())).collect::<Result<Vec<_>, _>>();
            let der = der.map_err(BadLink::Ca)?;
            if der.is_empty() {
                return Err(BadLink::NoCa); // none would mean the roots of this host
            }
            config.root_cert = Some(der);
        }
    }
    config.tls_server_name.clone_from(&link.server_name);
    config.proxy_url = link.proxy.as_deref().map(str::parse).transpose().map_err(BadLink::Proxy)?;
    bound(&mut config);
    Ok(config)
}

/// The same for callers that make clients of their own, with the token.
pub(crate) fn with_token(link: &Link) -> Result<kube::Config, BadLink> {
    let mut config = of_link(link)?;
    config.auth_info.token = Some(link.token.clone().into());
    Ok(config)
}

/// An error and what is behind it, in one line.
pub(crate) fn with_cause(error: &ConnectError) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads these lines as a kubeconfig: what is said of it, with what is behind.
    async fn said_of(lines: &str, context: Option<&str>) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        std::fs::write(&file, lines).unwrap();
        let error = config(Some(&file), context).await.unwrap_err();
        with_cause(&error).replace(&file.display().to_string(), "FILE")
    }

    #[tokio::test]
    async fn no_error_quotes_the_text_of_a_kubeconfig() {
        for lines in [
            "users:\n- name: a\n  user:\n    token: SECRET\n   bad: [\n",
            "users:\n- name: a\n  user: SECRET\n",
            "users: SECRET\n",
            "SECRET\n",
            "users:\n- name: a\n  user:\n    token: SECRET\n    token: SECRET\n",
            "{\"users\": [{\"name\": \"a\", \"user\": {\"token\": \"SECRET\"}]}",
        ] {
            let said = said_of(lines, None).await;
            assert!(
                said.contains("it is not a valid kubeconfig: see line ") && !said.contains("SECRET"),
                "{lines}: {said}"
            );
        }
    }

    #[tokio::test]
    async fn a_context_that_is_not_there_is_said_with_those_that_are() {
        let lines =
            "contexts: [{name: hub, context: {cluster: c}}, {name: member1, context: {cluster: c}}]\n";
        assert_eq!(
            said_of(lines, Some("nope")).await,
            "cannot use the kubeconfig `FILE`: there is no context `nope` in it; there are hub, member1"
        );
    }
}
