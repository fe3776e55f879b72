//! What was measured of policies: a value for programs, and a table of it for people.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};

use serde::{Deserialize, Serialize};

use super::SUBJECTS;
use super::options::Scenario;
use crate::options::Who;
use crate::report::{heads, hub, in_short, times};
use crate::stats::{Ratio, Summary};
use crate::usage::Usage;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How the hub's API is called.
    pub hub: String,
    /// The members that templates went to.
    pub members: Vec<String>,
    /// One per scenario, in the order of the run.
    pub rows: Vec<Row>,
    /// Why the rest is missing, where the run broke off after something was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Which.
    pub scenario: Scenario,
    /// How many templates are there.
    pub size: usize,
    /// How many were brought or changed in all, for each of both.
    pub changes: usize,
    /// In short, by whom; milliseconds.
    pub times: BTreeMap<Who, Summary>,
    /// Ours to the floor.
    pub ratio: Option<Ratio>,
    /// The hub's memory at the end, and its processor time for all changes.
    pub hub: Option<Usage>,
    /// What was written in each cluster that has an audit log.
    pub writes: Vec<Writes>,
    /// Every sample in milliseconds, in the order that they were taken; the nth of each are of the same round.
    pub samples: BTreeMap<Who, Vec<f64>>,
}

/// What was written in one cluster, by `verb resource`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Writes {
    /// The cluster.
    pub cluster: String,
    /// By whom, how often.
    pub by: BTreeMap<Who, BTreeMap<String, u64>>,
}

impl Row {
    /// A row of `samples`.
    pub fn new(scenario: Scenario, size: usize, samples: BTreeMap<Who, Vec<f64>>) -> Self {
        let (times, ratio) = in_short(&samples);
        Self { scenario, size, changes: 0, times, ratio, hub: None, writes: Vec::new(), samples }
    }

    /// What it is called.
    pub fn title(&self) -> String {
        match self.scenario {
            Scenario::Policy => format!("policy for {}", self.size),
            Scenario::Templates => format!("{} templates", self.size),
            Scenario::Change => "one template changes".to_owned(),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "ConfigMaps from {} to {}, milliseconds\n", self.hub, self.members.join(", "))?;
        writeln!(f, "{:<22} {:>17}   {:>17}   {:>19}", "", "ours", "floor", "ours / floor")?;
        heads(f, SUBJECTS.len())?;
        for row in &self.rows {
            times(f, &row.title(), &SUBJECTS, &row.times, row.ratio)?;
        }
        self.writes(f)?;
        hub(f, self.rows.iter().map(|row| (row.title(), row.hub)))?;
        if let Some(why) = &self.unfinished {
            writeln!(f, "\nUNFINISHED: {why}")?;
        }
        Ok(())
    }
}

impl Row {
    #[allow(clippy::cast_precision_loss, reason = "no run makes 2^52 requests")]
    fn per_change(&self, count: u64) -> f64 {
        count as f64 / self.changes.max(1) as f64
    }
}

impl Report {
    fn writes(&self, f: &mut Formatter<'_>) -> Result {
        if self.rows.iter().any(|row| !row.writes.is_empty()) {
            writeln!(f, "\n{:<22} {:<10} {:<6} {:>12}  in all", "Writes", "cluster", "by", "per template")?;
        }
        for row in &self.rows {
            for Writes { cluster, by } in &row.writes {
                for (who, label) in [(Who::Ours, "ours"), (Who::Floor, "floor")] {
                    let Some(counts) = by.get(&who) else { continue };
                    let all = row.per_change(counts.values().sum());
                    let each: Vec<_> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
                    let title = row.title();
                    writeln!(f, "{title:<22} {cluster:<10} {label:<6} {all:>12.2}  {}", each.join(", "))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let samples = BTreeMap::from([(Who::Ours, vec![3.0, 4.5, 6.0]), (Who::Floor, vec![2.5, 3.0, 5.0])]);
        let mut change = Row::new(Scenario::Change, 8, samples);
        change.changes = 3;
        change.hub = Some(Usage { rss_mb: 31.25, peak_mb: 40.0, cpu_seconds: 1.5 });
        let puts = |count| BTreeMap::from([("update configmaps".to_owned(), count)]);
        change.writes = vec![Writes {
            cluster: "member1".to_owned(),
            by: BTreeMap::from([(Who::Ours, puts(6)), (Who::Floor, puts(3))]),
        }];
        let half = Row::new(Scenario::Policy, 1000, BTreeMap::from([(Who::Floor, vec![5120.0, 4980.0])]));
        Report {
            hub: "hub".to_owned(),
            members: vec!["member1".to_owned(), "member2".to_owned()],
            rows: vec![change, half],
            unfinished: Some("the hub is gone".to_owned()),
        }
    }

    #[test]
    fn a_person_reads_a_table() {
        let want = "\
ConfigMaps from hub to member1, member2, milliseconds

                                    ours               floor          ours / floor
scenario                    p50      p99        p50      p99      p50    p99 paired
one template changes       4.50     6.00       3.00     5.00     1.50   1.20   1.20
policy for 1000               -        -       4980     5120        -      -      -

Writes                 cluster    by     per template  in all
one template changes   member1    ours           2.00  6 update configmaps
one template changes   member1    floor          1.00  3 update configmaps

The hub, at the end of   RSS MB  peak MB    CPU s
one template changes       31.2     40.0     1.50

UNFINISHED: the hub is gone
";
        assert_eq!(report().to_string(), want);
    }

    #[test]
    fn a_program_reads_it_back() {
        let text = serde_json::to_string(&report()).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report());
    }
}
