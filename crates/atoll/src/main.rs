//! `atoll`: flags, commands, printing. What the commands do is in the libraries.
//!
//! ```text
//!   cli (flags) ─▶ commands/<one> ─▶ atoll_hub, objects ─▶ data to stdout
//!                        └─ failed ─▶ failure: what happened, why, what to do ─▶ stderr
//! ```

mod cli;
mod commands;
mod context;
mod failure;
mod logs;
mod objects;
mod output;
mod plugin;
mod progress;
mod signals;

use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = cli::parse();
    match Box::pin(commands::run(arguments)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let (text, code) = failure::render(&error);
            eprint!("{text}");
            code
        }
    }
}
