//! `atoll status`: how the clusterset is, on one screen.

mod text;

use std::io::IsTerminal;
use std::time::Duration;

use atoll_api::explain::ClusterSetStatus;
use atoll_api::names::code::Severity;
use clap::Args;

use crate::commands::ask::Asked;
use crate::context::WhichHub;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::paint::ColorFlag;
use crate::signals;

/// How often the hub is asked with `--watch`.
const EVERY: Duration = Duration::from_secs(2);
/// The exit code when something is wrong.
const WRONG: u8 = 1;

/// Show how the clusterset is: the hub, its members, and what is wrong.
#[derive(Args)]
#[command(after_help = "Examples:
  # Is everything well?
  atoll status

  # Keep it on the screen
  atoll status --watch

  # In a script: wait until nothing is wrong
  until atoll status > /dev/null; do sleep 5; done

  # The members that are not well
  atoll status -o json | jq -r '.members[] |
    select(.remark.severity != \"Info\") | .cluster'

Exit codes: 0 nothing is wrong, 1 something is wrong or the hub does not answer,
2 usage error.")]
pub(crate) struct Status {
    #[command(flatten)]
    hub: WhichHub,
    /// Show it again whenever it changes, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    color: ColorFlag,
}

impl Status {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let asked = Asked::hub(&self.hub).await?;
        let status = asked.status().await?;
        if self.watch {
            return self.follow(&asked, status).await;
        }
        self.print(&asked, &status)?;
        if status.verdict.severity > Severity::Info { Err(Failure::silent(WRONG)) } else { Ok(()) }
    }

    fn print(&self, asked: &Asked, status: &ClusterSetStatus) -> anyhow::Result<()> {
        self.output.print(|| text::text(status, &asked.hub.place.shown(), self.color.paint()), status)
    }

    async fn follow(&self, asked: &Asked, mut last: ClusterSetStatus) -> anyhow::Result<()> {
        self.show(asked, &last)?;
        let ended = signals::shutdown()?;
        let mut ended = std::pin::pin!(ended);
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = &mut ended => return Ok(()),
            }
            match asked.status().await {
                Ok(next) if same(&last, &next) => {}
                Ok(next) => {
                    if !self.show(asked, &next)? {
                        return Ok(());
                    }
                    last = next;
                }
                Err(failure) => eprintln!("{failure}; trying again"),
            }
        }
    }

    /// On a terminal, in the place of what was there.
    fn show(&self, asked: &Asked, status: &ClusterSetStatus) -> anyhow::Result<bool> {
        let body = match self.output {
            Format::Text => text::text(status, &asked.hub.place.shown(), self.color.paint()),
            Format::Json => format!("{}\n", serde_json::to_string(status)?),
            Format::Yaml => format!("---\n{}", serde_saphyr::to_string(status)?),
        };
        let clear = match self.output {
            Format::Text if std::io::stdout().is_terminal() => "\x1b[H\x1b[2J",
            Format::Text => "\n",
            Format::Json | Format::Yaml => "",
        };
        output::write_text(&format!("{clear}{body}"))
    }
}

/// Whether only the time differs.
fn same(one: &ClusterSetStatus, other: &ClusterSetStatus) -> bool {
    ClusterSetStatus { at: String::new(), ..one.clone() }
        == ClusterSetStatus { at: String::new(), ..other.clone() }
}
