//! The way into a running sandbox for other commands: a socket in its directory, one question per connection, lines of JSON.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use atoll_sandbox::network::Dialer;
use atoll_sandbox::programs::http;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;

use super::members::Members;
use super::state::Dir;
use crate::failure::Failure;

/// The socket's name in the directory.
const SOCKET: &str = "control.sock";
/// The most that is read of a line.
const MAX_LINE: u64 = 64 * 1024;
/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may take to ask.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Command {
    /// Call an address from a member, again and again.
    Call(Call),
    /// Stop a member, as if its machines were switched off.
    Stop(String),
    /// Start it again.
    Start(String),
}

/// What to call, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The member.
    pub(crate) from: String,
    /// The namespace whose names are short.
    pub(crate) namespace: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) protocol: Protocol,
    /// The path of HTTP, or what is sent over TCP and UDP.
    pub(crate) payload: String,
    pub(crate) duration: Duration,
    pub(crate) interval: Duration,
}

/// How to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    /// One GET request per connection.
    Http,
    /// Send a line, read a line.
    Tcp,
    /// Send a datagram, read a datagram.
    Udp,
}

/// A reply, one JSON object per line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Reply {
    /// A call was answered.
    Answer {
        /// In microseconds.
        took: u64,
        text: String,
        /// Who: the member and the pod behind the endpoint, as far as they are known.
        endpoint: SocketAddr,
        cluster: Option<String>,
        pod: Option<String>,
    },
    /// A call failed.
    Failed {
        /// In microseconds.
        took: u64,
        why: String,
    },
    /// The request is invalid.
    Refused(String),
    /// A member was stopped or started.
    Done,
}

/// A path to the socket that is short enough for one: through the open directory, however long its name is.
fn socket_path(dir: &Path) -> io::Result<(std::fs::File, PathBuf)> {
    let opened = std::fs::File::open(dir)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(SOCKET);
    Ok((opened, path))
}

