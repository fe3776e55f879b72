//! The facts of one cluster, who is touched by a change of them, and what is planned on them.

mod table;

use super::action::{Kind, Plan};
use super::facts::{Deployment, Job, Meta, Node, Pod, ReplicaSet, Revision, Service, Slice, StatefulSet};
use super::queue::{Controller, Key};
use super::template::owner as reference;
use super::{account, adopt, deployment, job, replicaset, slices, statefulset};
use atoll_apimachinery::selector::labels::Selector;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;
use table::{Fact, Table};

/// What is known of a cluster.
#[derive(Default)]
pub(crate) struct Cache {
    deployments: Table<Deployment>,
    sets: Table<ReplicaSet>,
    stateful: Table<StatefulSet>,
    revisions: Table<Revision>,
    jobs: Table<Job>,
    pods: Table<Pod>,
    services: Table<Service>,
    slices: Table<Slice>,
    nodes: Table<Node>,
    namespaces: Table<Meta>,
    accounts: Table<Meta>,
}

/// Something about the objects of a kind.
pub(crate) enum News {
    /// All are listed from now on.
    Listing,
    /// All were listed: what was not among them is gone.
    Listed,
    Seen(Value),
    /// By a watch: nothing older will be heard of it.
    Gone(Value),
    /// By the answer to our own request: the watch may be behind.
    Deleted(Value),
}

/// The kinds that are watched.
pub(crate) const WATCHED: [Kind; 11] = [
    Kind::Namespace,
    Kind::Account,
    Kind::Node,
    Kind::Pod,
    Kind::ReplicaSet,
    Kind::Deployment,
    Kind::Revision,
    Kind::StatefulSet,
    Kind::Job,
    Kind::Service,
    Kind::Slice,
];

type Keys = BTreeSet<Key>;

impl Cache {
    /// Is every kind listed? Before that nothing may be planned: what is not seen yet is not missing.
    pub(crate) fn is_whole(&self) -> bool {
        self.deployments.listed()
            && self.sets.listed()
            && self.stateful.listed()
            && self.revisions.listed()
            && self.jobs.listed()
            && self.pods.listed()
            && self.services.listed()
            && self.slices.listed()
            && self.nodes.listed()
            && self.namespaces.listed()
            && self.accounts.listed()
    }

    /// No request is under way: what is gone needs not be remembered.
    pub(crate) fn calm(&mut self) {
        self.deployments.calm();
        self.sets.calm();
        self.stateful.calm();
        self.revisions.calm();
        self.jobs.calm();
        self.pods.calm();
        self.services.calm();
        self.slices.calm();
        self.nodes.calm();
        self.namespaces.calm();
        self.accounts.calm();
    }

    /// Takes news; answers with what has to be looked at.
    pub(crate) fn hear(&mut self, kind: Kind, news: &News) -> Keys {
        let mut keys = Keys::new();
        match kind {
            Kind::Deployment => {
                for fact in self.deployments.hear(news) {
                    keys.insert(key(Controller::Deployment, &fact.meta));
                }
            }
            Kind::ReplicaSet => {
                for fact in self.sets.hear(news) {
                    keys.insert(key(Controller::ReplicaSet, &fact.meta));
                    keys.extend(owner(&fact.meta));
                    let fits = |it: &&Deployment| adopt::fits(&it.selects(), &it.meta, &fact.meta);
                    let adopting = self.deployments.within(&fact.meta.namespace).filter(fits);
                    keys.extend(adopting.map(|it| key(Controller::Deployment, &it.meta)));
                }
            }
            Kind::StatefulSet => {
                for fact in self.stateful.hear(news) {
                    keys.insert(key(Controller::StatefulSet, &fact.meta));
                }
            }
            Kind::Revision => {
                for fact in self.revisions.hear(news) {
                    keys.extend(owner(&fact.meta));
                }
            }
            Kind::Job => {
                for fact in self.jobs.hear(news) {
                    keys.insert(key(Controller::Job, &fact.meta));
                }
            }
            Kind::Pod => {
                for fact in self.pods.hear(news) {
                    keys.extend(self.touched_by_pod(&fact));
                }
            }
            Kind::Service => {
                for fact in self.services.hear(news) {
                    keys.insert(key(Controller::Slices, &fact.meta));
                }
            }
            Kind::Slice => {
                for fact in self.slices.hear(news) {
                    keys.extend(
                        fact.meta
                            .labels
                            .get(slices::SERVICE_NAME)
                            .map(|service| Key::new(Controller::Slices, &fact.meta.namespace, service)),
                    );
                }
            }
            Kind::Node => {
                // A node's zone stands in every endpoint on it.
                let zone = |cache: &Self| -> Vec<_> {
                    cache.nodes.all().map(|node| (node.meta.name.clone(), node.zone().cloned())).collect()
                };
                let before = zone(self);
                self.nodes.hear(news);
                if zone(self) != before {
                    keys.extend(self.services.all().map(|service| key(Controller::Slices, &service.meta)));
                }
            }
            Kind::Namespace => {
                for fact in self.namespaces.hear(news) {
                    keys.insert(Key::new(Controller::Account, &fact.name, account::DEFAULT));
                }
            }
            Kind::Account => {
                for fact in self.accounts.hear(news) {
                    keys.insert(Key::new(Controller::Account, &fact.namespace, account::DEFAULT));
                }
            }
        }
        keys
    }

