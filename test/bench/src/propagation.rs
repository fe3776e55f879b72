//! The run: sets the stage, goes through the scenarios with everybody in turn, and clears up.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_api::types::{ServiceExport, ServiceImport};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, ListParams, PostParams};

use crate::environment::{Cluster, Environment};
use crate::error::{Doing, Error};
use crate::floor::{Copier, Floor};
use crate::options::{Options, Path, Who};
use crate::report::{Report, Row};
use crate::requests::{Own, Recordings};
use crate::scenario;
use crate::schedule::{Step, steps};
use crate::stage::{HubSide, Member, Stage};
use crate::stand_in;
use crate::sweep;
use crate::usage::Usage;
use crate::watchers::Watchers;

/// Measures how fast changes propagate. What it made is deleted in the end, also when something fails.
pub async fn propagation(options: Options, environment: Environment) -> Result<Report, Error> {
    let mut clusters = environment.importers.clone();
    if clusters.is_empty() {
        let what = "there is no cluster to propagate to".to_owned();
        return Err(Error::Refused { what, hint: "give at least one importer".to_owned() });
    }
    clusters.push(environment.source.clone());
    let hub = hub_of(&options, &environment).await?;
    let members = connect(&clusters).await?;
    if let Some(hub) = &hub {
        sweep::are_members(&hub.client, clusters.iter().map(|cluster| cluster.name.as_str())).await?;
        sweep::namespaces(hub, &options.subjects).await?;
        sweep::sweep_hub(hub, &options.subjects).await?;
        stand_in::install(&hub.client).await?;
    }
    for member in &members {
        knows_the_api(member).await?;
        sweep::namespaces(member, &options.subjects).await?;
        sweep::sweep(member, &options.subjects).await?;
    }
    let result = measured(&options, &environment, &clusters).await;
    (environment.progress)("clearing up");
    if let Some(hub) = &hub {
        let cleared = sweep::sweep_hub(hub, &options.subjects).await;
        let cleared = cleared.and(stand_in::remove(&hub.client).await);
        if let Err(error) = cleared.and(sweep::drop_namespaces(hub, &options.subjects).await) {
            (environment.progress)(&format!("could not clear up: {error}"));
        }
    }
    for member in &members {
        let cleared = sweep::sweep(member, &options.subjects).await;
        let dropped = sweep::drop_namespaces(member, &options.subjects).await;
        if let Err(error) = cleared.and(dropped) {
            (environment.progress)(&format!("could not clear up: {error}"));
        }
    }
    result
}

/// The hub's API, where the intent lies there.
async fn hub_of(options: &Options, environment: &Environment) -> Result<Option<Member>, Error> {
    match (options.path, &environment.hub_api) {
        (Path::Export, _) => Ok(None),
        (Path::Mcs, Some(hub)) => Ok(Some(Member { name: hub.name.clone(), client: hub.client().await? })),
        (Path::Mcs, None) => Err(Error::Refused {
            what: "MultiClusterServices are made in the hub's API, and it is not named".to_owned(),
            hint: "give the kubeconfig of the hub's API".to_owned(),
        }),
    }
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
    let (source_of, importers) = (&environment.source, &environment.importers);
    let hub = hub_of(options, environment).await?;
    let floor = match (plays(Who::Floor), environment.hub_api.as_ref().filter(|_| hub.is_some())) {
        (false, _) => None,
        (true, None) => Some(Floor::start(source_of, importers).await?),
        (true, Some(hub)) => Some(Floor::of_mcs(hub, source_of, importers).await?),
    };
    let mut users = users(&connect(clusters).await?, false).await?;
    if let Some(hub) = &hub {
        users.extend(self::users(std::slice::from_ref(hub), true).await?);
    }
    let mut stage = Stage {
        network: options.network,
        hub: hub.map(|hub| HubSide {
            client: hub.client,
            provider: source_of.name.clone(),
            consumers: importers.iter().map(|cluster| cluster.name.clone()).collect(),
        }),
        watchers: Watchers::on(&watched.client().await?, options.path).await?,
        floor,
        _copier: match plays(Who::Copier) {
            true => Some(Copier::start(&environment.source, watched).await?),
            false => None,
        },
        members: connect(clusters).await?,
        questions: match &environment.questions {
            Some(cluster) => Some(cluster.client().await?),
            None => None,
        },
        source,
        revisions: BTreeMap::new(),
    };
    if plays(Who::Ours) {
        stage.settle(Who::Ours).await?; // What an earlier run left may still be on its way out.
    }
    let mut report = Report {
        path: options.path,
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
    users: &BTreeMap<String, Own>,
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
pub(crate) async fn users(members: &[Member], hub: bool) -> Result<BTreeMap<String, Own>, Error> {
    let mut users = BTreeMap::new();
    for member in members {
        let api: Api<SelfSubjectReview> = Api::all(member.client.clone());
        let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await;
        let review = review.doing(|| format!("ask {} who we are", member.name))?;
        let user = review.status.and_then(|status| status.user_info?.username);
        users.insert(member.name.clone(), Own { user: user.unwrap_or_default(), hub });
    }
    Ok(users)
}
