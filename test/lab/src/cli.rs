//! What the command lines of `lab` and of the tools on it (`bench`, `facts`) have in common.

use crate::error::{Error, Result};
use crate::{Lab, requirements};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Which lab a command is about.
#[derive(Debug, Args)]
pub struct Named {
    /// The lab's name; labs of different names can be up side by side.
    #[arg(long, default_value = "default", env = "ATOLL_LAB_NAME")]
    pub name: String,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}

impl Format {
    /// Prints `value`, for people as `text` writes it.
    pub fn print<T: Serialize + ?Sized>(self, value: &T, text: impl FnOnce(&T) -> String) -> io::Result<()> {
        let text = match self {
            Self::Text => text(value),
            Self::Json => format!("{}\n", serde_json::to_string_pretty(value)?),
            Self::Yaml => serde_saphyr::to_string(&value).map_err(io::Error::other)?,
        };
        match io::stdout().write_all(text.as_bytes()) {
            // The reader has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome,
        }
    }
}

/// The lab called `name`, also if some of its components have ended: that is when one wants to look.
pub fn running(name: &str) -> Result<Lab> {
    requirements::check_to_manage()?;
    Lab::find_broken(name)?.ok_or_else(|| {
        Error::refused(format!("the lab `{name}` is not up"), format!("run `lab up --name {name}`"))
    })
}

/// Prints the error of a command that failed.
pub fn exit_code(outcome: Result<ExitCode, impl Display>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "error: {error:#}");
        ExitCode::FAILURE
    })
}
