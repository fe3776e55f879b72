//! Providers over gRPC: what keeps to the contract passes, and whatever does not, a call ends and says why.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_lb::provider::{Access, Failure, Key, Provider, Registry, Remote, conformance, serve};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::liar::{Liar, Lie};
use crate::world::any;

const PATIENCE: Duration = Duration::from_secs(20);

fn key() -> Key {
    Key { clusterset: "set".into(), namespace: "shop".into(), name: "web".into(), uid: "1".into() }
}

async fn served(liar: &Arc<Liar>) -> (std::net::SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(any()).await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, tokio::spawn(serve(listener, Arc::clone(liar) as _)))
}

fn remote(address: std::net::SocketAddr, deadline: Duration) -> Remote {
    Remote::new(&format!("grpc://{address}"), &Access::plaintext(), deadline).unwrap()
}

#[tokio::test]
async fn an_honest_provider_keeps_the_contract_here_and_over_the_wire() {
    assert_eq!(conformance::run(&Liar::default(), "here", PATIENCE).await, []);
    let liar = Arc::new(Liar::default());
    let (address, _serving) = served(&liar).await;
    assert_eq!(conformance::run(&remote(address, PATIENCE), "wire", PATIENCE).await, []);
    assert_eq!(liar.made(), []);
}

#[tokio::test]
async fn the_contract_finds_every_lie() {
    let patience = Duration::from_millis(300);
    for (lie, step) in [
        (Lie::Hang, "get before anything was made"),
        (Lie::Fail, "get before anything was made"),
        (Lie::Nonsense, "ensure"),
        (Lie::Restless, "ensure again"),
        (Lie::Undead, "get after delete"),
    ] {
        let liar = Arc::new(Liar::default());
        liar.about(&Key { name: "one".into(), ..key() }, Some(lie));
        let (address, _serving) = served(&liar).await;
        let findings = conformance::run(&remote(address, PATIENCE), "lies", patience).await;
        assert!(findings.iter().any(|finding| finding.step == step), "{lie:?}: {findings:#?}");
    }
}

#[tokio::test]
async fn a_call_ends_in_time_and_says_what_was_wrong() {
    let (liar, deadline) = (Arc::new(Liar::default()), Duration::from_millis(300));
    let (address, _serving) = served(&liar).await;
    let (remote, spec) = (remote(address, deadline), conformance::example_spec());
    for (lie, kind, text) in [
        (Lie::Hang, Failure::NoAnswer, ""),
        (Lie::Fail, Failure::Passing, "out of quota"),
        (Lie::Nonsense, Failure::Nonsense, "invalid host name `not a host name!`"),
    ] {
        liar.about(&key(), Some(lie));
        let since = Instant::now();
        let error = remote.ensure(&key(), &spec).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error:?}");
        assert!(error.text.contains(text), "{error:?}");
        assert!(since.elapsed() < Duration::from_secs(5), "{lie:?} took {:?}", since.elapsed());
    }
}

#[tokio::test]
async fn a_provider_that_dies_is_reached_again_when_it_is_back() {
    let liar = Arc::new(Liar::default());
    let (address, serving) = served(&liar).await;
    let remote = remote(address, Duration::from_secs(5));
    assert_eq!(remote.get(&key()).await, Ok(None));
    // It dies during a call: its runtime ends, as a process would.
    liar.about(&key(), Some(Lie::Panic));
    let error = remote.ensure_deleted(&key()).await.unwrap_err();
    assert_ne!(error.kind, Failure::Lasting, "{error:?}");
    serving.abort();
    let _ = serving.await;
    liar.about(&key(), None);
    let nobody = self::remote(address, Duration::from_secs(5));
    assert_eq!(nobody.get(&key()).await.unwrap_err().kind, Failure::Unreachable);
    let listener = TcpListener::bind(address).await.unwrap();
    let _serving = tokio::spawn(serve(listener, Arc::clone(&liar) as _));
    for client in [&remote, &nobody] {
        let mut answer = client.get(&key()).await;
        let deadline = Instant::now() + PATIENCE;
        while answer.is_err() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
            answer = client.get(&key()).await;
        }
        assert_eq!(answer, Ok(None));
    }
}

#[test]
fn a_registry_says_who_there_is() {
    let registry = Registry::default().with("metal", Liar::default());
    let access = Access::default();
    assert!(registry.find("metal", &access).is_ok());
    let error = registry.find("cloud", &access).err().unwrap().to_string();
    assert_eq!(error, "unknown provider `cloud`; known are: metal, unix:///PATH and grpcs://HOST:PORT");
    for url in ["grpc://", "grpc://host", "grpc://host:1/path", "grpc://ho st:1", "grpcs://host:1"] {
        assert!(registry.find(url, &access).is_err(), "{url}");
    }
}

/// A process that is ended when the test is.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_python_example_keeps_the_contract() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let folder = tempfile::tempdir().unwrap();
    let url = format!("unix://{}", folder.path().join("provider.sock").display());
    // Once per build directory: it comes from a package index.
    let venv = format!("{}/lb-provider-python", env!("CARGO_TARGET_TMPDIR"));
    let mut process = Command::new(format!("{root}/examples/lb-provider-python/run"))
        .arg(&url)
        .env("VENV", venv)
        .stdout(Stdio::piped())
        .spawn()
        .map(Running)
        .unwrap();
    let output = process.0.stdout.take().unwrap();
    let line = tokio::task::spawn_blocking(move || {
        let (mut line, mut output) = (String::new(), BufReader::new(output));
        // Somebody has to go on listening, or it dies of a broken pipe.
        output.read_line(&mut line).map(|_| (line, output))
    });
    let (line, _output) =
        tokio::time::timeout(Duration::from_secs(300), line).await.unwrap().unwrap().unwrap();
    let said = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said {line:?}"));
    assert_eq!(said, url);
    let remote = Remote::new(&url, &Access::default(), PATIENCE).unwrap();
    assert_eq!(conformance::run(&remote, "python", PATIENCE).await, []);
}
