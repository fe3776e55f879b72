//! What was measured: a value for programs, and a table of it for people.

mod table;

pub(crate) use table::{heads, hub, times};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::asking::Asked;
use crate::options::{Path, Scenario, Who};
use crate::requests::Counted;
use crate::stats::{Ratio, Summary};
use crate::usage::Usage;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What made services cross.
    #[serde(default)]
    pub path: Path,
    /// The cluster that changed.
    pub source: String,
    /// The clusters that followed, the watched one first. The source imports, too.
    pub importers: Vec<String>,
    /// One per scenario and size, in the order of the run.
    pub rows: Vec<Row>,
    /// Every restart.
    pub restarts: Vec<Restart>,
    /// Why the rest is missing, where the run broke off after something was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
}

/// One scenario at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Which.
    pub scenario: Scenario,
    /// How many slices or services; under load, how many are there.
    pub size: usize,
    /// In short, by whom; milliseconds.
    pub times: BTreeMap<Who, Summary>,
    /// Ours to the floor.
    pub ratio: Option<Ratio>,
    /// The hub's memory at the end, and its processor time in between.
    pub hub: Option<Usage>,
    /// The product's requests in each cluster.
    pub requests: Vec<Counted>,
    /// The questions that the hub was asked meanwhile.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub asked: Option<Asked>,
    /// Every sample in milliseconds, in the order that they were taken; the nth of each are of the same round.
    pub samples: BTreeMap<Who, Vec<f64>>,
}

/// How the hub was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Ending {
    /// Politely.
    Graceful,
    /// By SIGKILL.
    Kill,
}

/// One restart of the hub. While it was away a slice changed: how long until that was in the importer?
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// How it was ended.
    pub ending: Ending,
    /// How many services were exported.
    pub services: usize,
    /// Milliseconds from the signal that ended the old process.
    pub from_signal: f64,
    /// Milliseconds from the start of the new process.
    pub from_start: f64,
}

/// Everybody's samples in short, and ours to the floor.
pub(crate) fn in_short(samples: &BTreeMap<Who, Vec<f64>>) -> (BTreeMap<Who, Summary>, Option<Ratio>) {
    let times = samples.iter().filter_map(|(who, of)| Some((*who, Summary::of(of)?))).collect();
    let both = samples.get(&Who::Ours).zip(samples.get(&Who::Floor));
    (times, both.and_then(|(ours, floor)| Ratio::of(ours, floor)))
}

impl Row {
    /// A row of `samples`.
    pub fn new(scenario: Scenario, size: usize, samples: BTreeMap<Who, Vec<f64>>) -> Self {
        let (times, ratio) = in_short(&samples);
        Self { scenario, size, times, ratio, hub: None, requests: Vec::new(), asked: None, samples }
    }

    /// What it is called.
    pub fn title(&self) -> String {
        match self.scenario {
            Scenario::Idle => "change, idle".to_owned(),
            Scenario::Loaded => format!("change, {} services", self.size),
            Scenario::Burst => format!("burst of {}", self.size),
            Scenario::Cold => format!("cold sync of {}", self.size),
            Scenario::Restart => format!("restart, {} services", self.size),
            Scenario::Asked => format!("{} services, asked", self.size),
        }
    }
}
