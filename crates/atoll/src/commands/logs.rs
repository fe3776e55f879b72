//! `atoll logs`: prints the logs of a container.

use std::time::Duration;

use clap::Args;
use futures_util::AsyncReadExt;
use http::Request;

use crate::context::ClusterApi;
use crate::objects::pods;
use crate::objects::rest::{Rest, with_query};
use crate::output;

/// What has to be granted in a member for this.
const PERMISSIONS: &str = "pods,pods/log";

/// Print the logs of a container.
#[derive(Args)]
#[command(after_help = "Examples:
  # Print the logs of a pod of a member
  atoll logs -C member1 serve-5d9c9c6b5-x2x7k

  # Follow the logs of one pod of a deployment, from the last 20 lines on
  atoll logs -C member1 deployment/serve --tail 20 -f

  # Print the logs of a container before its last restart
  atoll logs -C member1 serve-5d9c9c6b5-x2x7k -c init --previous")]
pub(crate) struct Logs {
    /// Pod name, or a workload or Service as KIND/NAME, to use one of its pods.
    #[arg(value_name = "POD")]
    pod: String,
    #[command(flatten)]
    cluster: ClusterApi,
    /// Container name [default: the annotation kubectl.kubernetes.io/default-container, or the first container].
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Stream new log lines.
    #[arg(short, long)]
    follow: bool,
    /// Number of recent lines to print [default: all].
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// Print the logs of the previous instance of the container.
    #[arg(short, long)]
    previous: bool,
    /// Only print logs newer than this, such as 10s or 5m.
    #[arg(long, value_name = "DURATION", value_parser = atoll_duration::parse)]
    since: Option<Duration>,
    /// Print a timestamp before each line.
    #[arg(long)]
    timestamps: bool,
}

impl Logs {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut reached = self.cluster.reach().await?;
        if self.follow {
            // Nothing may be printed for long.
            reached.config.read_timeout = None;
        }
        let rest = Rest::of(reached)?;
        let chosen = pods::choose(&rest, &self.pod, self.container.as_deref(), PERMISSIONS).await?;
        let yes = |flag: bool| if flag { "true" } else { "" };
        let (tail, since) = (
            self.tail.map(|lines| lines.to_string()).unwrap_or_default(),
            // Of nothing at all the API wants to hear nothing.
            self.since.map(|since| since.as_secs().max(1).to_string()).unwrap_or_default(),
        );
        let query = [
            ("container", chosen.container.as_str()),
            ("follow", yes(self.follow)),
            ("previous", yes(self.previous)),
            ("tailLines", tail.as_str()),
            ("sinceSeconds", since.as_str()),
            ("timestamps", yes(self.timestamps)),
        ];
        let request = Request::get(with_query(&chosen.path(&rest, "log"), &query)).body(Vec::new())?;
        let what = format!("cannot read the logs of {} ({})", chosen.pod, chosen.container);
        let stream = rest.client.request_stream(request).await;
        let stream = stream.map_err(|error| rest.failure(&what, &error, PERMISSIONS))?;
        let (mut stream, mut buffer) = (std::pin::pin!(stream), vec![0; 16 * 1024]);
        loop {
            let read = stream.read(&mut buffer).await?;
            if read == 0 || !output::write_bytes(&buffer[..read])? {
                return Ok(());
            }
        }
    }
}
