//! `bench attack`: does one hostile user slow others down? An embedded API on this host's loopback, an honest user's requests
//! and `/healthz` beside another user who sends cheap requests, then beside the same user who sends expensive ones, in
//! turn for each kind of them.

mod hub;
mod inputs;
mod load;
mod report;

use super::environment::product;
use atoll_lab::cli::Format;
use clap::Args;
use hub::Hub;
use inputs::Input;
use load::Probes;
use report::{Goals, Options, Report, Row};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub(super) struct Attack {
    /// How long each measurement takes; there are two for each kind of input.
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    seconds: u64,
    /// Number of requests that the hostile user has under way at once.
    #[arg(long, default_value_t = 16, value_name = "N")]
    clients: usize,
    /// Number of anonymous connections that say nothing while the API is attacked.
    #[arg(long, default_value_t = 500, value_name = "N")]
    stalled: usize,
    /// Measure only these inputs.
    #[arg(long, value_delimiter = ',', value_name = "INPUT")]
    only: Vec<Input>,
    /// The `atoll` binary, whose hub is attacked [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Attack {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let progress = |doing: &str| eprintln!("bench: {doing}");
        let hub = Hub::start(&product(self.binary.clone())?).await?;
        progress("filling the API");
        inputs::prepare(&hub.admin).await?;
        let (honest, hostile) = (hub.user("honest").await?, hub.user("hostile").await?);
        let probes = Probes::new(hub.admin.clone(), honest).await?;
        let inputs = if self.only.is_empty() { Input::ALL.to_vec() } else { self.only.clone() };
        let time = Duration::from_secs(self.seconds);
        let mut rows = Vec::new();
        for input in inputs {
            progress(&format!("{input}: beside cheap requests"));
            let calm = load::measure(&probes, &hostile, Input::Cheap, self.clients, time, hub.pid).await?;
            progress(&format!("{input}: attacked"));
            let strangers = hub.strangers(self.stalled).await;
            let attacked = load::measure(&probes, &hostile, input, self.clients, time, hub.pid).await?;
            drop(strangers);
            rows.push(Row::new(input.to_string(), &calm, &attacked));
        }
        let options = Options { seconds: self.seconds, clients: self.clients, stalled: self.stalled };
        let report = Report { options, goals: Goals::default(), inputs: rows };
        Ok(self.output.print(&report, ToString::to_string)?)
    }
}
