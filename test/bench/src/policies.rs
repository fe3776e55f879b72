//! Measures how fast templates in the hub become copies in members, against a floor that makes the same writes.
//!
//! ```text
//!            hub                                                        members A and B
//!   POST ──▶ atoll-bench-ours   ──watch──▶ the product ── binding ─▶   copies, then the binding's status  ──┐
//!   POST ──▶ atoll-bench-floor  ──watch──▶ the floor   ── binding ─▶   copies, then the binding's status  ──┴─watch─▶ when?
//! ```
//!
//! Who comes first alternates with every round. A sample ends with the last copy in the last member. [`report::Writes`] says what each of
//! them wrote, by the audit logs: a ratio of different amounts of work would say nothing.

pub mod options;
pub mod report;
mod stage;
mod writes;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::environment::Environment;
use crate::error::Error;
use crate::floor::Floor;
use crate::options::Who;
use crate::propagation::users;
use crate::requests::Own;
use crate::schedule::{Gaps, ROUND, order};
use crate::stage::{Member, PATIENCE};
use crate::usage::Usage;
use crate::watchers::Watchers;
use crate::{stand_in, sweep};
use options::{Options, Scenario};
use report::{Report, Row};
use stage::Stage;
use writes::Recorded;

#[cfg(feature = "cli")]
pub use options::Flags;

/// Who takes part.
pub(crate) const SUBJECTS: [Who; 2] = [Who::Ours, Who::Floor];

/// Measures policies: `source` of the environment is the hub's API, `importers` are the members. What it made is deleted in the end,
/// also when something fails.
pub async fn policies(options: Options, environment: Environment) -> Result<Report, Error> {
    if environment.importers.is_empty() {
        let what = "there is no member to bring templates to".to_owned();
        return Err(Error::Refused { what, hint: "give at least one member".to_owned() });
    }
    let hub = Member { name: environment.source.name.clone(), client: environment.source.client().await? };
    let mut members = Vec::new();
    for cluster in &environment.importers {
        members.push(Member { name: cluster.name.clone(), client: cluster.client().await? });
    }
    sweep::are_members(&hub.client, members.iter().map(|member| member.name.as_str())).await?;
    for cluster in members.iter().chain([&hub]) {
        sweep::namespaces(cluster, &SUBJECTS).await?;
    }
    stage::sweep(&hub, &members).await?;
    stand_in::install(&hub.client).await?;
    let result = measured(&options, &environment, hub.client.clone(), &members).await;
    (environment.progress)("clearing up");
    let mut cleared = stage::sweep(&hub, &members).await.and(stand_in::remove(&hub.client).await);
    for cluster in members.iter().chain([&hub]) {
        cleared = cleared.and(sweep::drop_namespaces(cluster, &SUBJECTS).await);
    }
    if let Err(error) = cleared {
        (environment.progress)(&format!("could not clear up: {error}"));
    }
    result
}

async fn measured(
    options: &Options,
    environment: &Environment,
    hub: kube::Client,
    members: &[Member],
) -> Result<Report, Error> {
    let at_hub = Member { name: environment.source.name.clone(), client: hub.clone() };
    let mut own = users(members, false).await?;
    own.extend(users(std::slice::from_ref(&at_hub), true).await?);
    let mut stage = Stage {
        watchers: stage::watchers(members).await?,
        floor: Floor::of_policies(&environment.source, &environment.importers).await?,
        members: members.iter().map(|member| (member.name.clone(), member.client.clone())).collect(),
        hub,
        revisions: BTreeMap::new(),
    };
    let mut report = Report {
        hub: environment.source.name.clone(),
        members: members.iter().map(|member| member.name.clone()).collect(),
        rows: Vec::new(),
        unfinished: None,
    };
    // The product watches a kind from the first policy that selects it: nothing of that is a template's own cost.
    for who in SUBJECTS {
        stage.by_policy(who, 1).await?;
        stage.clear(who).await?;
    }
    for scenario in options.scenarios() {
        (environment.progress)(&format!("{scenario:?}"));
        match Box::pin(one_scenario(&mut stage, options, environment, &own, scenario)).await {
            Ok(row) => report.rows.push(row),
            Err(error) if report.rows.is_empty() => return Err(error),
            // What was measured is worth more than the error alone.
            Err(error) => {
                report.unfinished = Some(error.to_string());
                break;
            }
        }
    }
    Ok(report)
}

