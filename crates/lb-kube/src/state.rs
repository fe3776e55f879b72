//! What a balancer was told last, in a file of the form that `atoll lb --config` takes: for a restart while the hub does not answer.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use atoll_lb::Desired;
use atoll_lb::config::Config;
use tokio::sync::watch;

/// What the file says; none if there is none, or none that can be used.
pub(crate) fn read(path: &Path) -> Option<(Config, Desired)> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::error!(file = %path.display(), %error, "cannot read the state file");
            return None;
        }
    };
    let checked = Config::read(&text).and_then(|config| config.check().map(|desired| (config, desired)));
    checked.map_err(|error| tracing::error!(file = %path.display(), %error, "cannot use the state file")).ok()
}

/// Writes what is sent, the newest, beside everything else: a disk can take seconds, and clients do not wait for it.
pub(crate) fn writer(path: PathBuf) -> watch::Sender<Config> {
    let (sender, mut newest) = watch::channel(Config::default());
    tokio::spawn(async move {
        while newest.changed().await.is_ok() {
            let (path, text) = (path.clone(), newest.borrow_and_update().text());
            let written = tokio::task::spawn_blocking(move || {
                write(&path, &text).map_err(|error| {
                    tracing::error!(file = %path.display(), %error, "cannot write the state file: after a restart this balancer would need the hub");
                })
            });
            // It has said what went wrong.
            let _ = written.await;
        }
    });
    sender
}

/// Whole or not at all.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    // Before it takes the old one's name: a power cut must not leave an empty file.
    file.sync_all()?;
    std::fs::rename(unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_broken_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lb.json");
        assert_eq!(read(&path), None);
        write(&path, &Config::default().text()).unwrap();
        assert_eq!(read(&path), Some((Config::default(), Desired::default())));
        std::fs::write(&path, "{").unwrap();
        assert_eq!(read(&path), None);
    }
}
