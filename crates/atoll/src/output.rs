//! Data to stdout: text, tables, JSON, YAML. A reader that has gone is no error.

use std::io::{ErrorKind, Write};

use serde::Serialize;

/// Prints text as it is.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    text(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

pub(crate) fn yaml(value: &impl Serialize) -> anyhow::Result<()> {
    text(&serde_saphyr::to_string(value)?)
}

/// Columns as kubectl has them: three spaces in between, none at the end.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = header.iter().map(|&title| title.to_owned()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&header).chain(rows).collect();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in all {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
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