    fn touched_by_pod(&self, pod: &Pod) -> Keys {
        let mut keys: Keys = owner(&pod.meta).into_iter().collect();
        let set = pod.meta.owner.as_ref().and_then(|owner| self.sets.get(&pod.meta.namespace, &owner.name));
        keys.extend(set.and_then(|set| owner(&set.meta)));
        if pod.meta.is_orphan {
            let sets = self.sets.within(&pod.meta.namespace);
            let sets = sets.filter(|it| adopt::fits(&it.selector, &it.meta, &pod.meta));
            keys.extend(sets.map(|it| key(Controller::ReplicaSet, &it.meta)));
            let sets = self.stateful.within(&pod.meta.namespace);
            let sets = sets.filter(|it| adopt::fits(&it.selector, &it.meta, &pod.meta));
            keys.extend(sets.map(|it| key(Controller::StatefulSet, &it.meta)));
        }
        let services = self.services.within(&pod.meta.namespace);
        let selecting = services.filter(|service| service.selects(&pod.meta.labels));
        keys.extend(selecting.map(|service| key(Controller::Slices, &service.meta)));
        keys
    }

    /// What is to be done about one key.
    pub(crate) fn plan(&self, key: &Key, now: Timestamp) -> Plan {
        let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
        match key.controller {
            Controller::Deployment => {
                let Some(it) = self.deployments.get(namespace, name) else { return Plan::default() };
                let selector = it.selects();
                let orphans = orphans(self.sets.within(namespace), &selector, &it.meta);
                let sets = match of(self.sets.within(namespace), &it.meta) {
                    sets if orphans.is_empty() => sets,
                    _ => {
                        return adoptions(
                            Kind::ReplicaSet,
                            &orphans,
                            &reference("apps/v1", "Deployment", &it.meta),
                        );
                    }
                };
                let own = |pod: &&Pod| sets.iter().any(|set| pod.meta.belongs_to(&set.meta.uid));
                let pods: Vec<&Pod> = self.pods.within(namespace).filter(own).collect();
                deployment::plan(it, &sets, &pods, now)
            }
            Controller::ReplicaSet => {
                let Some(it) = self.sets.get(namespace, name) else { return Plan::default() };
                let active = self.pods.within(namespace).filter(|pod| pod.is_active());
                let orphans = orphans(active, &it.selector, &it.meta);
                if !orphans.is_empty() {
                    return adoptions(Kind::Pod, &orphans, &reference("apps/v1", "ReplicaSet", &it.meta));
                }
                replicaset::plan(it, &of(self.pods.within(namespace), &it.meta), now)
            }
            Controller::StatefulSet => {
                let Some(it) = self.stateful.get(namespace, name) else { return Plan::default() };
                let orphans = orphans(self.pods.within(namespace), &it.selector, &it.meta);
                if !orphans.is_empty() {
                    return adoptions(Kind::Pod, &orphans, &reference("apps/v1", "StatefulSet", &it.meta));
                }
                let left = self::orphans(self.revisions.within(namespace), &it.selector, &it.meta);
                if !left.is_empty() {
                    return adoptions(Kind::Revision, &left, &reference("apps/v1", "StatefulSet", &it.meta));
                }
                let pods = of(self.pods.within(namespace), &it.meta);
                statefulset::plan(it, &pods, &of(self.revisions.within(namespace), &it.meta), now)
            }
            Controller::Job => {
                let Some(it) = self.jobs.get(namespace, name) else { return Plan::default() };
                job::plan(it, &of(self.pods.within(namespace), &it.meta), now)
            }
            Controller::Slices => {
                let Some(it) = self.services.get(namespace, name) else { return Plan::default() };
                let pods: Vec<&Pod> =
                    self.pods.within(namespace).filter(|pod| it.selects(&pod.meta.labels)).collect();
                let ours = |slice: &&Slice| {
                    slice.meta.labels.get(slices::SERVICE_NAME).is_some_and(|service| service == name)
                };
                let present: Vec<&Slice> = self.slices.within(namespace).filter(ours).collect();
                slices::plan(it, &pods, &present, |node| self.nodes.get("", node))
            }
            Controller::Account => {
                let Some(it) = self.namespaces.get("", namespace) else { return Plan::default() };
                account::plan(namespace, it.going, self.accounts.get(namespace, name).is_some())
            }
        }
    }
}

fn key(controller: Controller, meta: &Meta) -> Key {
    Key::new(controller, &meta.namespace, &meta.name)
}

/// The key of an object's controller, if it is one of ours.
fn owner(meta: &Meta) -> Option<Key> {
    let owner = meta.owner.as_ref()?;
    let controller = match owner.kind.as_str() {
        "Deployment" => Controller::Deployment,
        "ReplicaSet" => Controller::ReplicaSet,
        "StatefulSet" => Controller::StatefulSet,
        "Job" => Controller::Job,
        _ => return None,
    };
    Some(Key::new(controller, &meta.namespace, &owner.name))
}

/// Those that belong to an object.
fn of<'a, T: Fact + 'a>(facts: impl Iterator<Item = &'a T>, whose: &Meta) -> Vec<&'a T> {
    facts.filter(|fact| fact.meta().belongs_to(&whose.uid)).collect()
}

/// Those without an owner that an object's selector matches.
fn orphans<'a, T: Fact + 'a>(
    facts: impl Iterator<Item = &'a T>,
    selector: &Selector,
    whose: &Meta,
) -> Vec<&'a Meta> {
    facts.map(Fact::meta).filter(|meta| adopt::fits(selector, whose, meta)).collect()
}

/// First what was left behind gets its owner; the rest is planned when it has.
fn adoptions(kind: Kind, orphans: &[&Meta], owner: &Value) -> Plan {
    let actions = orphans.iter().map(|orphan| adopt::adopt(kind, orphan, owner)).collect();
    Plan { actions, again: None }
}
