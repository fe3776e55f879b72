//! What becomes of copies of templates in a cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::ensure;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_engine::placement::policy::ConflictResolution::{self, Abort, Overwrite};
use atoll_link::{CopyState, Order, Up, WhyNot};
use atoll_member::copies::{self, Copies};
use atoll_member::{Permit, Uplink};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::clusters::{Cluster, Clusters, until};
use crate::hub::identity;

type Outcome = anyhow::Result<()>;

/// A member that keeps copies, and what it has said of them.
struct Keeper {
    copies: Copies,
    said: Arc<Mutex<BTreeMap<ObjectKey, CopyState>>>,
}

impl Keeper {
    fn start(cluster: &Cluster) -> anyhow::Result<Self> {
        let (tell, mut told) = mpsc::unbounded_channel();
        let up = Uplink::new(move |up| drop(tell.send(up)));
        let copies = copies::spawn(&identity(cluster.name())?, cluster.clients(), Permit::forever(), up);
        let said: Arc<Mutex<BTreeMap<ObjectKey, CopyState>>> = Arc::default();
        let notes = Arc::clone(&said);
        tokio::spawn(async move {
            while let Some(Up::Copy(report)) = told.recv().await {
                notes.lock().unwrap().insert(report.key, report.state);
            }
        });
        Ok(Self { copies, said })
    }

    fn hold(&self, object: &Value, conflict: ConflictResolution) -> ObjectKey {
        let key = ObjectKey::of(object).unwrap();
        self.said.lock().unwrap().remove(&key);
        self.copies.order(key.clone(), Order::Hold { object: Arc::new(object.clone()), conflict });
        key
    }

    fn order(&self, key: &ObjectKey, order: Order) {
        self.said.lock().unwrap().remove(key);
        self.copies.order(key.clone(), order);
    }

    async fn says(&self, key: &ObjectKey, is: impl Fn(&CopyState) -> bool) -> anyhow::Result<CopyState> {
        until(&format!("the right word about {key}"), async || {
            let said = self.said.lock().unwrap().get(key).cloned();
            said.clone().filter(&is).ok_or_else(|| format!("{said:?}"))
        })
        .await
    }

    async fn applied(&self, key: &ObjectKey) -> anyhow::Result<CopyState> {
        self.says(key, |state| matches!(state, CopyState::Applied { .. })).await
    }
}

fn api(cluster: &Cluster, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
    let resource = ApiResource::from_gvk(&gvk);
    if namespace.is_empty() {
        Api::all_with(cluster.client(), &resource)
    } else {
        Api::namespaced_with(cluster.client(), namespace, &resource)
    }
}

async fn there(cluster: &Cluster, key: &ObjectKey) -> anyhow::Result<Option<Value>> {
    let found = api(cluster, &key.kind, &key.namespace).get_opt(&key.name).await?;
    Ok(found.map(serde_json::to_value).transpose()?)
}

async fn create(cluster: &Cluster, object: Value) -> anyhow::Result<ObjectKey> {
    let key = ObjectKey::of(&object).unwrap();
    let made = serde_json::from_value(object)?;
    api(cluster, &key.kind, &key.namespace).create(&PostParams::default(), &made).await?;
    Ok(key)
}

async fn patch(cluster: &Cluster, key: &ObjectKey, patch: Value) -> Outcome {
    let params = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
    api(cluster, &key.kind, &key.namespace).patch(&key.name, &params, &Patch::Merge(patch)).await?;
    Ok(())
}

async fn becomes(
    cluster: &Cluster,
    key: &ObjectKey,
    what: &str,
    is: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    until(what, async || {
        let found = there(cluster, key).await.map_err(|error| error.to_string())?.unwrap_or_default();
        if is(&found) { Ok(found) } else { Err(found.to_string()) }
    })
    .await
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}, "data": data})
}

