//! Runs a balancer from a file, and follows its changes. A file that can't be taken changes nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::balancer::Balancer;
use crate::config::{self, ConfigError};
use crate::desired::Desired;

/// How often it is looked whether the file has changed. Its content is compared: a mounted `ConfigMap` is swapped by a link.
const LOOK: Duration = Duration::from_secs(1);
/// A file that is not the same after this is being written.
const SETTLED: Duration = Duration::from_millis(100);

/// Why a file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It can't be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It can't be taken.
    #[error("invalid configuration file {}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ConfigError,
    },
}

/// Reads and checks the file.
pub fn read(path: &Path) -> Result<Desired, FileError> {
    text(path).and_then(|text| parse(path, &text))
}

fn text(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|source| FileError::Read { path: path.to_owned(), source })
}

fn parse(path: &Path, text: &str) -> Result<Desired, FileError> {
    config::parse(text).map_err(|source| FileError::Config { path: path.to_owned(), source })
}

/// Makes `balancer` what the file says, from now on, until it is dropped. `at_once` asks to look again now.
pub async fn follow(path: &Path, balancer: &Balancer, mut at_once: mpsc::Receiver<()>) {
    let mut before = None;
    loop {
        let now = settled(path).await;
        if before.as_ref() != Some(&now) {
            let wanted = now.clone().and_then(|text| parse(path, &text).map_err(|error| chain(&error)));
            match wanted {
                Ok(wanted) => {
                    let listeners = wanted.listeners.len();
                    balancer.apply(wanted).await;
                    balancer.refused(None);
                    tracing::info!(file = %path.display(), listeners, "applied the configuration");
                }
                Err(why) => {
                    tracing::error!(why, "the new configuration is invalid; keeping the last one");
                    balancer.refused(Some(why));
                }
            }
            before = Some(now);
        }
        // The asker is gone: looking goes on.
        if let Ok(None) = timeout(LOOK, at_once.recv()).await {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The text, once it is not being written: half of a file can be a good file.
async fn settled(path: &Path) -> Result<String, String> {
    let look = || text(path).map_err(|error| chain(&error));
    let mut now = look();
    loop {
        tokio::time::sleep(SETTLED).await;
        let then = look();
        if then == now {
            return now;
        }
        now = then;
    }
}

fn chain(error: &FileError) -> String {
    let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error}: {why}")
}
