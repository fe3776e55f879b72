//! `atoll logs`: what a container has printed.

use std::time::Duration;

use clap::Args;
use futures_util::AsyncReadExt;
use http::Request;

use crate::cli::duration;
use crate::context::ClusterApi;
use crate::objects::pods;
use crate::objects::rest::{Rest, with_query};
use crate::output;

/// What has to be granted in a member for this.
const RIGHT: &str = "pods,pods/log";

/// Print what a container has printed.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll logs -C member1 serve-5d9c9c6b5-x2x7k
  atoll logs -C member1 deployment/serve --tail 20 -f
  atoll logs -C member1 serve-5d9c9c6b5-x2x7k -c init --previous")]
pub(crate) struct Logs {
    /// A pod, or a workload or Service as KIND/NAME: then of one of its pods.
    #[arg(value_name = "POD")]
    pod: String,
    #[command(flatten)]
    cluster: ClusterApi,
    /// The container [default: the first].
    #[arg(short, long)]
    container: Option<String>,
    /// Go on with what it prints from now on.
    #[arg(short, long)]
    follow: bool,
    /// Only the last lines.
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// Of the container's last life.
    #[arg(short, long)]
    previous: bool,
    /// Not what is older than this, such as 10s or 5m.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    since: Option<Duration>,
    /// With the time before each line.
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
        let chosen = pods::choose(&rest, &self.pod, self.container.as_deref(), RIGHT).await?;
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
        let what = format!("cannot read the log of {} ({})", chosen.pod, chosen.container);
        let stream = rest.client.request_stream(request).await;
        let stream = stream.map_err(|error| rest.failure(&what, &error, RIGHT))?;
        let (mut stream, mut buffer) = (std::pin::pin!(stream), vec![0; 16 * 1024]);
        loop {
            let read = stream.read(&mut buffer).await?;
            if read == 0 || !output::bytes_are_read(&buffer[..read])? {
                return Ok(());
            }
        }
    }
}
