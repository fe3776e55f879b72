//! A gate before an API that lets most requests pass and refuses, delays or swallows chosen ones.
//!
//! It ends the TLS connection with the API server's own certificate and opens one of its own for each that
//! it gets, so bearer tokens work through it; client certificates and `exec` do not.

use super::Fault;
use crate::addresses::host;
use crate::cluster::Cluster;
use crate::error::{Doing, Error, Result};
use crate::layout::read;
use crate::request::ApiRequest;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Which requests are meant. What is empty means any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// Verbs as the API server's audit log has them: `get`, `list`, `watch`, `create`, `update`, …
    pub verbs: Vec<&'static str>,
    /// The resource's plural.
    pub resource: Option<&'static str>,
    /// The namespace.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: Option<String>,
}

impl Requests {
    /// Those with one of `verbs` on `resource`.
    pub fn of(verbs: &[&'static str], resource: &'static str) -> Self {
        Self { verbs: verbs.to_vec(), resource: Some(resource), ..Self::default() }
    }

    fn include(&self, request: &ApiRequest) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&request.verb.as_str()))
            && self.resource.is_none_or(|resource| resource == request.resource)
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == request.namespace)
            && self.name.as_ref().is_none_or(|name| *name == request.name)
    }
}

/// What happens to a request that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Answered with this status, and never shown to the API server.
    Refuse(StatusCode),
    /// Answered with 429 and this `Retry-After`, in seconds.
    TooMany(u32),
    /// Shown to the API server only after this long.
    Delay(Duration),
    /// Shown to the API server, and its answer swallowed: the connection breaks.
    LoseAnswer,
}

type Rules = Arc<Mutex<Vec<(u64, Requests, Treatment)>>>;
type Body = BoxBody<Bytes, hyper::Error>;

/// A gate before an API. Dropping it closes every connection that goes through it.
#[derive(Debug)]
pub struct Gate {
    address: SocketAddr,
    rules: Rules,
    task: tokio::task::JoinHandle<()>,
}

impl Gate {
    /// A gate before the API of `cluster` that lets everything pass.
    pub async fn before(cluster: &Cluster) -> Result<Self> {
        let addresses = cluster.addresses();
        let listen = SocketAddr::new(host(addresses.slot).v4.into(), 0);
        let listener = TcpListener::bind(listen).await.doing(|| format!("listen on {listen}"))?;
        let address = listener.local_addr().doing(|| format!("listen on {listen}"))?;
        let far = Far {
            address: SocketAddr::new(addresses.node().v4.into(), 6443),
            tls: client_tls(cluster.ca())?,
        };
        let near = server_tls(cluster)?;
        let rules = Rules::default();
        let task = tokio::spawn(accept(listener, near, Arc::new(far), rules.clone()));
        Ok(Self { address, rules, task })
    }

    /// The URL of the API as seen through it.
    pub fn server(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Treats `requests` so, from now until the fault heals. Of several rules the latest counts.
    pub fn treat(&self, requests: Requests, treatment: Treatment) -> Fault {
        let what = format!("{treatment:?} for {requests:?}");
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let id = rules.last().map_or(0, |rule| rule.0 + 1);
        rules.push((id, requests, treatment));
        let rules = self.rules.clone();
        Fault::new(what, move || {
            rules.lock().unwrap_or_else(PoisonError::into_inner).retain(|rule| rule.0 != id);
            Ok(())
        })
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Far {
    address: SocketAddr,
    tls: TlsConnector,
}

fn unusable(error: impl std::fmt::Display) -> Error {
    Error::Certificates(error.to_string())
}

fn server_tls(cluster: &Cluster) -> Result<TlsAcceptor> {
    let pki = cluster.dir().join("pki");
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(read(&pki.join("apiserver.crt"))?.as_bytes()).collect();
    let key =
        PrivateKeyDer::from_pem_slice(read(&pki.join("apiserver.key"))?.as_bytes()).map_err(unusable)?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.map_err(unusable)?, key)
        .map_err(unusable)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn client_tls(ca: &str) -> Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(certificate.map_err(unusable)?).map_err(unusable)?;
    }
    Ok(TlsConnector::from(Arc::new(
        ClientConfig::builder().with_root_certificates(roots).with_no_client_auth(),
    )))
}

async fn accept(listener: TcpListener, near: TlsAcceptor, far: Arc<Far>, rules: Rules) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let (near, far, rules) = (near.clone(), far.clone(), rules.clone());
                connections.spawn(async move {
                    // A broken connection is the client's to notice: that is what the gate is for.
                    let _ = serve(stream, near, far, rules).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves one connection by one of ours to the API server, request by request.
async fn serve(stream: TcpStream, near: TlsAcceptor, far: Arc<Far>, rules: Rules) -> Result<(), BoxError> {
    stream.set_nodelay(true)?;
    let near = near.accept(stream).await?;
    let stream = TcpStream::connect(far.address).await?;
    stream.set_nodelay(true)?;
    let stream = far.tls.connect(ServerName::try_from("kubernetes")?, stream).await?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let sender = Arc::new(tokio::sync::Mutex::new(sender));
    let service = hyper::service::service_fn(move |request| pass(request, sender.clone(), rules.clone()));
    let server = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(near), service);
    tokio::select! {
        ended = server => ended?,
        ended = connection => ended?,
    }
    Ok(())
}

async fn pass(
    request: Request<Incoming>,
    sender: Arc<tokio::sync::Mutex<hyper::client::conn::http1::SendRequest<Incoming>>>,
    rules: Rules,
) -> Result<Response<Body>, BoxError> {
    let uri = request.uri();
    let asked = ApiRequest::parse(request.method().as_str(), uri.path(), uri.query().unwrap_or_default());
    let treatment = {
        let rules = rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.iter().rev().find(|(_, requests, _)| requests.include(&asked)).map(|(.., treatment)| *treatment)
    };
    match treatment {
        Some(Treatment::Refuse(code)) => return Ok(refusal(code, None)),
        Some(Treatment::TooMany(seconds)) => {
            return Ok(refusal(StatusCode::TOO_MANY_REQUESTS, Some(seconds)));
        }
        Some(Treatment::Delay(time)) => tokio::time::sleep(time).await,
        Some(Treatment::LoseAnswer) | None => {}
    }
    let answer = {
        let mut sender = sender.lock().await;
        sender.ready().await?;
        sender.send_request(request).await?
    };
    if treatment == Some(Treatment::LoseAnswer) {
        return Err("the answer is lost on purpose".into());
    }
    Ok(answer.map(BodyExt::boxed))
}

fn refusal(code: StatusCode, retry_after: Option<u32>) -> Response<Body> {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "refused by the lab's gate", "reason": code.canonical_reason().unwrap_or_default().replace(' ', ""),
        "code": code.as_u16(),
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed());
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        headers.insert(http::header::RETRY_AFTER, seconds.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_means_what_it_names_and_nothing_else() {
        let writes = Requests::of(&["create", "update"], "endpointslices");
        for (method, path, meant) in [
            ("PUT", "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b", true),
            ("GET", "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b", false),
            ("PUT", "/api/v1/namespaces/a/services/b", false),
        ] {
            assert_eq!(writes.include(&ApiRequest::parse(method, path, "")), meant, "{method} {path}");
        }
        let named = Requests { name: Some("b".into()), ..writes };
        assert!(!named.include(&ApiRequest::parse(
            "PUT",
            "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/c",
            ""
        )));
    }
}
