//! The run: sets the stage, goes through the scenarios with everybody in turn, and clears up.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::types::{ServiceExport, ServiceImport};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, ListParams, PostParams};

use crate::environment::{Cluster, Environment};
use crate::error::{Doing, Error};
use crate::eyes::Eyes;
use crate::floor::{Copier, Floor};
use crate::options::{Options, Who};
use crate::report::{Report, Row};
use crate::requests::Recordings;
use crate::scenario;
use crate::schedule::{Step, steps};
use crate::stage::{Member, Stage};
use crate::sweep;
use crate::usage::Usage;

/// Measures how fast changes propagate. What it made is taken away in the end, also when something fails.
pub async fn propagation(options: Options, environment: Environment) -> Result<Report, Error> {
    let mut clusters = environment.importers.clone();
    if clusters.is_empty() {
        let what = "there is no cluster to propagate to".to_owned();
        return Err(Error::Refused { what, hint: "give at least one importer".to_owned() });
    }
    clusters.push(environment.source.clone());
    let members = connect(&clusters).await?;
    for member in &members {
        knows_the_api(member).await?;
        sweep::namespaces(member, &options.subjects).await?;
        sweep::sweep(member, &options.subjects).await?;
    }
    let result = measured(&options, &environment, &clusters).await;
    (environment.progress)("clearing up");
    for member in &members {
        let cleared = sweep::sweep(member, &options.subjects).await;
        let dropped = sweep::drop_namespaces(member, &options.subjects).await;
        if let Err(error) = cleared.and(dropped) {
            (environment.progress)(&format!("could not clear up: {error}"));
        }
    }
    result
}

async fn connect(clusters: &[Cluster]) -> Result<Vec<Member>, Error> {
    let mut members = Vec::new();
    for cluster in clusters {
        members.push(Member { name: cluster.name.clone(), client: cluster.client().await? });
    }
    Ok(members)
}

async fn knows_the_api(member: &Member) -> Result<(), Error> {
    let one = ListParams::default().limit(1);
    let exports = Api::<ServiceExport>::all(member.client.clone()).list_metadata(&one).await.map(drop);
    let imports = Api::<ServiceImport>::all(member.client.clone()).list_metadata(&one).await.map(drop);
    match exports.and(imports) {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Err(Error::NoCrds { cluster: member.name.clone() })
        }
        other => other.doing(|| format!("list ServiceExports and ServiceImports of {}", member.name)),
    }
}

async fn measured(
    options: &Options,
    environment: &Environment,
    clusters: &[Cluster],
) -> Result<Report, Error> {
    // Everybody has clients, and so connections, of their own.
    let source = environment.source.client().await?;
    let watched = clusters.first().unwrap_or(&environment.source);
    let plays = |who| options.subjects.contains(&who);
    let mut stage = Stage {
        network: options.network,
        eyes: Eyes::on(&watched.client().await?).await?,
        floor: match plays(Who::Floor) {
            true => Some(Floor::start(&environment.source, &environment.importers).await?),
            false => None,
        },
        _copier: match plays(Who::Copier) {
            true => Some(Copier::start(&environment.source, watched).await?),
            false => None,
        },
        members: connect(clusters).await?,
        source,
        revisions: BTreeMap::new(),
    };
    let users = users(&stage.members).await?;
    if plays(Who::Ours) {
        stage.settle(Who::Ours).await?; // What an earlier run left may still be on its way out.
    }
    let mut report = Report {
        source: environment.source.name.clone(),
        importers: environment.importers.iter().map(|cluster| cluster.name.clone()).collect(),
        rows: Vec::new(),
        restarts: Vec::new(),
        unfinished: None,
    };
    for step in steps(options) {
        (environment.progress)(&format!("{step:?}"));
        match Box::pin(one_step(&mut stage, options, environment, &users, step, &mut report)).await {
            Ok(()) => {}
            Err(error) if report.rows.is_empty() => return Err(error),
            // What was measured in half an hour is worth more than the error alone.
            Err(error) => {
                report.unfinished = Some(error.to_string());
                return Ok(report);
            }
        }
    }
    let subjects = options.subjects.iter().filter(|who| **who == Who::Ours);
    for who in subjects {
        stage.shrink(*who, 0).await?; // The product shall have withdrawn its own before its namespace goes.
    }
    Ok(report)
}

async fn one_step(
    stage: &mut Stage,
    options: &Options,
    environment: &Environment,
    users: &BTreeMap<String, String>,
    step: Step,
    report: &mut Report,
) -> Result<(), Error> {
    let ours = options.subjects.contains(&Who::Ours);
    if let Step::Restart(services) = step {
        if let Some(hub) = environment.hub.as_ref().filter(|_| ours) {
            report.restarts = scenario::restart(stage, hub.as_ref(), services, options.rounds).await?;
        }
        return Ok(());
    }
    scenario::prepare(stage, options, step).await?;
    let recordings = Recordings::start(environment)?;
    let before = usage(environment);
    let mut row: Row = Box::pin(scenario::measure(stage, options, step)).await?;
    row.hub = usage(environment).zip(before).map(|(after, before)| after.since(before));
    let changes = row.samples.get(&Who::Ours).map_or(0, Vec::len) * scenario::changes_per_sample(step);
    if ours {
        row.requests = recordings.count(users, changes, !matches!(step, Step::Cold(_))).await?;
    }
    report.rows.push(row);
    Ok(())
}

fn usage(environment: &Environment) -> Option<Usage> {
    let hub: &Arc<dyn crate::environment::Hub> = environment.hub.as_ref()?;
    Usage::of(hub.pid()?)
}

/// Who we are in each cluster: our own requests are not the product's.
async fn users(members: &[Member]) -> Result<BTreeMap<String, String>, Error> {
    let mut users = BTreeMap::new();
    for member in members {
        let api: Api<SelfSubjectReview> = Api::all(member.client.clone());
        let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
        let review = review.doing(|| format!("ask {} who we are", member.name))?;
        let user = review.status.and_then(|status| status.user_info?.username);
        users.insert(member.name.clone(), user.unwrap_or_default());
    }
    Ok(users)
}
