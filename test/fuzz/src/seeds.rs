//! Inputs that were thought of, or once found something.

use super::Target;
use std::path::PathBuf;

/// The folder of a target's seeds.
pub(crate) fn folder(target: Target) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target.name())
}

/// A target's seeds, by name.
///
/// # Errors
/// The folder can't be read.
pub fn seeds(target: Target) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(folder(target))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        seeds.push((name, std::fs::read(&path)?));
    }
    seeds.sort();
    Ok(seeds)
}

impl Target {
    /// Keeps an input that found something, for ever.
    ///
    /// # Errors
    /// It can't be written.
    pub fn keep(self, input: &[u8], run: u64) -> std::io::Result<PathBuf> {
        let path = folder(self).join(format!("found-{run}"));
        std::fs::write(&path, input)?;
        Ok(path)
    }
}
