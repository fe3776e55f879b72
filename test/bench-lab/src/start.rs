//! `bench start`: how long clusters of the lab take to start and to stop.

use atoll_lab::cli::Format;
use atoll_lab::{Lab, Progress, Spec};
use clap::Args;
use serde::Serialize;
use std::time::Instant;

#[derive(Args)]
pub(super) struct Start {
    /// How many times each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many whole clusters.
    #[arg(short = 'n', long, default_value_t = 3, value_name = "N")]
    clusters: u8,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    what: String,
    up_seconds: Vec<f64>,
    down_seconds: Vec<f64>,
}

impl Start {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        atoll_lab::install(&atoll_lab::cache_root(), &Progress::to_stderr())?;
        let name = format!("bench-{}", std::process::id());
        let mut rows = Vec::new();
        for (what, spec) in [
            (format!("{} whole clusters", self.clusters), Spec::whole(&name, self.clusters)),
            ("1 API-only cluster".to_owned(), Spec::api_only(&name, 1)),
        ] {
            let mut row = Row { what, up_seconds: Vec::new(), down_seconds: Vec::new() };
            for round in 1..=self.rounds {
                let start = Instant::now();
                let lab = Lab::start(&spec, &Progress::silent()).await?;
                row.up_seconds.push(start.elapsed().as_secs_f64());
                let start = Instant::now();
                lab.down()?;
                row.down_seconds.push(start.elapsed().as_secs_f64());
                atoll_lab::say(&format!("{}, round {round} of {}", row.what, self.rounds));
            }
            rows.push(row);
        }
        Ok(self.output.print(&rows, |rows| rows.iter().map(Row::text).collect())?)
    }
}

impl Row {
    /// One line for people: the middle and the worst of each.
    fn text(&self) -> String {
        let show = |seconds: &[f64]| {
            let mut sorted = seconds.to_vec();
            sorted.sort_by(f64::total_cmp);
            let (middle, worst) = (sorted.get(sorted.len() / 2), sorted.last());
            let [middle, worst] = [middle, worst].map(|seconds| seconds.copied().unwrap_or_default());
            format!("{middle:.1} s (worst {worst:.1} s)")
        };
        format!("{:<18}  up {}  down {}\n", self.what, show(&self.up_seconds), show(&self.down_seconds))
    }
}