/// One scenario, for both in turn within every round. What is written is counted around each sample, and not between them.
async fn one_scenario(
    stage: &mut Stage,
    options: &Options,
    environment: &Environment,
    own: &BTreeMap<String, Own>,
    scenario: Scenario,
) -> Result<Row, Error> {
    let mut taken = Taken::default();
    match scenario {
        Scenario::Policy | Scenario::Templates => {
            for round in 0..options.rounds {
                for who in order(&SUBJECTS, round) {
                    let recorded = Recorded::start(environment)?;
                    let before = usage(environment);
                    let took = match scenario {
                        Scenario::Templates => stage.by_templates(who, options.objects).await?,
                        Scenario::Policy | Scenario::Change => stage.by_policy(who, options.objects).await?,
                    };
                    taken.samples.entry(who).or_default().push(took);
                    taken.used(who, before, usage(environment));
                    recorded.add_to(&mut taken.writes, own, who).await?;
                    stage.clear(who).await?;
                }
            }
        }
        Scenario::Change => {
            for who in SUBJECTS {
                stage.by_policy(who, ROUND).await?;
            }
            let recorded = Recorded::start(environment)?;
            let before = usage(environment);
            changes(stage, options, &mut taken.samples).await?;
            taken.used(Who::Ours, before, usage(environment));
            for who in SUBJECTS {
                recorded.add_to(&mut taken.writes, own, who).await?;
                stage.clear(who).await?;
            }
        }
    }
    let (size, changes) = match scenario {
        Scenario::Policy | Scenario::Templates => (options.objects, options.objects * options.rounds),
        Scenario::Change => (ROUND, options.samples),
    };
    let mut row = Row::new(scenario, size, taken.samples);
    (row.changes, row.hub) = (changes, taken.hub);
    row.writes = taken.writes.into_values().collect();
    Ok(row)
}

/// One template changes at a time: from the hub's acknowledgement to the last member's watch event.
async fn changes(
    stage: &mut Stage,
    options: &Options,
    samples: &mut BTreeMap<Who, Vec<f64>>,
) -> Result<(), Error> {
    let mut gaps = Gaps::new(options.seed);
    for round in 0..options.samples {
        for who in order(&SUBJECTS, round) {
            tokio::time::sleep(gaps.next().unwrap_or_default()).await;
            stage.watchers.forget();
            let awaited = stage.change(who, round % ROUND).await?;
            let acknowledged = Instant::now();
            let seen = stage.watchers.wait_for(&format!("a change of {who:?}"), awaited, PATIENCE).await?;
            samples.entry(who).or_default().push(crate::scenario::between(acknowledged, seen));
        }
    }
    Ok(())
}

/// What a scenario has brought so far.
#[derive(Default)]
struct Taken {
    samples: BTreeMap<Who, Vec<f64>>,
    writes: BTreeMap<String, report::Writes>,
    hub: Option<Usage>,
}

impl Taken {
    /// Adds what the hub used; of the floor's turn, nothing.
    fn used(&mut self, who: Who, before: Option<Usage>, after: Option<Usage>) {
        let (Some(before), Some(after), Who::Ours) = (before, after, who) else { return };
        let spent = after.since(before);
        let so_far = self.hub.map_or(0.0, |hub| hub.cpu_seconds);
        self.hub = Some(Usage { cpu_seconds: so_far + spent.cpu_seconds, ..spent });
    }
}

fn usage(environment: &Environment) -> Option<Usage> {
    Usage::of(environment.hub.as_ref()?.pid()?)
}

type CopyWatchers = Watchers<stage::CopySight>;
