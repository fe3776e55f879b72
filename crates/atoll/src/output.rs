//! Data to stdout: text, tables, JSON, YAML. A reader that has gone is no error.

use std::io::{ErrorKind, Write};

use clap::ValueEnum;
use serde::Serialize;

/// For people, or for scripts.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable.
    Text,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Format {
    /// Prints one thing in this form.
    pub(crate) fn print(
        self,
        text_of: impl FnOnce() -> String,
        value: &impl Serialize,
    ) -> anyhow::Result<()> {
        match self {
            Self::Text => text(&text_of()),
            Self::Json => json(value),
            Self::Yaml => yaml(value),
        }
    }
}

/// Prints text as it is.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    write_text(text).map(|_| ())
}

/// Writes text to stdout; false if the reader has closed it.
pub(crate) fn write_text(text: &str) -> anyhow::Result<bool> {
    write_bytes(text.as_bytes())
}

/// Writes bytes to stdout; false if the reader has closed it.
pub(crate) fn write_bytes(bytes: &[u8]) -> anyhow::Result<bool> {
    let mut out = std::io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}

pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    text(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

pub(crate) fn yaml(value: &impl Serialize) -> anyhow::Result<()> {
    text(&serde_saphyr::to_string(value)?)
}

/// A table with a header, in columns as kubectl has them.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|&title| title.to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(header).chain(rows.iter().cloned()).collect();
    columns(&all, &mut Vec::new())
}

/// Columns as kubectl has them: three spaces in between, none at the end. They are as wide as `widths` at least, and that
/// grows with them, so that later rows can stand below.
pub(crate) fn columns(rows: &[Vec<String>], widths: &mut Vec<usize>) -> String {
    /// With the space behind it no column is narrower than six.
    const NARROWEST: usize = 3;
    for row in rows {
        widths.resize(widths.len().max(row.len()), NARROWEST);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths.iter()).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("   ").trim_end());
        out.push('\n');
    }
    out
}

/// How long ago, as kubectl says it.
pub(crate) fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..120 => format!("{}s", seconds.max(0)),
        120..10_800 => format!("{minutes}m"),
        10_800..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        for (seconds, want) in [
            (-5, "0s"),
            (59, "59s"),
            (119, "119s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (200_000, "2d"),
        ] {
            assert_eq!(age(seconds), want);
        }
    }
}
