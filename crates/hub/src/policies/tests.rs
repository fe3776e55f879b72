//! Policies on Kubernetes APIs in this process: a hub and two members, no sockets.

mod attacks;
mod autoscale;
mod examples;

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_api::crds;
use atoll_api::names::{annotation, kind};
use atoll_engine::names::ClusterId;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_kubeapi::authn::{MASTERS, User};
use atoll_kubeapi::author::Stamping;
use atoll_kubeapi::store::Store;
use atoll_link::{Down, Identity, Up};
use atoll_member::events::Events;
use atoll_member::{Clients, Permit, Uplink, copies};
use kube::Client;
use kube::api::{
    Api, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Policies, prepare, spawn};
use crate::Options;
use crate::api::crd;
use crate::membership::clusterset::ensure_namespace;
use crate::membership::session::Tell;

type Outcome = anyhow::Result<()>;

/// Who the hub is on its API.
const HUB: &str = "atoll-hub";
const PATIENCE: Duration = Duration::from_secs(20);
/// How soon the hub asks about authors again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// A cluster that is only an API.
#[derive(Clone)]
struct Cluster(Client, atoll_kubeapi::Api);

impl Cluster {
    async fn start() -> anyhow::Result<Self> {
        let resources = kind::STAMPED.map(|(group, plural)| (group.to_owned(), plural.to_owned()));
        let stamping = Stamping {
            annotation: annotation::AUTHOR.to_owned(),
            resources: resources.into(),
            controllers: vec![HUB.to_owned()],
        };
        let options = atoll_kubeapi::Options::default().stamping(stamping);
        let api = atoll_kubeapi::Api::start(Store::memory(), options).await?;
        Ok(Self(Client::new(api.admin(), "default"), api))
    }

    /// The same cluster for another user.
    fn used_by(&self, name: &str, groups: &[&str]) -> Self {
        let user = User::authenticated(name, groups.iter().map(|group| (*group).to_owned()));
        Self(Client::new(self.1.service(user), "default"), self.1.clone())
    }

    /// As the hub itself.
    fn as_hub(&self) -> Client {
        self.used_by(HUB, &[MASTERS]).0
    }

    async fn api(&self, kind: &Kind, namespace: &str) -> anyhow::Result<Api<DynamicObject>> {
        let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
        let (resource, _) = kube::discovery::oneshot::pinned_kind(&self.0, &gvk).await?;
        Ok(if namespace.is_empty() {
            Api::all_with(self.0.clone(), &resource)
        } else {
            Api::namespaced_with(self.0.clone(), namespace, &resource)
        })
    }

    async fn of(&self, key: &ObjectKey) -> anyhow::Result<Api<DynamicObject>> {
        self.api(&key.kind, &key.namespace).await
    }

    async fn apply(&self, object: &Value) -> anyhow::Result<ObjectKey> {
        let key = ObjectKey::of(object).context("no key")?;
        let params = PatchParams::apply("user").force();
        self.of(&key).await?.patch(&key.name, &params, &Patch::Apply(object)).await?;
        Ok(key)
    }

    async fn create(&self, object: Value) -> anyhow::Result<ObjectKey> {
        let key = ObjectKey::of(&object).context("no key")?;
        self.of(&key).await?.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        Ok(key)
    }

    async fn delete(&self, key: &ObjectKey) -> Outcome {
        self.of(key).await?.delete(&key.name, &DeleteParams::default()).await?;
        Ok(())
    }

    async fn get(&self, key: &ObjectKey) -> anyhow::Result<Value> {
        let Ok(api) = self.of(key).await else { return Ok(Value::Null) };
        Ok(api.get_opt(&key.name).await?.map(serde_json::to_value).transpose()?.unwrap_or_default())
    }

