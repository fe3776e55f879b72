//! The file: its owner's alone, put aside when it is full.

use crate::log::Sink;
use crate::rotation::{Keep, backup_name, doomed};
use jiff::Timestamp;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOptions {
    /// The file that is written; old ones are beside it.
    pub path: PathBuf,
    /// The most bytes in one file.
    pub max_bytes: u64,
    /// How many old files are kept; 0: all.
    pub max_backups: usize,
    /// For how many days old files are kept; 0: for ever.
    pub max_age_days: u32,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the audit log {}: {source}", path.display())]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// A file that is open.
pub(crate) struct LogFile {
    options: FileOptions,
    file: File,
    size: u64,
    /// When the last one was put aside: the next has a later name, however soon it comes.
    last: Timestamp,
}

impl LogFile {
    pub(crate) fn open(options: FileOptions) -> Result<Self, OpenError> {
        let opened = open(&options.path);
        match opened {
            Ok((file, size)) => Ok(Self { options, file, size, last: Timestamp::UNIX_EPOCH }),
            Err(source) => Err(OpenError { path: options.path, source }),
        }
    }

    /// Puts the file aside and begins another.
    fn rotate(&mut self, now: Timestamp) -> io::Result<()> {
        let path = &self.options.path;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = folder(path);
        let later = |time: Timestamp| time.checked_add(Duration::from_millis(1)).unwrap_or(time);
        let mut at = now.max(later(self.last));
        let mut aside = folder.join(backup_name(&name, at));
        while aside.exists() {
            at = later(at);
            aside = folder.join(backup_name(&name, at));
        }
        fs::rename(path, &aside)?;
        self.last = at;
        (self.file, self.size) = open(path)?;
        let keep = Keep { backups: self.options.max_backups, days: self.options.max_age_days };
        let entries = fs::read_dir(folder)?.filter_map(Result::ok);
        let found: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        for old in doomed(&name, &found, keep, now) {
            fs::remove_file(folder.join(old))?;
        }
        Ok(())
    }
}

impl Sink for LogFile {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let length = lines.len() as u64;
        if self.size > 0
            && self.size + length > self.options.max_bytes
            && let Err(error) = self.rotate(Timestamp::now())
        {
            // Better one file that is too large than a line that is lost.
            let path = self.options.path.display();
            tracing::warn!(%error, %path, "cannot rotate the audit log; it grows");
        }
        if let Err(error) = self.file.write_all(lines) {
            // Half a line would spoil the next.
            let _ = self.file.set_len(self.size);
            return Err(error);
        }
        self.size += length;
        Ok(())
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder(path))?;
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    // One that was there may have had other permissions.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok((file, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(path: PathBuf) -> FileOptions {
        FileOptions { path, max_bytes: 100, max_backups: 2, max_age_days: 0 }
    }

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_file_is_put_aside_and_only_the_latest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = LogFile::open(options(folder.path().join("audit.log"))).unwrap();
        for number in 0..9 {
            file.append(format!("{number:<59}\n").as_bytes()).unwrap();
        }
        let names = files(folder.path());
        assert_eq!(names.len(), 3, "{names:?}");
        let texts: Vec<String> =
            names.iter().map(|name| fs::read_to_string(folder.path().join(name)).unwrap()).collect();
        let first: Vec<&str> = texts.iter().map(|text| text.split_whitespace().next().unwrap()).collect();
        assert_eq!(first, ["6", "7", "8"], "{names:?}");
    }

    #[test]
    fn nobody_else_can_read_the_log_or_its_backups() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/audit.log");
        fs::create_dir(folder.path().join("logs")).unwrap();
        fs::write(&path, "old\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let mut file = LogFile::open(options(path.clone())).unwrap();
        for _ in 0..3 {
            file.append(&[b'x'; 90]).unwrap();
        }
        for name in files(&folder.path().join("logs")) {
            let mode = fs::metadata(folder.path().join("logs").join(&name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert!(LogFile::open(options("/dev/null".into())).is_err());
    }
}
