//! `atoll request`: calls a service from a member of a sandbox, as a pod there would.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::io::AsyncBufReadExt;

use crate::commands::up::control::{self, Call, Command, Protocol, Reply};
use crate::commands::up::state::Dir;
use crate::failure::Failure;
use crate::output::Format;
use crate::{output, signals};

/// Call a service from a member of `atoll up`.
///
/// Names are resolved by the DNS server of that member, and addresses of Services by its service proxy.
#[derive(Args)]
#[command(after_help = "Examples:
  # Call an imported service
  atoll request --from member2 serve.default.svc.clusterset.local

  # Call an address ten times a second, for ten seconds
  atoll request --from member2 127.34.128.7 --duration 10s --interval 100ms

  # Send a datagram
  atoll request --from member1 echo.default.svc:7 --protocol udp --send hello

  # Count the answers
  atoll request --from member2 serve.default.svc -o json | jq .answered

Exits with 0 if every call was answered.")]
pub(crate) struct Request {
    /// Name or address to call, as `HOST[:PORT][/PATH]`; the default port is 80.
    #[arg(value_name = "ADDRESS")]
    target: String,
    /// Member to call from.
    #[arg(long, value_name = "MEMBER")]
    from: String,
    /// Namespace of the caller, to resolve short names.
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
    /// Protocol.
    #[arg(long, value_name = "PROTOCOL", value_enum, default_value_t = Protocol::Http)]
    protocol: Protocol,
    /// Text to send with TCP or UDP.
    #[arg(long, value_name = "TEXT", default_value = "hello")]
    send: String,
    /// How long to repeat the call.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = atoll_duration::parse)]
    duration: Duration,
    /// Pause between calls.
    #[arg(long, value_name = "DURATION", default_value = "250ms", value_parser = atoll_duration::parse)]
    interval: Duration,
    /// Directory of the sandbox [default: that of $KUBECONFIG, or ~/.atoll/up].
    #[arg(long, value_name = "DIR", env = "ATOLL_UP_DIR")]
    dir: Option<PathBuf>,
    /// Output format; json and yaml print everything at the end.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Request {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let (host, port, path) = parts(&self.target)?;
        let dir = Dir::existing(self.dir)?;
        let payload = if self.protocol == Protocol::Http { path } else { self.send };
        let command = Command::Call(Call {
            from: self.from,
            namespace: self.namespace,
            host,
            port: port.unwrap_or(80),
            protocol: self.protocol,
            payload,
            duration: self.duration,
            interval: self.interval,
        });
        let mut stream = control::send(&dir, &command).await?;
        let mut line = String::new();
        let mut tally = Tally::default();
        let interrupted = signals::shutdown()?;
        let mut interrupted = std::pin::pin!(interrupted);
        loop {
            line.clear();
            let read = tokio::select! {
                read = stream.read_line(&mut line) => read?,
                () = &mut interrupted => 0,
            };
            if read == 0 {
                break;
            }
            let reply: Reply = serde_json::from_str(&line)?;
            if let Reply::Refused(why) = &reply {
                return Err(Failure::usage(
                    &format!("cannot call {}: {why}", self.target),
                    "list the members with `atoll clusters`",
                )
                .into());
            }
            if self.output == Format::Text {
                output::text(&format!("{}\n", line_of(&reply)))?;
            }
            tally.count(reply);
        }
        self.output.print(|| tally.text(), &tally.value())?;
        match tally.failed() {
            0 => Ok(()),
            failed => {
                let what = format!("{failed} of {} calls failed", tally.all.len());
                Err(Failure::plain(&what, "see the errors above").into())
            }
        }
    }
}

/// A host, a port and a path.
fn parts(target: &str) -> anyhow::Result<(String, Option<u16>, String)> {
    let target = target.strip_prefix("http://").unwrap_or(target);
    let (place, path) = match target.find('/') {
        Some(at) => target.split_at(at),
        None => (target, "/"),
    };
    let bad = || {
        Failure::usage(
            &format!("invalid address `{target}`"),
            "use HOST[:PORT][/PATH], such as serve.default.svc:80/path",
        )
    };
    let (host, port) = match place.split_once(':') {
        Some((host, port)) => (host, Some(port.parse().map_err(|_| bad())?)),
        None => (place, None),
    };
    if host.is_empty() || host.contains(char::is_whitespace) {
        return Err(bad().into());
    }
    Ok((host.to_owned(), port, path.to_owned()))
}

/// One line.
fn line_of(reply: &Reply) -> String {
    match reply {
        Reply::Answer { took, text, endpoint, cluster, pod } => {
            let who = match (cluster, pod) {
                (Some(cluster), Some(pod)) => format!("{cluster}/{pod}"),
                (Some(cluster), None) => format!("{cluster} {endpoint}"),
                (None, _) => endpoint.to_string(),
            };
            format!("{who}  {}  {text}", milliseconds(*took))
        }
        Reply::Failed { took, why } => format!("error  {}  {why}", milliseconds(*took)),
        Reply::Refused(why) => format!("error  {why}"),
        Reply::Done => String::new(),
    }
}