    async fn becomes(
        &self,
        key: &ObjectKey,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        let give_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found = self.get(key).await?;
            if is(&found) {
                return Ok(found);
            }
            ensure!(tokio::time::Instant::now() < give_up, "{what} did not happen; {key} is {found:#}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn has(&self, key: &ObjectKey) -> anyhow::Result<Value> {
        self.becomes(key, "it is there", |found| !found.is_null()).await
    }

    async fn lacks(&self, key: &ObjectKey) -> Outcome {
        self.becomes(key, "it is gone", Value::is_null).await.map(drop)
    }
}

/// A hub and its members.
struct World {
    hub: Cluster,
    members: Vec<Cluster>,
    policies: Policies,
    permit: Permit,
    tasks: JoinSet<()>,
}

/// Starts the policies of a hub on its API.
async fn policies_of(hub: &Cluster, permit: &Permit, tasks: &mut JoinSet<()>) -> anyhow::Result<Policies> {
    let client = hub.as_hub();
    let propagation = crate::options::Propagation { ask_again: ASK_AGAIN, ..Default::default() };
    let options = Options { propagation, ..Options::new("hub-0") };
    let (rules, sealer) = prepare(&client, &options, jiff::Timestamp::UNIX_EPOCH).await?;
    let none = std::collections::BTreeMap::new();
    let told = Events::start(client.clone(), permit.clone(), "hub".to_owned(), "");
    Ok(spawn(client.clone(), client, rules, sealer, (permit.clone(), told), none, tasks).0)
}

fn member(number: usize) -> String {
    format!("member{number}")
}

impl World {
    async fn start(members: usize) -> anyhow::Result<Self> {
        let hub = Cluster::start().await?;
        for kind in crds::of_hub() {
            crd::ensure(&hub.0, &kind).await?;
        }
        ensure_namespace(&hub.0, "atoll-system").await?;
        let mut started = Vec::new();
        for number in 1..=members {
            started.push(Cluster::start().await?);
            hub.create(json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
                "metadata": {"name": member(number)}, "spec": {"syncMode": "Push"}}))
                .await?;
        }
        let mut tasks = JoinSet::new();
        let permit = Permit::forever();
        let policies = policies_of(&hub, &permit, &mut tasks).await?;
        let world = Self { hub, members: started, policies, permit, tasks };
        (1..=members).for_each(|number| world.up(number));
        Ok(world)
    }

    /// Starts a member, or starts it again.
    fn up(&self, number: usize) {
        let client = self.member(number).0.clone();
        let clients = Clients::within(&client);
        let id = ClusterId::parse(member(number)).unwrap();
        let identity = Identity { cluster: id.clone(), hub: "hub-1".into(), clusterset: "atolls".into() };
        let (from, reports) = (id.clone(), self.policies.reports());
        let up = Uplink::new(move |up| match up {
            Up::Copy(report) => drop(reports.send((from.clone(), report))),
            other => panic!("only copies are kept here: {other:?}"),
        });
        let copies = copies::spawn(&identity, clients, self.permit.clone(), up);
        let tell = Tell::new(move |down| match down {
            Down::Order { key, order } => copies.order(key, order),
            other => panic!("only orders come here: {other:?}"),
        });
        self.policies.started(id, tell);
    }

    fn down(&self, number: usize) {
        self.policies.stopped(ClusterId::parse(member(number)).unwrap());
    }

    fn member(&self, number: usize) -> &Cluster {
        &self.members[number - 1]
    }

    /// Ends the hub and starts it again on the same API.
    async fn restart(&mut self) {
        self.tasks.shutdown().await;
        self.policies = policies_of(&self.hub, &self.permit, &mut self.tasks).await.unwrap();
        (1..=self.members.len()).for_each(|number| self.up(number));
    }

    async fn binding(
        &self,
        of: &ObjectKey,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        self.hub.becomes(&super::binding::key_of(of, |_| false), what, is).await
    }
}

fn deployment(replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "serve", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "serve"}}, "template": {
            "metadata": {"labels": {"app": "serve"}},
            "spec": {"containers": [{"name": "serve", "image": "serve:1", "envFrom": [{"configMapRef": {"name": "settings"}}]}]}}}})
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data})
}

#[allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]
fn policy(kind: &str, name: &str, selector: Value, placement: Value) -> Value {
    let mut policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": kind, "metadata": {"name": name},
        "spec": {"resourceSelectors": selector, "placement": placement}});
    if !kind.starts_with("Cluster") {
        policy["metadata"]["namespace"] = "default".into();
    }
    policy
}

fn to(names: &[&str]) -> Value {
    json!({"clusterAffinity": {"clusterNames": names}})
}

fn condition<'a>(binding: &'a Value, of: &str) -> &'a Value {
    let conditions = binding["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|one| one["type"] == of).unwrap_or(&Value::Null)
}

