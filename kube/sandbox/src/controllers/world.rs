//! For tests: an API in a map, without I/O. It carries out what planners want and tells the cache at once.

use super::action::{Action, Kind};
use super::cache::{Cache, News, WATCHED};
use super::queue::Key;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The namespace of everything.
pub(super) const HERE: &str = "shop";

/// A cluster.
pub(super) struct World {
    pub(super) objects: BTreeMap<(Kind, String), Value>,
    pub(super) cache: Cache,
    pub(super) now: Timestamp,
    /// What has to be looked at.
    pub(super) dirty: BTreeSet<Key>,
    counter: u64,
}

impl World {
    pub(super) fn new() -> Self {
        let mut cache = Cache::default();
        for kind in WATCHED {
            cache.hear(kind, &News::Listing);
            cache.hear(kind, &News::Listed);
        }
        assert!(cache.is_whole());
        let now = Timestamp::from_second(1_000_000_000).unwrap();
        let mut world = Self { objects: BTreeMap::new(), cache, now, dirty: BTreeSet::new(), counter: 0 };
        world.create(Kind::Node, json!({"metadata": {"name": "here"}}));
        world
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> &Value {
        self.objects.get(&(kind, name.to_owned())).unwrap_or(&Value::Null)
    }

    pub(super) fn all(&self, kind: Kind) -> Vec<&Value> {
        self.objects.iter().filter(|((of, _), _)| *of == kind).map(|(_, object)| object).collect()
    }

    /// Pods that are not on their way out.
    pub(super) fn pods(&self) -> Vec<&Value> {
        self.all(Kind::Pod).into_iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect()
    }

    pub(super) fn create(&mut self, kind: Kind, mut object: Value) -> String {
        self.counter += 1;
        let meta = &mut object["metadata"];
        if meta["name"].is_null() {
            meta["name"] = format!("{}{:05}", meta["generateName"].as_str().unwrap(), self.counter).into();
        }
        if kind != Kind::Node {
            meta["namespace"] = HERE.into();
        }
        meta["uid"] = format!("uid-{}", self.counter).into();
        meta["creationTimestamp"] = self.now.to_string().into();
        meta["generation"] = 1.into();
        let name = meta["name"].as_str().unwrap().to_owned();
        assert!(!self.objects.contains_key(&(kind, name.clone())), "{name} is there");
        self.put(kind, &name, object);
        name
    }

    /// A merge patch of an object, its status too.
    pub(super) fn patch(&mut self, kind: Kind, name: &str, patch: &Value) {
        let mut object = self.get(kind, name).clone();
        let spec = object["spec"].clone();
        merge(&mut object, patch);
        if object["spec"] != spec {
            object["metadata"]["generation"] =
                (object["metadata"]["generation"].as_i64().unwrap() + 1).into();
        }
        self.put(kind, name, object);
    }

    fn put(&mut self, kind: Kind, name: &str, mut object: Value) {
        self.counter += 1;
        object["metadata"]["resourceVersion"] = self.counter.to_string().into();
        self.dirty.extend(self.cache.hear(kind, &News::Seen(object.clone())));
        self.objects.insert((kind, name.to_owned()), object);
    }

    pub(super) fn remove(&mut self, kind: Kind, name: &str) {
        let object = self.objects.remove(&(kind, name.to_owned())).unwrap();
        self.dirty.extend(self.cache.hear(kind, &News::Gone(object)));
    }

    fn check(&self, kind: Kind, name: &str, version: u64) {
        let now = &self.get(kind, name)["metadata"]["resourceVersion"];
        assert_eq!(*now, version.to_string(), "{name} was decided on in another state");
    }

    pub(super) fn carry_out(&mut self, action: Action) {
        match action {
            Action::Create(kind, object) => drop(self.create(kind, object)),
            Action::Replace(kind, object) => {
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                let version = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                self.check(kind, &name, version);
                self.put(kind, &name, object);
            }
            Action::Patch { kind, target, body, .. } => {
                self.check(kind, &target.name, target.version);
                self.patch(kind, &target.name, &body);
            }
            Action::Delete(Kind::Pod, target) => {
                let going = json!({"metadata": {"deletionTimestamp": self.now.to_string()}});
                self.patch(Kind::Pod, &target.name, &going);
            }
            Action::Delete(kind, target) => self.remove(kind, &target.name),
        }
    }

    /// Plans one key and does what is planned; says how many requests that were.
    pub(super) fn look_at(&mut self, key: &Key) -> usize {
        self.dirty.remove(key);
        let plan = self.cache.plan(key, self.now);
        let requests = plan.actions.len();
        plan.actions.into_iter().for_each(|action| self.carry_out(action));
        requests
    }

    /// Plans until nothing is left to do; says how many requests that took.
    pub(super) fn settle(&mut self) -> usize {
        let mut requests = 0;
        while let Some(key) = self.dirty.pop_first() {
            requests += self.look_at(&key);
            assert!(requests < 10_000, "it never ends");
        }
        requests
    }

    /// A pod runs, and is ready or not.
    pub(super) fn run(&mut self, pod: &str, ready: bool) {
        self.counter += 1;
        let address = format!("10.0.{}.{}", self.counter / 200 % 200, self.counter % 200 + 1);
        let status = if ready { "True" } else { "False" };
        let ready = json!([{"type": "Ready", "status": status, "lastTransitionTime": self.now.to_string()}]);
        let patch = json!({"spec": {"nodeName": "here"}, "status": {"phase": "Running", "podIP": address, "conditions": ready}});
        self.patch(Kind::Pod, pod, &patch);
    }

    /// A pod ends, well or not.
    pub(super) fn end(&mut self, pod: &str, phase: &str) {
        let state = json!([{"state": {"terminated": {"finishedAt": self.now.to_string()}}}]);
        self.patch(
            Kind::Pod,
            pod,
            &json!({"status": {"phase": phase, "conditions": [], "containerStatuses": state}}),
        );
    }

    /// Every pod that should run gets ready, every one that should go goes; then all is settled again, until nothing moves.
    pub(super) fn live(&mut self) {
        for _ in 0..1000 {
            self.settle();
            let named = |pod: &Value| pod["metadata"]["name"].as_str().unwrap().to_owned();
            let going = self
                .all(Kind::Pod)
                .into_iter()
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_string());
            let going: Vec<String> = going.map(named).collect();
            let waiting = self.pods().into_iter().filter(|pod| pod["status"]["phase"].is_null());
            let waiting: Vec<String> = waiting.map(named).collect();
            if going.is_empty() && waiting.is_empty() {
                return;
            }
            going.iter().for_each(|pod| self.remove(Kind::Pod, pod));
            waiting.iter().for_each(|pod| self.run(pod, true));
        }
        panic!("it never comes to rest");
    }
}