fn milliseconds(micros: u64) -> String {
    format!("{}.{} ms", micros / 1000, micros % 1000 / 100)
}

/// Everything that was reply.
#[derive(Default)]
struct Tally {
    all: Vec<Reply>,
}

impl Tally {
    fn count(&mut self, reply: Reply) {
        self.all.push(reply);
    }

    fn failed(&self) -> usize {
        self.all.iter().filter(|reply| !matches!(reply, Reply::Answer { .. })).count()
    }

    /// How often each pod of each cluster answered.
    fn by_pod(&self) -> BTreeMap<(String, String), usize> {
        let mut counts = BTreeMap::new();
        for reply in &self.all {
            if let Reply::Answer { endpoint, cluster, pod, .. } = reply {
                let cluster = cluster.clone().unwrap_or_else(|| "outside".to_owned());
                let pod = pod.clone().unwrap_or_else(|| endpoint.to_string());
                *counts.entry((cluster, pod)).or_default() += 1;
            }
        }
        counts
    }

    /// The latencies of answers, sorted.
    fn latencies(&self) -> Vec<u64> {
        let answered = self.all.iter().filter_map(|reply| match reply {
            Reply::Answer { took, .. } => Some(*took),
            Reply::Failed { .. } | Reply::Refused(_) | Reply::Done => None,
        });
        let mut sorted: Vec<u64> = answered.collect();
        sorted.sort_unstable();
        sorted
    }

    fn text(&self) -> String {
        let (failed, latencies) = (self.failed(), self.latencies());
        let mut text = format!("\n{} calls, {} answered, {failed} failed", self.all.len(), latencies.len());
        if let (Some(middle), Some(worst)) = (quantile(&latencies, 50), latencies.last()) {
            text.push_str(&format!("; p50 {}, slowest {}", milliseconds(middle), milliseconds(*worst)));
        }
        text.push('\n');
        let rows: Vec<Vec<String>> = self
            .by_pod()
            .into_iter()
            .map(|((cluster, pod), count)| vec![cluster, pod, count.to_string()])
            .collect();
        if !rows.is_empty() {
            text.push_str(&output::table(&["CLUSTER", "POD", "ANSWERS"], &rows));
        }
        text
    }

    fn value(&self) -> serde_json::Value {
        let latencies = self.latencies();
        let by = self.by_pod();
        let by: Vec<_> = by
            .into_iter()
            .map(|((cluster, pod), answers)| json!({"cluster": cluster, "pod": pod, "answers": answers}))
            .collect();
        json!({
            "calls": self.all.len(), "answered": latencies.len(), "failed": self.failed(),
            "latencyMicroseconds": {
                "p50": quantile(&latencies, 50), "p99": quantile(&latencies, 99), "max": latencies.last(),
            },
            "by": by,
            "said": self.all,
        })
    }
}

fn quantile(sorted: &[u64], percent: usize) -> Option<u64> {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().checked_sub(1)?)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hosts_with_ports_and_paths() {
        for (target, want) in [
            ("serve.default.svc", ("serve.default.svc", None, "/")),
            ("127.33.128.7:8080", ("127.33.128.7", Some(8080), "/")),
            ("http://serve/healthz", ("serve", None, "/healthz")),
            ("serve:80/a?b=c", ("serve", Some(80), "/a?b=c")),
        ] {
            let (host, port, path) = parts(target).unwrap();
            assert_eq!((host.as_str(), port, path.as_str()), want, "{target}");
        }
        for target in ["", ":80", "serve:http", "serve:70000", "/path", "two words"] {
            assert!(parts(target).is_err(), "{target}");
        }
    }

    #[test]
    fn a_summary_says_who_answered_how_fast_and_what_failed() {
        let mut tally = Tally::default();
        for (cluster, pod, took) in
            [("member1", "serve-a", 900), ("member2", "serve-b", 2100), ("member1", "serve-a", 1250)]
        {
            tally.count(Reply::Answer {
                took,
                text: "hello".to_owned(),
                endpoint: "127.33.1.1:8080".parse().unwrap(),
                cluster: Some(cluster.to_owned()),
                pod: Some(pod.to_owned()),
            });
        }
        tally.count(Reply::Failed { took: 10, why: "refused".to_owned() });
        let want = "\n4 calls, 3 answered, 1 failed; p50 1.2 ms, slowest 2.1 ms
CLUSTER   POD       ANSWERS
member1   serve-a   2
member2   serve-b   1
";
        assert_eq!(tally.text(), want);
        assert_eq!(line_of(&tally.all[0]), "member1/serve-a  0.9 ms  hello");
        assert_eq!(tally.value()["by"][1], json!({"cluster": "member2", "pod": "serve-b", "answers": 1}));
        assert_eq!(Tally::default().text(), "\n0 calls, 0 answered, 0 failed\n");
    }
}
