//! `create plans`: what it says would change is what then changes. Random manifests and removals, drawn from a fixed seed, are asked
//! about first and then applied for real to a hub and members in this process.

mod draw;
mod seen;

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use atoll_api::explain::plan::PlanAnswer;
use atoll_hub::explain::{Asked, Verb};
use serde_json::{Value, json};

use crate::world::{Outcome, World};
use draw::{Draw, Step};
use seen::{Predicted, Seen};

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Asks the leader.
async fn plan(world: &World, request: Value) -> anyhow::Result<PlanAnswer> {
    let asked = Asked {
        verb: Verb::Create,
        resource: "plans".to_owned(),
        namespace: None,
        name: None,
        query: Vec::new(),
        body: Some(request),
    };
    let give_up = tokio::time::Instant::now() + PATIENCE;
    loop {
        let answered = world.questions.ask(asked.clone()).await;
        match answered.status {
            200 => return Ok(serde_json::from_value(answered.body)?),
            503 if tokio::time::Instant::now() < give_up => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await; // it has just started
            }
            _ => anyhow::bail!("{:#}", answered.body),
        }
    }
}

/// The request for a step, as `atoll plan` makes it: objects as the API would have them, and what is there of their Services.
async fn request(world: &World, step: &Step) -> anyhow::Result<Option<Value>> {
    let (mut changes, mut current) = (Vec::new(), Vec::new());
    for change in step {
        let cluster = world.at(change.member);
        let object = match change.delete {
            true => change.object.clone(),
            // What the API refuses is no step.
            false => match cluster.would_apply(&change.object).await {
                Ok(object) => object,
                Err(_) => return Ok(None),
            },
        };
        let name = change.member.map(|number| world.members[number].name.clone());
        let action = if change.delete { "Delete" } else { "Apply" };
        changes.push(json!({"cluster": name, "action": action, "object": object}));
        for object in cluster.belongs_to(&change.object).await? {
            current.push(json!({"cluster": name, "object": object}));
        }
    }
    Ok(Some(json!({"changes": changes, "current": current})))
}

/// Does it.
async fn carry_out(world: &World, step: &Step) -> Outcome {
    for change in step {
        let cluster = world.at(change.member);
        if !change.delete {
            cluster.apply(change.object.clone()).await?;
            continue;
        }
        if !cluster.get(&change.object).await?.is_null() {
            cluster.delete(&change.object).await?;
        }
        if change.object["kind"] == "Service" {
            for slice in cluster.slices_of(&change.object).await? {
                cluster.delete(&slice).await?; // as a cluster's controllers do
            }
        }
    }
    Ok(())
}

