//! `docs/reasons.md` is made of the codes: each one, what it means, what to do.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use atoll_api::names::code::{Code, Severity};

const UPDATE: &str = "ATOLL_UPDATE_GOLDEN";
const HEAD: &str = "# Reason codes

`atoll explain`, `atoll check`, `atoll status` and `atoll plan` give a code with each reason. Codes are stable: scripts may compare them. The words of a message may change.
**Error**: something does not work. **Warning**: it works, and something is not as it should be. **Info**: it is as it should be, or as it was asked for.

This file is made from `crates/api/src/names/code.rs`; a test keeps it whole.
";

#[test]
fn the_document_of_reasons_is_made_of_the_codes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reasons.md");
    let rendered = document();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&file, &rendered).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let line = kept.lines().zip(rendered.lines()).take_while(|(kept, new)| kept == new).count() + 1;
    assert!(
        kept == rendered,
        "docs/reasons.md differs from the codes from line {line} on: run `{UPDATE}=1 cargo test --workspace --test it reasons`"
    );
}

#[test]
fn every_group_stands_once() {
    let mut groups: Vec<&str> = Code::ALL.iter().map(|code| code.group()).collect();
    groups.dedup();
    assert_eq!(groups.len(), groups.iter().collect::<BTreeSet<_>>().len(), "{groups:?}");
}

fn document() -> String {
    let mut text = HEAD.to_owned();
    let mut group = "";
    for code in Code::ALL {
        if code.group() != group {
            group = code.group();
            let _ = write!(text, "\n## {group}\n");
        }
        let severity = match code.severity() {
            Severity::Info => "Info",
            Severity::Warning => "Warning",
            Severity::Error => "Error",
        };
        let _ = write!(text, "\n### {}\n{severity}. {}", code.as_str(), code.meaning());
        let next = code.next();
        let _ = if next.is_empty() { writeln!(text) } else { writeln!(text, "\n\nWhat to do: {next}") };
    }
    text
}
