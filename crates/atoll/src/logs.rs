//! Logs go to stderr: data alone goes to stdout.

use std::io::IsTerminal;
use std::os::unix::fs::OpenOptionsExt;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// Format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable lines.
    Text,
    /// One JSON object per line.
    Json,
}

/// Logs of a program that runs on. `RUST_LOG` chooses what is said; what libraries say of errors, we say with the
/// cluster's name, or with what it means.
pub(crate) fn start(format: Format) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,kube_client=off,nlink=off"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        Format::Text => builder.with_ansi(std::io::stderr().is_terminal()).init(),
        Format::Json => builder.json().flatten_event(true).init(),
    }
}

/// Logs of a program that runs on, into a file that grows: the terminal is for what the user wants to know.
pub(crate) fn to_file(path: &std::path::Path) -> std::io::Result<()> {
    let file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(crate::commands::up::state::NO_LINKS)
        .open(path)?;
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,kube_client=off,nlink=off"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::sync::Mutex::new(file))
        .init();
    Ok(())
}

/// What a command that ends soon has to say beside its result: warnings, without dates.
pub(crate) fn warnings_only() {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("warn,kube_client=off,nlink=off"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    builder.with_ansi(std::io::stderr().is_terminal()).without_time().with_target(false).init();
}
