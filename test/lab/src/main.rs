//! `lab`: starts and ends real Kubernetes clusters on this host.

mod cli;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    match cli::run(arguments).await {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