/// A step is asked about, done, and compared. Whether the API took it.
async fn step(world: &World, number: usize, step: &Step, before: &Seen) -> anyhow::Result<Option<Seen>> {
    if step.iter().any(|change| !change.delete && change.object["kind"] == "ServiceExport") {
        next_second().await; // exports of one second have no order that could be known before
    }
    let Some(asked) = request(world, step).await? else { return Ok(None) };
    let answer = plan(world, asked).await?;
    let predicted = Predicted::of(&answer);
    carry_out(world, step).await?;
    let give_up = tokio::time::Instant::now() + PATIENCE;
    loop {
        let now = Seen::of(world).await?;
        let found = now.since(before);
        // What the hub has not heard of yet would still change something: then the step is not over.
        let again = request(world, step).await?.context("what was taken once is refused")?;
        let over = !plan(world, again).await?.summary.changes();
        if over && found == predicted && now.is_settled() {
            return Ok(Some(now));
        }
        ensure!(
            tokio::time::Instant::now() < give_up,
            "step {number}: {step:#?}\nover: {over}\npredicted and not so: {:#?}\nso and not predicted: {:#?}",
            predicted.without(&found),
            found.without(&predicted),
        );
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

async fn next_second() {
    let start = jiff::Timestamp::now().as_second();
    while jiff::Timestamp::now().as_second() == start {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_predicted_is_what_happens() -> Outcome {
    let steps = std::env::var("ATOLL_PLAN_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(200);
    let mut world = World::start(3).await?;
    let mut draw = Draw::new(17);
    let mut before = Seen::of(&world).await?;
    let (mut done, mut changed, mut drawn) = (0, 0, 0);
    while done < steps {
        drawn += 1;
        ensure!(drawn < 4 * steps, "most steps are refused");
        let next = draw.step(world.members.len());
        before = Seen::of(&world).await?;
        if let Some(after) = step(&world, drawn, &next, &before).await? {
            changed += usize::from(after != before);
            (before, done) = (after, done + 1);
        }
    }
    ensure!(changed * 4 > steps, "only {changed} of {steps} steps changed anything");
    // A member that leaves.
    let gone = world.members[0].name.clone();
    let answer = plan(&world, json!({"without": [gone]})).await?;
    let removed: BTreeSet<_> = answer.clusters.iter().map(|one| one.cluster.clone()).collect();
    ensure!(before.is_empty_in(&gone) || removed.contains(&gone), "{removed:?}");
    world.halt().await
}

fn change(object: &Value) -> Value {
    json!({"changes": [{"action": "Apply", "object": object}]})
}

/// What a plan says of templates: `object: +member`.
fn placements(answer: &PlanAnswer) -> Vec<String> {
    let mut lines = Vec::new();
    for one in &answer.placements {
        let clusters: Vec<String> =
            one.clusters.iter().map(|copy| format!("{}{}", copy.change.mark(), copy.cluster)).collect();
        lines.push(format!("{}: {}", one.object, clusters.join(" ")));
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_bring_templates_where_they_were_planned_and_what_follows_is_planned_too() -> Outcome {
    let mut world = World::start(3).await?;
    let hub = &world.hub;
    hub.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    let at = |kind: &str, api: &str, name: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}});
    let mut service = at("Service", "v1", "web");
    service["spec"] = json!({"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]});
    let export = at("ServiceExport", "multicluster.x-k8s.io/v1beta1", "web");
    let service = hub.apply(service).await?;
    let export = hub.apply(export).await?;
    let policy = |clusters: &[&str]| {
        let mut policy = at("PropagationPolicy", "policy.karmada.io/v1alpha1", "web");
        policy["spec"] = json!({
            "resourceSelectors": [{"apiVersion": "v1", "kind": "Service", "name": "web"},
                {"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "name": "web"}],
            "placement": {"clusterAffinity": {"clusterNames": clusters}}});
        policy
    };
    let mut before = Seen::of(&world).await?;
    for (clusters, want) in
        [(&["member1"][..], "+member1"), (&["member1", "member2"], "+member2"), (&["member2"], "-member1")]
    {
        let policy = world.hub.would_apply(&policy(clusters)).await?;
        let mut request = change(&policy);
        request["current"] = json!([{"object": service}, {"object": export}]);
        let answer = plan(&world, request).await?;
        assert_eq!(
            placements(&answer),
            [format!("ServiceExport shop/web: {want}"), format!("Service shop/web: {want}")]
        );
        let predicted = Predicted::of(&answer);
        ensure!(predicted != Predicted::default(), "an export comes or goes");
        let mut policy = policy;
        for field in ["managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"] {
            policy["metadata"].as_object_mut().context("no metadata")?.remove(field);
        }
        world.hub.apply(policy).await?;
        let give_up = tokio::time::Instant::now() + PATIENCE;
        before = loop {
            let now = Seen::of(&world).await?;
            let found = now.since(&before);
            if found == predicted {
                break now;
            }
            ensure!(
                tokio::time::Instant::now() < give_up,
                "{clusters:?}\npredicted and not so: {:#?}\nso and not predicted: {:#?}",
                predicted.without(&found),
                found.without(&predicted)
            );
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
    }
    let gone = plan(&world, json!({"without": ["member2"]})).await?;
    assert_eq!(placements(&gone), ["ServiceExport shop/web: -member2", "Service shop/web: -member2"]);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bank"}});
    let answer = plan(&world, change(&namespace)).await?;
    let made: Vec<String> = answer
        .clusters
        .iter()
        .flat_map(|one| {
            one.objects.iter().map(move |object| format!("{} {} {}", one.cluster, object.kind, object.name))
        })
        .collect();
    assert_eq!(made, ["member1 Namespace bank", "member2 Namespace bank", "member3 Namespace bank"]);
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    assert!(!plan(&world, change(&shop)).await?.summary.changes(), "every member has it");
    world.halt().await
}