#[tokio::test]
async fn a_config_map_that_is_ours_alone_is_changed_by_one_write() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let keeper = Keeper::start(one)?;
    let key = keeper.hold(&config_map(json!({"a": "1", "b": "2"})), Abort);
    keeper.applied(&key).await?;
    let recorder = one.recorder();
    for a in ["2", "3"] {
        keeper.hold(&config_map(json!({"a": a})), Abort);
        keeper.applied(&key).await?;
    }
    let writes = recorder.requests().into_iter().map(|noted| noted.verb);
    let writes: Vec<_> = writes.filter(|verb| !["get", "list", "watch"].contains(verb)).collect();
    ensure!(writes == ["update", "update"], "{:?}", recorder.requests());
    let found = there(one, &key).await?.unwrap();
    ensure!(found["data"] == json!({"a": "3"}), "what the template no longer says is gone: {found}");
    // From when another field manager has set a field of it, theirs stays.
    patch(one, &key, json!({"data": {"own": "kept"}})).await?;
    keeper.hold(&config_map(json!({"a": "4"})), Abort);
    keeper.applied(&key).await?;
    let found = there(one, &key).await?.unwrap();
    ensure!(found["data"] == json!({"a": "4", "own": "kept"}), "{found}");
    keeper.copies.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_copy_is_made_followed_repaired_and_taken_away() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let keeper = Keeper::start(one)?;
    let recorder = one.recorder();
    let key = keeper.hold(&config_map(json!({"a": "1", "b": "2"})), Abort);
    keeper.applied(&key).await?;
    let writes = || {
        recorder
            .requests()
            .into_iter()
            .filter(|noted| !["get", "list", "watch"].contains(&noted.verb))
            .count()
    };
    ensure!(writes() == 1, "one write makes it: {:?}", recorder.requests());
    // Another field manager's own key stays, ours comes back.
    patch(one, &key, json!({"data": {"a": "changed", "own": "kept"}})).await?;
    becomes(one, &key, "drift is repaired", |found| {
        found["data"] == json!({"a": "1", "b": "2", "own": "kept"})
    })
    .await?;
    keeper.hold(&config_map(json!({"a": "2"})), Abort);
    keeper.applied(&key).await?;
    let found = there(one, &key).await?.unwrap();
    ensure!(
        found["data"] == json!({"a": "2", "own": "kept"}),
        "what the template no longer says is gone: {found}"
    );
    // A user deletes it: it comes back.
    api(one, &key.kind, &key.namespace).delete(&key.name, &DeleteParams::default()).await?;
    becomes(one, &key, "it is there again", |found| found["data"] == json!({"a": "2"})).await?;
    keeper.order(&key, Order::Drop);
    keeper.says(&key, |state| *state == CopyState::Gone).await?;
    ensure!(there(one, &key).await?.is_none());
    keeper.copies.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_restarted_member_knows_its_copies_and_writes_nothing_new() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let keeper = Keeper::start(one)?;
    let settings = config_map(json!({"a": "1"}));
    let key = keeper.hold(&settings, Abort);
    keeper.applied(&key).await?;
    keeper.copies.stop().await;
    let before = there(one, &key).await?.unwrap();
    let keeper = Keeper::start(one)?;
    keeper.hold(&settings, Abort);
    keeper.applied(&key).await?;
    let after = there(one, &key).await?.unwrap();
    ensure!(before["data"] == after["data"] && before["metadata"]["uid"] == after["metadata"]["uid"]);
    keeper.copies.stop().await;
    let keeper = Keeper::start(one)?;
    keeper.order(&key, Order::Drop);
    keeper.says(&key, |state| *state == CopyState::Gone).await?;
    ensure!(there(one, &key).await?.is_none(), "also one that it has not made in this life");
    Ok(())
}

#[tokio::test]
async fn what_is_not_ours_is_left_alone_unless_it_is_to_be_taken_over() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let key = create(one, config_map(json!({"theirs": "1"}))).await?;
    let keeper = Keeper::start(one)?;
    keeper.hold(&config_map(json!({"ours": "1"})), Abort);
    keeper.says(&key, |state| *state == CopyState::NotApplied(WhyNot::Foreign)).await?;
    ensure!(there(one, &key).await?.unwrap()["data"] == json!({"theirs": "1"}));
    keeper.order(&key, Order::Drop);
    keeper.says(&key, |state| *state == CopyState::Gone).await?;
    ensure!(there(one, &key).await?.is_some(), "it is not ours");
    keeper.hold(&config_map(json!({"ours": "1"})), Overwrite);
    keeper.applied(&key).await?;
    ensure!(there(one, &key).await?.unwrap()["data"] == json!({"theirs": "1", "ours": "1"}));
    keeper.order(&key, Order::Drop);
    keeper.says(&key, |state| *state == CopyState::Gone).await?;
    let found = there(one, &key).await?.unwrap();
    ensure!(found["metadata"]["labels"].get("atoll.dev/propagated-by").is_none(), "it is not ours: {found}");
    Ok(())
}