fn applied(binding: &Value) -> bool {
    condition(binding, "FullyApplied")["status"] == "True"
}

#[tokio::test]
async fn a_deployment_and_its_service_go_where_their_policy_says_and_leave_with_their_template() -> Outcome {
    let world = World::start(2).await?;
    let (hub, one, two) = (&world.hub, world.member(1), world.member(2));
    let web = hub.apply(&deployment(1)).await?;
    let service = hub
        .apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "serve", "namespace": "default"},
            "spec": {"ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "serve"}}}))
        .await?;
    let both = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "serve"},
        {"apiVersion": "v1", "kind": "Service", "name": "serve"}]);
    let policy_key = hub.apply(&policy("PropagationPolicy", "mcs-workload", both, to(&["member1"]))).await?;
    let copy = one.has(&web).await?;
    ensure!(copy["spec"]["template"] != Value::Null && copy["status"].get("replicas").is_none(), "{copy:#}");
    one.has(&service).await?;
    ensure!(two.get(&web).await?.is_null());
    world.binding(&web, "it is fully applied", applied).await?;
    // Its status comes back to the template.
    one.of(&web)
        .await?
        .patch_status(
            "serve",
            &PatchParams::default(),
            &Patch::Merge(json!({"status": {"replicas": 1, "readyReplicas": 1}})),
        )
        .await?;
    hub.becomes(&web, "the template has the status", |found| found["status"]["readyReplicas"] == 1).await?;
    // The policy goes: nothing changes, and the template is still followed.
    hub.delete(&policy_key).await?;
    world
        .binding(&web, "no policy claims it", |found| {
            found["metadata"]["annotations"].get("propagationpolicy.karmada.io/name").is_none()
        })
        .await?;
    hub.apply(&deployment(3)).await?;
    one.becomes(&web, "it is rescaled", |found| found["spec"]["replicas"] == 3).await?;
    hub.delete(&web).await?;
    one.lacks(&web).await?;
    world.binding(&web, "the binding is gone", Value::is_null).await?;
    one.has(&service).await?;
    Ok(())
}

#[tokio::test]
async fn replicas_are_divided_two_to_one_and_again_when_rescaled() -> Outcome {
    let world = World::start(2).await?;
    let (hub, one, two) = (&world.hub, world.member(1), world.member(2));
    let web = hub.apply(&deployment(3)).await?;
    let weights = json!({"clusterAffinity": {"clusterNames": ["member1", "member2"]},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": [
                {"targetCluster": {"clusterNames": ["member1"]}, "weight": 2},
                {"targetCluster": {"clusterNames": ["member2"]}, "weight": 1}]}}});
    let all = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    hub.apply(&policy("PropagationPolicy", "divided", all, weights)).await?;
    for (total, first, second) in [(3, 2, 1), (9, 6, 3)] {
        hub.apply(&deployment(total)).await?;
        one.becomes(&web, "its part", |found| found["spec"]["replicas"] == first).await?;
        two.becomes(&web, "its part", |found| found["spec"]["replicas"] == second).await?;
    }
    let binding = world.binding(&web, "it is fully applied", applied).await?;
    ensure!(
        binding["spec"]["clusters"]
            == json!([{"name": "member1", "replicas": 6}, {"name": "member2", "replicas": 3}])
    );
    Ok(())
}

#[tokio::test]
async fn a_changed_policy_moves_copies_also_those_of_a_member_that_is_down() -> Outcome {
    let mut world = World::start(2).await?;
    let settings = world.hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    let all = json!([{"apiVersion": "v1", "kind": "ConfigMap"}]);
    world.hub.apply(&policy("PropagationPolicy", "all", all.clone(), to(&["member1"]))).await?;
    world.member(1).has(&settings).await?;
    world.binding(&settings, "it is fully applied", applied).await?;
    world.down(1);
    world.hub.apply(&policy("PropagationPolicy", "all", all, to(&["member2"]))).await?;
    world.member(2).has(&settings).await?;
    ensure!(!world.member(1).get(&settings).await?.is_null(), "it could not be told");
    // Not even a restart of the hub makes it forget.
    world.restart().await;
    world.member(1).lacks(&settings).await?;
    world.hub.apply(&config_map("default", "settings", &json!({"a": "2"}))).await?;
    world.member(2).becomes(&settings, "the new value", |found| found["data"]["a"] == "2").await?;
    Ok(())
}

