//! What a lab leaves on disk about itself, so that another process can find it or take it away.

use crate::addresses::MOST_LABS;
use crate::error::{Error, Result};
use crate::layout::{Layout, read, state_root, try_lock, write_private};
use crate::spec::Spec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The lab's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// What was asked for.
    pub(crate) spec: Spec,
    /// Which of the host's slots it has.
    pub(crate) slot: u8,
    /// Whether it came all the way up.
    pub(crate) complete: bool,
}

impl Record {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn read(layout: &Layout) -> Option<Self> {
        Self::parse(&read(&layout.record()).ok()?)
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<()> {
        let text = serde_json::to_string_pretty(self).expect("a record always serializes");
        write_private(&layout.record(), text)
    }

    /// Takes a free slot for a new lab and records it, all under one lock.
    pub(crate) fn claim(layout: &Layout, spec: &Spec) -> Result<Self> {
        let lock = state_root().join("slots.lock");
        let _lock = loop {
            if let Some(lock) = try_lock(&lock)? {
                break lock;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let taken: BTreeSet<u8> =
            names().iter().filter_map(|name| Self::read(&Layout::of(name))).map(|r| r.slot).collect();
        let slot = (0..MOST_LABS).find(|slot| !taken.contains(slot)).ok_or_else(|| {
            Error::refused(
                format!("{MOST_LABS} labs are up on this host"),
                "take one down: `lab down --name …`",
            )
        })?;
        let record = Self { spec: spec.clone(), slot, complete: false };
        record.write(layout)?;
        Ok(record)
    }
}

/// The names of all labs on this host.
pub fn names() -> Vec<String> {
    let entries = std::fs::read_dir(state_root()).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
