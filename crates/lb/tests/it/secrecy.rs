//! Attacks on the way between the hub and a provider: whoever can't prove who he is hears nothing and says nothing.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atoll_lb::provider::{
    Access, Failure, Key, Provider, Remote, TlsFiles, conformance, listen_unix, serve, serve_tls, serve_unix,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::liar::{Liar, Lie};
use crate::world::any;

const PATIENCE: Duration = Duration::from_secs(20);
const NAME: &str = "provider.test";

fn key() -> Key {
    Key { clusterset: "set".into(), namespace: "shop".into(), name: "web".into(), uid: "1".into() }
}

type Authority = CertifiedIssuer<'static, KeyPair>;

/// An authority, in `<name>.crt`.
fn authority(folder: &Path, name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.join(format!("{name}.crt")), issuer.pem()).unwrap();
    issuer
}

/// A certificate for one side, in `<name>.crt` and `<name>.key`; the other side's is of `ca`.
fn side(folder: &Path, of: &Authority, name: &str, ca: &str) -> TlsFiles {
    let own = KeyPair::generate().unwrap();
    let signed = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&own, of).unwrap();
    let files = TlsFiles {
        ca: folder.join(format!("{ca}.crt")),
        certificate: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
    };
    std::fs::write(&files.certificate, signed.pem()).unwrap();
    std::fs::write(&files.key, own.serialize_pem()).unwrap();
    files
}

fn access(files: &TlsFiles, server_name: &str) -> Access {
    Access {
        ca: Some(files.ca.clone()),
        certificate: Some(files.certificate.clone()),
        key: Some(files.key.clone()),
        server_name: Some(server_name.to_owned()),
        plaintext: false,
    }
}

async fn bound() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(any()).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Tries all four calls; none succeeds.
async fn is_cut_off(remote: &Remote, why: &str) {
    let spec = conformance::example_spec();
    let failures = [
        remote.get(&key()).await.unwrap_err(),
        remote.ensure(&key(), &spec).await.unwrap_err(),
        remote.update(&key(), &spec).await.unwrap_err(),
        remote.ensure_deleted(&key()).await.unwrap_err(),
    ];
    for failure in failures {
        assert_ne!(failure.kind, Failure::Lasting, "{why}: {failure:?}");
    }
}

#[tokio::test]
async fn a_provider_or_hub_of_another_authority_hears_and_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (authority(folder.path(), "ours"), authority(folder.path(), "theirs"));
    let server = side(folder.path(), &ours, NAME, "ours");
    let hub = side(folder.path(), &ours, "hub", "ours");
    let stranger = side(folder.path(), &theirs, "stranger", "ours");
    let misled = TlsFiles { ca: folder.path().join("theirs.crt"), ..hub.clone() };

    let liar = Arc::new(Liar::default());
    let (listener, address) = bound().await;
    let _serving = tokio::spawn(serve_tls(listener, server, Arc::clone(&liar) as _));
    let url = format!("grpcs://{address}");
    let remote = |files: &TlsFiles, name: &str| Remote::new(&url, &access(files, name), PATIENCE).unwrap();
    // The honest use.
    assert_eq!(conformance::run(&remote(&hub, NAME), "tls", PATIENCE).await, []);
    let honest = liar.calls();

    is_cut_off(&remote(&misled, NAME), "the provider's certificate is of another authority").await;
    is_cut_off(&remote(&hub, "elsewhere.test"), "it is another's certificate").await;
    is_cut_off(&remote(&stranger, NAME), "the hub's certificate is of another authority").await;
    assert_eq!(liar.calls(), honest, "no call has reached the provider");
}

#[tokio::test]
async fn a_listener_that_speaks_no_tls_gets_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let ours = authority(folder.path(), "ours");
    let hub = side(folder.path(), &ours, "hub", "ours");
    let (listener, address) = bound().await;
    // It records what it hears, and answers in plain text.
    let hearing = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 4096];
        let length = stream.read(&mut heard).await.unwrap();
        heard.truncate(length);
        heard
    });
    let remote = Remote::new(&format!("grpcs://{address}"), &access(&hub, NAME), PATIENCE).unwrap();
    let failure = remote.ensure(&key(), &conformance::example_spec()).await.unwrap_err();
    assert_eq!(failure.kind, Failure::Unreachable, "{failure:?}");
    let heard = hearing.await.unwrap();
    assert_eq!(heard[..2], [22, 3], "the beginning of a handshake, and nothing else");
    for secret in ["PRI * HTTP/2.0", "shop", "atoll.lb.v1"] {
        let found = heard.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "{secret} was sent in plain text");
    }
}