fn merge(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(own) = object.as_object_mut() else { return };
    for (field, value) in fields {
        if value.is_null() {
            own.remove(field);
        } else {
            merge(own.entry(field).or_insert(Value::Null), value);
        }
    }
}

#[test]
fn what_a_watch_tells_late_does_not_come_back() {
    let mut world = World::new();
    let name =
        world.create(Kind::Pod, json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {}}));
    let old = world.get(Kind::Pod, &name).clone();
    world.patch(Kind::Pod, &name, &json!({"metadata": {"labels": {"app": "shop"}}}));
    let new = world.get(Kind::Pod, &name).clone();
    let cache = &mut world.cache;
    assert!(cache.hear(Kind::Pod, &News::Seen(old.clone())).is_empty());
    // Deleted by our own request: the watch is still at what was before.
    cache.hear(Kind::Pod, &News::Deleted(new.clone()));
    let service = json!({"metadata": {"name": "web", "namespace": HERE, "uid": "s", "resourceVersion": "1"},
        "spec": {"selector": {"app": "shop"}, "clusterIP": "10.0.0.1", "ports": [{"port": 80}]}});
    cache.hear(Kind::Service, &News::Seen(service));
    assert!(cache.hear(Kind::Pod, &News::Seen(new.clone())).is_empty(), "it is gone");
    assert!(cache.hear(Kind::Pod, &News::Gone(new.clone())).is_empty());
    // And the other way round: the answer to a request comes after all was over.
    assert!(cache.hear(Kind::Pod, &News::Seen(new)).is_empty(), "it is still gone");
    cache.calm();
    // What another list does not show is gone, too.
    let other = json!({"metadata": {"name": "other", "namespace": HERE, "uid": "o", "resourceVersion": "99", "labels": {"app": "shop"}}});
    assert_eq!(cache.hear(Kind::Pod, &News::Seen(other)).len(), 1);
    cache.hear(Kind::Pod, &News::Listing);
    assert_eq!(cache.hear(Kind::Pod, &News::Listed).len(), 1);
}
