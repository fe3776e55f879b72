//! The recorder tells which requests an API server got, and who made them.

use crate::harness::{Outcome, Suite};
use anyhow::ensure;
use atoll_lab::Lab;
use atoll_lab::audit::Recorder;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;

pub(crate) fn tests(suite: &mut Suite) {
    suite.test("the_recorder_sees_a_delete_that_was_made_and_nothing_that_was_not", sees_a_delete);
    suite.test("a_failed_test_leaves_logs_and_objects_of_every_cluster", leaves_evidence);
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).expect("a constant ConfigMap is well-formed")
}

async fn sees_a_delete(lab: &Lab) -> Outcome {
    let cluster = lab.member(2);
    cluster.namespace("recorder").await?;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await?, "recorder");
    maps.create(&PostParams::default(), &config_map("kept")).await?;
    maps.create(&PostParams::default(), &config_map("dropped")).await?;

    let (here, elsewhere) = (Recorder::of(cluster)?, Recorder::of(lab.member(3))?);
    ensure!(here.of_verb("delete", "configmaps").await?.is_empty(), "nothing was deleted yet");
    maps.delete("dropped", &DeleteParams::default()).await?;

    let deletes = here.of_verb("delete", "configmaps").await?;
    ensure!(deletes.len() == 1, "{deletes:?}");
    let delete = &deletes[0];
    ensure!(delete.request.name == "dropped" && delete.request.namespace == "recorder", "{delete:?}");
    ensure!(delete.user == "admin" && delete.code == 200, "{delete:?}");
    ensure!(elsewhere.of_verb("delete", "configmaps").await?.is_empty(), "another cluster got nothing");
    Ok(())
}

async fn leaves_evidence(lab: &Lab) -> Outcome {
    let maps: Api<ConfigMap> = Api::namespaced(lab.member(3).client().await?, "default");
    maps.create(&PostParams::default(), &config_map("evidence-of-a-test")).await?;
    let folder = crate::harness::evidence_root().join("evidence");
    let _ = std::fs::remove_dir_all(&folder);
    lab.collect(&folder).await?;
    for cluster in lab.clusters() {
        let folder = folder.join(cluster.name());
        for component in cluster.components() {
            let log = folder.join("logs").join(format!("{}.log", component.name()));
            ensure!(log.is_file(), "{} is missing", log.display());
        }
        let network = std::fs::read_to_string(folder.join("network.txt"))?;
        ensure!(network.contains("eth0"), "{network}");
    }
    let objects = std::fs::read_to_string(folder.join("member3/objects.yaml"))?;
    ensure!(objects.contains("evidence-of-a-test"), "the objects of member3 are kept");
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