#[tokio::test]
async fn a_caller_without_a_certificate_or_in_plain_text_orders_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ours = authority(folder.path(), "ours");
    let server = side(folder.path(), &ours, NAME, "ours");
    let liar = Arc::new(Liar::default());
    let (listener, address) = bound().await;
    let _serving = tokio::spawn(serve_tls(listener, server.clone(), Arc::clone(&liar) as _));
    let plain = Remote::new(&format!("grpc://{address}"), &Access::plaintext(), PATIENCE).unwrap();
    is_cut_off(&plain, "plain text").await;
    assert_eq!(liar.calls(), 0);
    // It speaks TLS, and shows no certificate.
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ours.pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let mut nameless = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let _ = nameless.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    let heard = tokio::time::timeout(PATIENCE, nameless.read(&mut [0; 9])).await.unwrap();
    assert!(matches!(heard, Err(_) | Ok(0)), "it was answered: {heard:?}");
    // A hub that has no certificate does not start.
    for forgotten in [
        Access { certificate: None, ..access(&server, NAME) },
        Access { key: None, ..access(&server, NAME) },
        Access { ca: None, ..access(&server, NAME) },
        Access { key: Some(folder.path().join("none.key")), ..access(&server, NAME) },
        Access { key: Some(server.certificate.clone()), ..access(&server, NAME) },
        Access { server_name: Some("not a name".into()), ..access(&server, NAME) },
    ] {
        assert!(Remote::new(&format!("grpcs://{address}"), &forgotten, PATIENCE).is_err(), "{forgotten:?}");
    }
}

/// A certificate that is renewed is used by the next connection, without a restart.
#[tokio::test]
async fn a_renewed_certificate_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (authority(folder.path(), "old"), authority(folder.path(), "new"));
    let server = side(folder.path(), &old, NAME, "old");
    let hub = side(folder.path(), &old, "hub", "old");
    let liar = Arc::new(Liar::default());
    let (listener, address) = bound().await;
    let serving = tokio::spawn(serve_tls(listener, server.clone(), Arc::clone(&liar) as _));
    let remote = Remote::new(&format!("grpcs://{address}"), &access(&hub, NAME), PATIENCE).unwrap();
    assert_eq!(remote.get(&key()).await, Ok(None));
    // Both sides get certificates of the new authority, in the same files; the old connection ends.
    for name in [NAME, "hub"] {
        side(folder.path(), &new, name, "old");
    }
    std::fs::write(folder.path().join("old.crt"), new.pem()).unwrap();
    serving.abort();
    let _ = serving.await;
    let listener = TcpListener::bind(address).await.unwrap();
    let _serving = tokio::spawn(serve_tls(listener, server, Arc::clone(&liar) as _));
    let fresh = Remote::new(&format!("grpcs://{address}"), &access(&hub, NAME), PATIENCE).unwrap();
    assert_eq!(fresh.get(&key()).await, Ok(None));
}

#[tokio::test]
async fn a_socket_that_others_can_replace_or_write_to_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("provider.sock");
    let liar = Arc::new(Liar::default());
    let _serving = tokio::spawn(serve_unix(listen_unix(&path).unwrap(), Arc::clone(&liar) as _));
    let url = format!("unix://{}", path.display());
    let remote = || Remote::new(&url, &Access::default(), PATIENCE).unwrap();
    assert_eq!(conformance::run(&remote(), "unix", PATIENCE).await, [], "the honest use");
    let honest = liar.calls();

    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (of_socket, of_folder, why) in [
        (0o666, 0o700, "everybody on this machine may write to it"),
        (0o660, 0o777, "others may replace it"),
        (0o660, 0o770, "others may replace it"),
    ] {
        mode(&path, of_socket);
        mode(folder.path(), of_folder);
        let failure = remote().ensure(&key(), &conformance::example_spec()).await.unwrap_err();
        assert_eq!(failure.kind, Failure::Unreachable, "{failure:?}");
        assert!(failure.text.contains(why), "{failure:?}");
    }
    assert_eq!(liar.calls(), honest, "no call has reached whoever listens there");
    mode(&path, 0o660);
    mode(folder.path(), 0o755);
    assert_eq!(remote().get(&key()).await, Ok(None));
    // A file of that name that is no socket.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    mode(&path, 0o600);
    let failure = remote().get(&key()).await.unwrap_err();
    assert!(failure.text.contains("it is not a socket"), "{failure:?}");
}

/// A provider that turned: addresses that lead clients to themselves or to their cloud's metadata, and answers that fill the hub's memory.
#[tokio::test]
async fn a_hostile_provider_gives_neither_loopback_nor_metadata_nor_more_than_fits() {
    let liar = Arc::new(Liar::default());
    let (listener, address) = bound().await;
    let _serving = tokio::spawn(serve(listener, Arc::clone(&liar) as _));
    let remote = Remote::new(&format!("grpc://{address}"), &Access::plaintext(), PATIENCE).unwrap();
    for (lie, text) in [
        (Lie::Loopback, "an address that clients cannot use: 127.0.0.1"),
        (Lie::Metadata, "an address that clients cannot use: 169.254.169.254"),
        (Lie::Huge, ""),
    ] {
        liar.about(&key(), Some(lie));
        let failure = remote.ensure(&key(), &conformance::example_spec()).await.unwrap_err();
        assert!(failure.text.contains(text) && failure.text.len() <= 4096, "{lie:?}: {failure:?}");
    }
    liar.about(&key(), None);
    assert!(remote.ensure(&key(), &conformance::example_spec()).await.is_ok());
}
