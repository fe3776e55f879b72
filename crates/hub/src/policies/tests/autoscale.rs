//! Replicas under an autoscaler are the member's own.

use super::*;

/// Changes a template's label, and waits until a member's copy has it: what was ordered with it has then been done, too.
async fn touched(world: &World, template: &Value, mark: &str) -> anyhow::Result<Value> {
    let mut template = template.clone();
    template["metadata"]["labels"]["mark"] = mark.into();
    let key = world.hub.apply(&template).await?;
    let copy = world.member(1);
    copy.becomes(&key, "the mark comes", |found| found["metadata"]["labels"]["mark"] == mark).await
}

#[tokio::test]
async fn replicas_that_a_propagated_autoscaler_sees_to_stay_as_they_are_in_the_members_that_have_it()
-> Outcome {
    let mut world = World::start(2).await?;
    let web = deployment(2);
    let key = world.hub.apply(&web).await?;
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "serve", "namespace": "default"},
        "spec": {"maxReplicas": 9, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"}}});
    let autoscaler_key = world.hub.apply(&autoscaler).await?;
    let both = to(&["member1", "member2"]);
    let selector = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    world.hub.apply(&policy("PropagationPolicy", "web", selector, both)).await?;
    let selector = json!([{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}]);
    world.hub.apply(&policy("PropagationPolicy", "autoscaler", selector, to(&["member1"]))).await?;
    world.member(1).has(&autoscaler_key).await?;
    let retained =
        |found: &Value| found["metadata"]["labels"]["resourcetemplate.karmada.io/retain-replicas"] == "true";
    world.member(1).becomes(&key, "it is marked", retained).await?;

    // Where the autoscaler is, its word counts; where it is not, the template's.
    let scale = async |number: usize| {
        let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"spec": {"replicas": 7}}));
        world.member(number).of(&key).await?.patch(&key.name, &params, &patch).await?;
        anyhow::Ok(())
    };
    scale(1).await?;
    scale(2).await?;
    world.member(2).becomes(&key, "drift is repaired", |found| found["spec"]["replicas"] == 2).await?;
    // Seen, and held to: only then does a later order know of it.
    world
        .member(1)
        .becomes(&key, "both hold to seven", |found| {
            let entries = found["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            let holders = entries.iter().filter(|entry| !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null());
            found["spec"]["replicas"] == 7 && holders.count() == 2
        })
        .await?;
    let copy = touched(&world, &web, "one").await?;
    ensure!(copy["spec"]["replicas"] == 7, "{copy:#}");
    ensure!(!retained(&world.member(2).get(&key).await?), "the other member has no autoscaler");

    // A hub that starts anew reads templates one kind after the other: it does not take the autoscaler for gone.
    world.restart().await;
    let copy = touched(&world, &web, "two").await?;
    ensure!(copy["spec"]["replicas"] == 7, "{copy:#}");

    // Without it the template's word counts again.
    world.hub.delete(&autoscaler_key).await?;
    world
        .member(1)
        .becomes(&key, "replicas follow the template", |found| {
            found["spec"]["replicas"] == 2 && !retained(found)
        })
        .await?;
    Ok(())
}
