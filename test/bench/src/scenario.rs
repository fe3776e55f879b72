//! The scenarios, each for everybody in turn within every round.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::asking::Asker;
use crate::environment::Hub;
use crate::error::Error;
use crate::options::{Options, Scenario, Who};
use crate::report::{Ending, Restart, Row};
use crate::schedule::{Gaps, ROUND, Step, order};
use crate::stage::{PATIENCE, Stage};

type Samples = BTreeMap<Who, Vec<f64>>;

/// Brings about what a step starts from; nothing of it is measured.
pub(crate) async fn prepare(stage: &mut Stage, options: &Options, step: Step) -> Result<(), Error> {
    for who in &options.subjects {
        match step {
            // A cold sync starts from nothing, for everybody.
            Step::Cold(_) => stage.shrink(*who, 0).await?,
            Step::Burst(size) => drop(stage.grow(*who, size).await?),
            Step::Sequential { services, .. } => {
                // The load is the product's; the others feel it through the API servers.
                let wanted = if *who == Who::Ours { services } else { ROUND };
                stage.grow(*who, wanted).await?;
            }
            Step::Restart(_) => {}
        }
    }
    Ok(())
}

/// Takes a step's samples.
pub(crate) async fn measure(stage: &mut Stage, options: &Options, step: Step) -> Result<Row, Error> {
    let (scenario, size, samples) = match step {
        Step::Sequential { services, scenario: Scenario::Asked } => {
            return asked(stage, options, services).await;
        }
        Step::Sequential { services, scenario } => (scenario, services, sequential(stage, options).await?),
        Step::Burst(size) => (Scenario::Burst, size, bursts(stage, options, size).await?),
        Step::Cold(size) => (Scenario::Cold, size, colds(stage, options, size).await?),
        Step::Restart(size) => (Scenario::Restart, size, Samples::new()),
    };
    Ok(Row::new(scenario, size, samples))
}

/// How many changes one sample of a step stands for.
pub(crate) fn changes_per_sample(step: Step) -> usize {
    match step {
        Step::Sequential { .. } | Step::Restart(_) => 1,
        Step::Burst(size) | Step::Cold(size) => size,
    }
}

/// One change at a time: from the source's acknowledgement to the importer's watch event.
async fn sequential(stage: &mut Stage, options: &Options) -> Result<Samples, Error> {
    let mut samples = Samples::new();
    let mut gaps = Gaps::new(options.seed);
    for round in 0..options.samples {
        for who in order(&options.subjects, round) {
            tokio::time::sleep(gaps.next().unwrap_or_default()).await;
            stage.watchers.forget();
            let (awaited, acknowledged) = stage.change(who, std::iter::once(round % ROUND)).await?;
            let seen = stage.watchers.wait_for(&format!("a change of {who:?}"), awaited, PATIENCE).await?;
            samples.entry(who).or_default().push(between(acknowledged, seen));
        }
    }
    Ok(samples)
}

/// One change at a time, while the hub is asked for explanations.
async fn asked(stage: &mut Stage, options: &Options, services: usize) -> Result<Row, Error> {
    let Some(client) = stage.questions.clone() else {
        return Err(Error::Refused {
            what: "there is no API to ask the hub's questions at".to_owned(),
            hint: "use a hub with an API of its own: --own-api".to_owned(),
        });
    };
    let asker = Asker::start(client, services).await?;
    let samples = sequential(stage, options).await;
    let asked = asker.stop().await;
    Ok(Row { asked: Some(asked), ..Row::new(Scenario::Asked, services, samples?) })
}

/// Many changes at once: from the first PUT to the last watch event.
async fn bursts(stage: &mut Stage, options: &Options, size: usize) -> Result<Samples, Error> {
    let mut samples = Samples::new();
    for round in 0..options.rounds {
        for who in order(&options.subjects, round) {
            stage.watchers.forget();
            let from = Instant::now();
            let (awaited, _) = stage.change(who, 0..size).await?;
            let seen = stage.watchers.wait_for(&format!("a burst of {who:?}"), awaited, PATIENCE).await?;
            samples.entry(who).or_default().push(between(from, seen));
            stage.settle(who).await?;
        }
    }
    Ok(samples)
}

/// Services from nothing: from the first export to the last slice and ServiceImport.
async fn colds(stage: &mut Stage, options: &Options, size: usize) -> Result<Samples, Error> {
    let mut samples = Samples::new();
    for round in 0..options.rounds {
        for who in order(&options.subjects, round) {
            stage.shrink(who, 0).await?;
            let took = stage.grow(who, size).await?.unwrap_or_default();
            samples.entry(who).or_default().push(took.as_secs_f64() * 1e3);
        }
    }
    Ok(samples)
}

/// The hub ends, a slice changes, the hub starts: when is the change in the importer?
pub(crate) async fn restart(
    stage: &mut Stage,
    hub: &dyn Hub,
    services: usize,
    rounds: usize,
) -> Result<Vec<Restart>, Error> {
    // A new hub reads whatever is there: what others left would count as ours.
    for (who, count) in [(Who::Floor, 0), (Who::Copier, 0), (Who::Ours, services)] {
        stage.shrink(who, count).await?;
    }
    stage.grow(Who::Ours, services).await?;
    let hook = |action: &'static str| move |why: String| Error::Hook { action, why };
    let mut restarts = Vec::new();
    for round in 0..rounds {
        for ending in [Ending::Graceful, Ending::Kill] {
            stage.watchers.forget();
            let signal = Instant::now();
            match ending {
                Ending::Graceful => hub.stop().await.map_err(hook("stop the hub"))?,
                Ending::Kill => hub.kill().await.map_err(hook("kill the hub"))?,
            }
            let (awaited, _) = stage.change(Who::Ours, std::iter::once(round % ROUND)).await?;
            let start = Instant::now();
            hub.start().await.map_err(hook("start the hub"))?;
            let seen = stage.watchers.wait_for("the first change after a restart", awaited, PATIENCE).await?;
            let (from_signal, from_start) = (between(signal, seen), between(start, seen));
            restarts.push(Restart { ending, services, from_signal, from_start });
            stage.settle(Who::Ours).await?;
        }
    }
    Ok(restarts)
}

/// Milliseconds; less than nothing when the event overtook the answer.
pub(crate) fn between(from: Instant, to: Instant) -> f64 {
    let milliseconds = |span: Duration| span.as_secs_f64() * 1e3;
    to.checked_duration_since(from).map_or_else(|| -milliseconds(from.duration_since(to)), milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_overtake_the_answer() {
        let now = Instant::now();
        let later = now + Duration::from_millis(5);
        assert!((between(now, later) - 5.0).abs() < 1e-9);
        assert!((between(later, now) + 5.0).abs() < 1e-9);
    }
}
