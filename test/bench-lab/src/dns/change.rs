//! From a changed slice, as a watch sees it, to a changed answer.

use super::data::{ENDPOINTS, NAMESPACE, headless_name, headless_slice};
use super::subject::{Subject, Subjects};
use anyhow::{Context, ensure};
use atoll_lab::Cluster;
use atoll_lab::naming::ZONE;
use futures_util::TryStreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, Patch, PatchParams, WatchEvent, WatchParams};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Milliseconds from our watch's event to the first changed answer of `atoll dns`, in order. Negative: it was faster than our watch.
pub(super) async fn measure(cluster: &Cluster, _: &Subjects, count: usize) -> anyhow::Result<Vec<f64>> {
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.client().await?, NAMESPACE);
    let mut times = Vec::new();
    for number in 0..count {
        let name = headless_name(0);
        let last = ENDPOINTS + 1 + number % 150;
        let address = format!("10.60.0.{last}");
        let current = slices.get(&name).await?;
        let version = current.metadata.resource_version.context("a version")?;
        let (watching, begun) = tokio::sync::oneshot::channel();
        let seen = watch_slice(slices.clone(), version, name.clone(), watching);
        begun.await.context("the watch did not begin")?;
        let answered = watch_answers(cluster, &name, &address)?;
        let patch = Patch::Merge(headless_slice(0, last));
        slices.patch(&name, &PatchParams::default(), &patch).await?;
        let seen = tokio::time::timeout(Duration::from_secs(20), seen).await.context("no event")???;
        let answered = tokio::time::timeout(Duration::from_secs(20), answered)
            .await
            .context("no changed answer")???;
        let ahead = seen.saturating_duration_since(answered).as_secs_f64();
        times.push((answered.saturating_duration_since(seen).as_secs_f64() - ahead) * 1000.0);
    }
    ensure!(!times.is_empty(), "no changes were asked for");
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// When a watch of ours sees the slice change. On a thread of its own: it must not wait for whoever makes the change.
fn watch_slice(
    slices: Api<EndpointSlice>,
    version: String,
    name: String,
    watching: tokio::sync::oneshot::Sender<()>,
) -> tokio::task::JoinHandle<anyhow::Result<Instant>> {
    tokio::spawn(async move {
        let events = slices.watch(&WatchParams::default(), &version).await?;
        let mut events = std::pin::pin!(events);
        let _ = watching.send(()); // who waits for it has not gone
        loop {
            match events.try_next().await?.context("the watch ended")? {
                WatchEvent::Modified(slice) if slice.metadata.name.as_deref() == Some(&name) => {
                    return Ok(Instant::now());
                }
                WatchEvent::Error(status) => anyhow::bail!("{status:?}"),
                _ => {}
            }
        }
    })
}

/// Asks again and again, in the cluster's network, until `address` is among the answers. Returns when that was.
fn watch_answers(
    cluster: &Cluster,
    name: &str,
    address: &str,
) -> anyhow::Result<tokio::task::JoinHandle<anyhow::Result<Instant>>> {
    let mut command = cluster.machine().command(std::env::current_exe()?);
    let question = format!("{name}.{NAMESPACE}.svc.{ZONE}");
    command.args(["await-answer", &format!("127.0.0.1:{}", Subject::Atoll.port()), &question, address]);
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("stdout was piped")?).lines();
    // It says when it has begun, so that nothing changes before it looks.
    ensure!(lines.next().transpose()?.as_deref() == Some("asking"), "the asker did not start");
    Ok(tokio::task::spawn_blocking(move || {
        let found = lines.next().transpose()?;
        let at = Instant::now();
        child.wait()?;
        ensure!(found.as_deref() == Some("found"), "the asker ended: {found:?}");
        Ok(at)
    }))
}

/// `bench await-answer`: what runs in the cluster's network. Prints `asking` once it asks, and `found` when the address is answered.
pub(crate) fn await_answer(server: &str, name: &str, address: std::net::Ipv4Addr) -> anyhow::Result<()> {
    use std::io::Write;
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut question = b"\0\x01\x01\0\0\x01\0\0\0\0\0\x01".to_vec();
    for label in name.split('.') {
        question.push(u8::try_from(label.len())?);
        question.extend(label.bytes());
    }
    // A, class IN; and EDNS, for 50 addresses are more than 512 bytes.
    question.extend(b"\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0");
    let (mut reply, until) = ([0; 4096], Instant::now() + Duration::from_secs(15));
    let mut out = std::io::stdout();
    let mut said = false;
    while Instant::now() < until {
        socket.send(&question)?;
        let length = socket.recv(&mut reply)?;
        if reply[..length].windows(4).any(|four| four == address.octets()) {
            ensure!(said, "the address was there before the change");
            writeln!(out, "found")?;
            return Ok(());
        }
        if !said {
            writeln!(out, "asking")?;
            out.flush()?;
            said = true;
        }
        // A pause as long as some answers: the asker must not take the processor that it waits for.
        std::thread::sleep(Duration::from_micros(50));
    }
    anyhow::bail!("{address} was never answered")
}
