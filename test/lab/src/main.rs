//! `lab`: starts and ends real Kubernetes clusters on this host.

mod commands;

use clap::Parser;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    atoll_lab::cli::exit_code(commands::run(commands::Arguments::parse()).await)
}