#[tokio::test]
async fn a_template_deleted_while_the_hub_was_away_leaves_the_members() -> Outcome {
    let mut world = World::start(1).await?;
    let settings = world.hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    let all = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    let policy = world.hub.apply(&policy("PropagationPolicy", "all", all, to(&["member1"]))).await?;
    world.binding(&settings, "it is fully applied", applied).await?;
    world.tasks.shutdown().await;
    world.hub.delete(&settings).await?;
    world.hub.delete(&policy).await?;
    world.restart().await;
    world.member(1).lacks(&settings).await?;
    world.binding(&settings, "the binding is gone", Value::is_null).await?;
    Ok(())
}

#[tokio::test]
async fn a_crd_and_its_objects_and_namespaces_go_to_members() -> Outcome {
    let world = World::start(1).await?;
    let (hub, one) = (&world.hub, world.member(1));
    hub.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    let crd = hub
        .apply(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}))
        .await?;
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "shop"}, "size": 1});
    let give_up = tokio::time::Instant::now() + PATIENCE;
    let thing = loop {
        match hub.apply(&thing).await {
            Ok(key) => break key,
            Err(error) => ensure!(tokio::time::Instant::now() < give_up, "{error:#}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let things = json!([{"apiVersion": "example.com/v1", "kind": "Thing"}]);
    hub.apply(&policy("ClusterPropagationPolicy", "things", things, json!({}))).await?;
    world
        .binding(&thing, "its kind is missed", |found| {
            condition(found, "FullyApplied")["message"]
                .as_str()
                .is_some_and(|text| text.contains("does not serve Thing"))
        })
        .await?;
    let crds = json!([{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": crd.name}]);
    hub.apply(&policy("ClusterPropagationPolicy", "crds", crds, to(&["member1"]))).await?;
    one.has(&thing).await?;
    Ok(())
}

#[tokio::test]
async fn what_a_workload_needs_goes_along_and_differs_by_override() -> Outcome {
    let mut world = World::start(2).await?;
    let (hub, one, two) = (&world.hub, world.member(1), world.member(2));
    let settings = hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    let web = hub.apply(&deployment(1)).await?;
    let all = json!([{"apiVersion": "apps/v1", "kind": "Deployment"}]);
    let mut along = policy("PropagationPolicy", "along", all, json!({}));
    along["spec"]["propagateDeps"] = true.into();
    hub.apply(&along).await?;
    one.has(&settings).await?;
    two.has(&settings).await?;
    hub.apply(&json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
        "metadata": {"name": "images", "namespace": "default"},
        "spec": {"overrideRules": [{"targetCluster": {"clusterNames": ["member2"]}, "overriders": {
            "imageOverrider": [{"component": "Registry", "operator": "add", "value": "mirror.example"}]}}]}}))
        .await?;
    let image = |found: &Value| found["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    two.becomes(&web, "its own image", |found| image(found) == "mirror.example/serve:1").await?;
    ensure!(image(&one.get(&web).await?) == "serve:1");
    // A hub that starts anew does not take away what goes along.
    world.binding(&settings, "it is fully applied", applied).await?;
    let before = one.get(&settings).await?["metadata"]["uid"].clone();
    world.restart().await;
    let (hub, one, two) = (&world.hub, world.member(1), world.member(2));
    hub.apply(&deployment(2)).await?;
    one.becomes(&web, "the hub is at work", |found| found["spec"]["replicas"] == 2).await?;
    hub.apply(&config_map("default", "settings", &json!({"a": "2"}))).await?;
    let after = one.becomes(&settings, "it is followed", |found| found["data"]["a"] == "2").await?;
    ensure!(after["metadata"]["uid"] == before, "it is the same object");
    hub.delete(&web).await?;
    one.lacks(&settings).await?;
    two.lacks(&web).await?;
    ensure!(!hub.get(&settings).await?.is_null());
    Ok(())
}

#[tokio::test]
async fn what_is_suspended_waits_and_what_is_preserved_stays() -> Outcome {
    let world = World::start(2).await?;
    let (hub, one, two) = (&world.hub, world.member(1), world.member(2));
    let settings = hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    let all = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    let mut policy = policy("PropagationPolicy", "all", all, json!({}));
    policy["spec"]["suspension"] = json!({"dispatchingOnClusters": {"clusterNames": ["member2"]}});
    policy["spec"]["preserveResourcesOnDeletion"] = true.into();
    hub.apply(&policy).await?;
    one.has(&settings).await?;
    world
        .binding(&settings, "it says what waits", |found| {
            condition(found, "FullyApplied")["message"]
                == "member2: its policy suspends dispatching to this cluster"
        })
        .await?;
    ensure!(two.get(&settings).await?.is_null());
    policy["spec"].as_object_mut().unwrap().remove("suspension");
    hub.apply(&policy).await?;
    two.has(&settings).await?;
    world.binding(&settings, "it is fully applied", applied).await?;
    hub.delete(&settings).await?;
    world.binding(&settings, "the binding is gone", Value::is_null).await?;
    let left = one.get(&settings).await?;
    ensure!(
        left["data"]["a"] == "1" && left["metadata"]["labels"].get("atoll.dev/propagated-by").is_none(),
        "{left:#}"
    );
    Ok(())
}

#[tokio::test]
async fn what_is_there_already_is_said_and_taken_over_only_when_asked() -> Outcome {
    let world = World::start(1).await?;
    let (hub, one) = (&world.hub, world.member(1));
    let settings = one.apply(&config_map("default", "settings", &json!({"theirs": "1"}))).await?;
    hub.apply(&config_map("default", "settings", &json!({"ours": "1"}))).await?;
    let all = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    let mut policy = policy("PropagationPolicy", "all", all, to(&["member1"]));
    hub.apply(&policy).await?;
    world
        .binding(&settings, "it says so", |found| {
            found["status"]["aggregatedStatus"][0]["appliedMessage"]
                .as_str()
                .is_some_and(|text| text.contains("Overwrite"))
        })
        .await?;
    ensure!(one.get(&settings).await?["data"] == json!({"theirs": "1"}));
    policy["spec"]["conflictResolution"] = "Overwrite".into();
    hub.apply(&policy).await?;
    one.becomes(&settings, "it is taken over", |found| found["data"]["ours"] == "1").await?;
    Ok(())
}

#[tokio::test]
async fn bad_input_is_refused_or_said_once() -> Outcome {
    let world = World::start(1).await?;
    let hub = &world.hub;
    let all = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]);
    for (field, value) in [
        ("failover", json!({"cluster": {}})),
        ("schedulerName", json!("mine")),
        ("association", json!(true)),
        ("dependentOverrides", json!(["x"])),
    ] {
        let mut refused = policy("PropagationPolicy", "refused", all.clone(), to(&["member1"]));
        refused["spec"][field] = value;
        let error = hub.apply(&refused).await.err().context(field)?.to_string();
        ensure!(error.contains(&format!("spec.{field} is not honoured by Atoll")), "{error}");
    }
    let idle = hub.apply(&policy("PropagationPolicy", "idle", all, to(&["nowhere"]))).await?;
    let said = |of: ObjectKey, reason: &'static str| async move {
        let events = hub.api(&Kind::new("v1", "Event"), "default").await?;
        let give_up = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found: Vec<Value> = events
                .list(&ListParams::default())
                .await?
                .into_iter()
                .map(serde_json::to_value)
                .collect::<Result<_, _>>()?;
            let its = found
                .iter()
                .filter(|one| one["involvedObject"]["name"] == of.name && one["reason"] == reason)
                .count();
            if its > 0 {
                return anyhow::Ok(its);
            }
            ensure!(tokio::time::Instant::now() < give_up, "no {reason} on {of}: {found:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    ensure!(said(idle, "ApplyPolicyFailed").await? == 1);
    let settings = hub.apply(&config_map("default", "settings", &json!({"a": "1"}))).await?;
    ensure!(said(settings.clone(), "ScheduleBindingFailed").await? == 1);
    let binding = world
        .binding(&settings, "it says why", |found| condition(found, "Scheduled")["status"] == "False")
        .await?;
    ensure!(condition(&binding, "Scheduled")["reason"] == "NoClusterFit", "{binding:#}");
    Ok(())
}