/// Opens the socket; one that a crash left behind makes room.
pub(crate) fn listen(dir: &Dir) -> io::Result<UnixListener> {
    match std::fs::remove_file(dir.path(SOCKET)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // The directory is its owner's alone, and so is the socket.
    let (_opened, path) = socket_path(&dir.0)?;
    UnixListener::bind(path)
}

/// Asks a running sandbox; what it says in return can be read line by line.
pub(crate) async fn send(dir: &Dir, command: &Command) -> anyhow::Result<BufReader<UnixStream>> {
    let connect = async {
        let (_opened, path) = socket_path(&dir.0)?;
        let mut stream = UnixStream::connect(path).await?;
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        Ok::<_, io::Error>(BufReader::new(stream))
    };
    connect.await.map_err(|error| {
        let what = format!("no sandbox is running in {}", dir.0.display());
        Failure::directory(&what, &format!("{error}; start one with `atoll up`")).into()
    })
}

/// Answers until it is dropped.
pub(crate) async fn serve(listener: UnixListener, members: Members) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let members = members.clone();
                // It ends by itself when the client goes or the duration is over.
                tokio::spawn(async move {
                    if let Err(error) = handle(stream, &members).await {
                        tracing::debug!(%error, "a client closed the control socket");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept on the control socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn handle(stream: UnixStream, members: &Members) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    let mut read = BufReader::new(read.take(MAX_LINE));
    tokio::time::timeout(READ_TIMEOUT, read.read_line(&mut line)).await??;
    let reply = match serde_json::from_str(&line) {
        Ok(Command::Call(call)) => match members.get(&call.from).await {
            Ok(from) => {
                let dialer = from.dialer().from_pod(&call.namespace, None);
                // A member may be stopped while it calls.
                drop(from);
                return repeat_call(&dialer, members, &call, &mut write).await;
            }
            Err(error) => Err(error),
        },
        Ok(Command::Stop(name)) => members.stop(&name).await,
        Ok(Command::Start(name)) => members.start(&name).await,
        Err(error) => {
            Err(anyhow::anyhow!("invalid request: {error}; the client may be another version of atoll"))
        }
    };
    let reply = reply.map_or_else(|error| Reply::Refused(error.to_string()), |()| Reply::Done);
    write_reply(&mut write, &reply).await
}

/// Calls until the time is over.
async fn repeat_call(
    dialer: &Dialer,
    members: &Members,
    ask: &Call,
    write: &mut (impl AsyncWriteExt + Unpin),
) -> io::Result<()> {
    let mut owners = EndpointOwners { members, known: HashMap::new() };
    let start = Instant::now();
    loop {
        let begun = Instant::now();
        let answered = call(dialer, ask).await;
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        let reply = match answered {
            Ok((endpoint, text)) => {
                let (cluster, pod) = owners.of(endpoint.ip()).await;
                Reply::Answer { took, text, endpoint, cluster, pod }
            }
            Err(why) => Reply::Failed { took, why },
        };
        write_reply(write, &reply).await?;
        if start.elapsed() + ask.interval > ask.duration {
            return Ok(());
        }
        tokio::time::sleep(ask.interval).await;
    }
}

async fn write_reply(write: &mut (impl AsyncWriteExt + Unpin), reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    write.write_all(&line).await
}

/// Calls once: the endpoint that answered, and the text of its answer.
async fn call(dialer: &Dialer, ask: &Call) -> Result<(SocketAddr, String), String> {
    match ask.protocol {
        Protocol::Http => {
            let asked = http::get(dialer, &ask.host, ask.port, &ask.payload, CALL_TIMEOUT).await;
            let answer = asked.map_err(|error| error.to_string())?;
            let text = String::from_utf8_lossy(&answer.body).trim_end().to_owned();
            let status = answer.status;
            let text = if (200..300).contains(&status) { text } else { format!("HTTP {status}: {text}") };
            Ok((answer.endpoint, text))
        }
        Protocol::Tcp => {
            let reached = dialer.connect_tcp(&ask.host, ask.port).await.map_err(|error| error.to_string())?;
            let endpoint = reached.endpoint;
            let exchange = async {
                let mut stream = BufReader::new(reached.stream);
                stream.write_all(format!("{}\n", ask.payload).as_bytes()).await?;
                let mut line = Vec::new();
                stream.take(MAX_LINE).read_until(b'\n', &mut line).await?;
                Ok::<_, io::Error>(String::from_utf8_lossy(&line).trim_end().to_owned())
            };
            let reply = tokio::time::timeout(CALL_TIMEOUT, exchange).await;
            let reply =
                reply.map_err(|_| format!("{endpoint} accepted the connection, but did not answer"))?;
            Ok((endpoint, reply.map_err(|error| format!("the connection to {endpoint} was lost: {error}"))?))
        }
        Protocol::Udp => {
            let connected = dialer.connect_udp(&ask.host, ask.port).await;
            let (socket, endpoint) = connected.map_err(|error| error.to_string())?;
            let exchange = async {
                socket.send(ask.payload.as_bytes()).await?;
                let mut answer = vec![0; 64 * 1024];
                let length = socket.recv(&mut answer).await?;
                answer.truncate(length);
                Ok::<_, io::Error>(String::from_utf8_lossy(&answer).trim_end().to_owned())
            };
            let reply = tokio::time::timeout(CALL_TIMEOUT, exchange).await;
            let reply = reply.map_err(|_| format!("no answer from {endpoint}"))?;
            Ok((endpoint, reply.map_err(|error| format!("cannot reach {endpoint}: {error}"))?))
        }
    }
}

/// Which pod of which member has an address; asked once each.
struct EndpointOwners<'a> {
    members: &'a Members,
    known: HashMap<IpAddr, (Option<String>, Option<String>)>,
}

impl EndpointOwners<'_> {
    async fn of(&mut self, address: IpAddr) -> (Option<String>, Option<String>) {
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let member = self.members.at(address).await;
        let pod = match &member {
            None => None,
            Some(member) => {
                let pods = Api::<Pod>::all(member.client());
                let listed =
                    pods.list(&ListParams::default().fields(&format!("status.podIP={address}"))).await;
                // The one that still runs: an address may have had an owner before.
                let pods = listed.map(|list| list.items).unwrap_or_default();
                let live = pods.iter().find(|pod| {
                    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                    !matches!(phase, Some("Succeeded" | "Failed"))
                });
                live.and_then(|pod| pod.metadata.name.clone())
            }
        };
        let found = (member.map(|member| member.name().to_owned()), pod);
        self.known.insert(address, found.clone());
        found
    }
}