#[tokio::test]
async fn a_copy_waits_for_its_namespace_and_a_custom_resource_for_its_crd() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let keeper = Keeper::start(one)?;
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "shop"}, "spec": {"size": 1}});
    let key = keeper.hold(&thing, Abort);
    keeper.says(&key, |state| matches!(state, CopyState::NotApplied(WhyNot::KindAbsent { .. }))).await?;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let crd = keeper.hold(&crd, Abort);
    keeper.applied(&crd).await?;
    keeper
        .says(&key, |state| *state == CopyState::NotApplied(WhyNot::NamespaceAbsent("shop".to_owned())))
        .await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let shop = ObjectKey::of(&namespace).unwrap();
    keeper.order(&shop, Order::Ensure(Arc::new(namespace)));
    keeper.applied(&key).await?;
    ensure!(there(one, &key).await?.unwrap()["spec"]["size"] == 1);
    Ok(())
}

#[tokio::test]
async fn what_a_member_refuses_is_said_once_and_tried_again_when_it_changes() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let keeper = Keeper::start(one)?;
    let recorder = one.recorder();
    let service = |port: i64| {
        json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"}, "spec": {"ports": [{"port": port}]}})
    };
    let key = keeper.hold(&service(99999), Abort);
    let said = keeper.says(&key, |state| matches!(state, CopyState::NotApplied(WhyNot::Rejected(_)))).await?;
    ensure!(format!("{said:?}").contains("port"), "{said:?}");
    keeper.hold(&service(80), Abort);
    keeper.applied(&key).await?;
    let writes = recorder.requests().into_iter().filter(|noted| noted.verb == "create").count();
    ensure!(writes == 1, "those that were refused are not noted: {writes}");
    let found = there(one, &key).await?.unwrap();
    // The cluster's own: it gave the address, and keeps it.
    let address = found["spec"]["clusterIP"].clone();
    keeper.hold(&service(81), Abort);
    keeper.applied(&key).await?;
    let found = there(one, &key).await?.unwrap();
    ensure!(found["spec"]["clusterIP"] == address && found["spec"]["ports"][0]["port"] == 81, "{found}");
    keeper.order(&key, Order::Release);
    keeper.says(&key, |state| *state == CopyState::Gone).await?;
    ensure!(there(one, &key).await?.is_some(), "it stays, and is managed no more");
    Ok(())
}

#[tokio::test]
async fn replicas_that_an_autoscaler_of_the_member_sees_to_are_its_own() -> Outcome {
    let lab = Clusters::start().await?;
    let one = lab.member(1);
    let keeper = Keeper::start(one)?;
    let web = |image: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": image}]}}}})
    };
    let key = keeper.hold(&web("web:1"), Abort);
    keeper.applied(&key).await?;
    let scale = async |who: &str, replicas: i64| {
        let params = PatchParams { field_manager: Some(who.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        api(one, &key.kind, &key.namespace).patch_scale(&key.name, &params, &patch).await
    };
    let image = |found: &Value| found["spec"]["template"]["spec"]["containers"][0]["image"].clone();

    // It is seen, and what the autoscaler said is held to from now on.
    scale("kube-controller-manager", 5).await?;
    becomes(one, &key, "both hold to five", |found| {
        let entries = found["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let holders = entries.iter().filter(|entry| !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null());
        found["spec"]["replicas"] == 5 && holders.count() == 2
    })
    .await?;
    // A change of something else comes, and it stays.
    keeper.hold(&web("web:2"), Abort);
    let copy = becomes(one, &key, "the new image comes", |found| image(found) == "web:2").await?;
    ensure!(copy["spec"]["replicas"] == 5, "{copy:#}");
    keeper.applied(&key).await?;

    // A person who scales is no autoscaler.
    scale("kubectl", 9).await?;
    becomes(one, &key, "drift is repaired", |found| found["spec"]["replicas"] == 2).await?;
    Ok(())
}
