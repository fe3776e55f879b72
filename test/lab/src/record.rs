//! What a lab leaves on disk about itself, so that another process can find it or remove it.

use crate::addresses::MOST_LABS;
use crate::error::{Doing, Error, Result};
use crate::install::Programs;
use crate::layout::{Layout, lock_file, read, state_root, write_private};
use crate::network::{build_bridge, is_free};
use crate::spec::Spec;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The lab's record.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// What was asked for.
    pub(crate) spec: Spec,
    /// Which of the host's slots it has.
    pub(crate) slot: u8,
    /// What it was started with.
    pub(crate) programs: Programs,
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

    /// Takes a free slot for a new lab, records it and makes its bridge, all under one lock of the host.
    pub(crate) fn claim(layout: &Layout, spec: &Spec, programs: &Programs) -> Result<Self> {
        let lock = lock_file(Path::new("/run/atoll-lab.lock"))?;
        lock.lock().doing(|| "lock the slots of this host".to_owned())?;
        let others: Vec<_> = names().iter().filter_map(|name| Self::read(&Layout::of(name))).collect();
        let free = |slot: &u8| others.iter().all(|other| other.slot != *slot) && is_free(*slot);
        let slot = (0..MOST_LABS).find(free).ok_or_else(|| {
            Error::refused(
                format!("all {MOST_LABS} slots for labs on this host are taken"),
                "take a lab down: `lab down --name …`",
            )
        })?;
        let record = Self { spec: spec.clone(), slot, programs: programs.clone(), complete: false };
        record.write(layout)?;
        if let Err(error) = build_bridge(slot, layout.dir()) {
            // Whatever is in the way is not ours: keep no record that could be taken for a claim to it.
            let _ = std::fs::remove_dir_all(layout.dir());
            return Err(error);
        }
        Ok(record)
    }
}

/// The names of all labs on this host.
pub fn names() -> Vec<String> {
    let entries = std::fs::read_dir(state_root()).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter(|entry| entry.path().join("lab.json").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
