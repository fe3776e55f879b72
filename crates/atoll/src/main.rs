//! `atoll`: flags, commands, printing. What the commands do is in the libraries.
//!
//! ```text
//!   cli (flags) ─▶ commands/<one> ─▶ atoll_hub, objects ─▶ data to stdout
//!                        └─ failed ─▶ failure: what happened, why, what to do ─▶ stderr
//! ```

mod cli;
mod commands;
mod complete;
mod context;
mod failure;
mod logs;
mod objects;
mod output;
mod paint;
mod plugin;
mod progress;
mod signals;

use std::process::ExitCode;

fn main() -> ExitCode {
    if complete::if_asked() {
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let (text, code) = failure::render(&error);
            eprint!("{text}");
            code
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> anyhow::Result<()> {
    Box::pin(commands::run(cli::parse())).await
}
