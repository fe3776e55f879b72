//! A copy of what policies plan by, to try something on: where templates would go is what they would be planned to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_api::names::kind::{cluster, own, policy, work};
use atoll_api::names::label;
use atoll_api::names::namespace::is_control_plane;
use atoll_engine::intent::CrossCluster;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::placement::access::Stamp;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_engine::placement::{Change, Outcome, Placer};
use serde_json::Value;

use super::{Rules, edge, implied};

/// The copy, as it was and as it would be.
#[derive(Debug)]
pub(crate) struct Trial {
    before: Placer,
    after: Placer,
    rules: Rules,
    /// Kinds whose templates are all known.
    known: BTreeSet<Kind>,
    /// Kinds of which objects were sent along.
    sent: BTreeSet<Kind>,
}

/// The groups whose objects are no templates.
const SPOKEN: [&str; 4] = [policy::GROUP, cluster::GROUP, work::GROUP, own::GROUP];

/// A template that was planned anew.
#[derive(Debug)]
pub(crate) struct Moved {
    /// Which.
    pub(crate) template: ObjectKey,
    /// What became of it before.
    pub(crate) before: Outcome,
    /// What would become of it.
    pub(crate) after: Outcome,
}

impl Trial {
    pub(super) fn new(placer: &Placer, rules: &Rules, known: &BTreeSet<Kind>) -> Self {
        let mut before = placer.clone();
        while before.plan_next_of(|kind| known.contains(kind)).is_some() {} // what waits now is no consequence
        Self {
            after: before.clone(),
            before,
            rules: rules.clone(),
            known: known.clone(),
            sent: BTreeSet::new(),
        }
    }

    /// An object of the hub that is there. What the hub has seen of its kind itself counts for more.
    pub(crate) fn is_there(&mut self, object: &Value) {
        let key = key(object);
        let own = key.namespace == self.rules.namespace && !key.namespace.is_empty();
        if !own && !self.known.contains(&key.kind) && !SPOKEN.contains(&key.kind.group()) {
            let template = Arc::new(edge::template(object));
            for placer in [&mut self.before, &mut self.after] {
                placer.apply(Change::Template(key.clone(), Some(Arc::clone(&template))));
            }
            self.sent.insert(key.kind);
        }
    }

    /// An object of the hub would be there like this, or would be gone. Says why it can't be read, if it can't.
    pub(crate) fn apply(&mut self, object: &Value, there: bool) -> Result<(), String> {
        let key = key(object);
        let said = Some(object).filter(|_| there);
        let change = match (key.kind.group(), key.kind.kind.as_str()) {
            (policy::GROUP, policy::PROPAGATION_POLICY | policy::CLUSTER_PROPAGATION_POLICY) => {
                edge::propagation(&key, said, self.rules.stamps)?
            }
            (policy::GROUP, policy::OVERRIDE_POLICY | policy::CLUSTER_OVERRIDE_POLICY) => {
                edge::overriding(&key, said, self.rules.stamps)?
            }
            (cluster::GROUP, cluster::CLUSTER) => match edge::cluster(&key, said) {
                Some(change) => change,
                None => return Err("this is not the name of a cluster".to_owned()),
            },
            _ if key.namespace == self.rules.namespace && !key.namespace.is_empty() => {
                return Err("objects of the hub's own namespace go to no member".to_owned());
            }
            _ => Change::Template(key, said.map(|object| Arc::new(edge::template(object)))),
        };
        self.after.apply(change);
        Ok(())
    }

    /// A `MultiClusterService` would ask for this, or would be gone.
    pub(crate) fn imply(&mut self, key: &ServiceKey, intent: Option<&CrossCluster>, author: Option<&str>) {
        let stamp: Stamp = edge::stamp(author, self.rules.stamps);
        let policy = intent.and_then(|intent| implied::policy(key, intent, stamp));
        self.after.apply(Change::Policy(implied::id(key), policy.map(Box::new)));
    }

    /// A member would leave.
    pub(crate) fn left(&mut self, id: &ClusterId) {
        self.after.apply(Change::Cluster(id.clone(), None));
    }

    /// Whether the hub makes such a namespace in every member.
    pub(crate) fn makes_namespace(&self, object: &Value) -> bool {
        let name = key(object).name;
        let skipped =
            is_control_plane(&name) || ["default", self.rules.namespace.as_str()].contains(&name.as_str());
        self.rules.sync_namespaces
            && !skipped
            && object["metadata"]["labels"][label::SKIP_NAMESPACE] != "true"
    }

    /// What was planned anew, and the kinds that policies would speak of, and whose templates are not known yet.
    pub(crate) fn moved(&mut self) -> (Vec<Moved>, BTreeSet<Kind>) {
        let mut planned: BTreeMap<ObjectKey, Outcome> = BTreeMap::new();
        let mut new = BTreeSet::new();
        loop {
            new.extend(self.after.new_kinds());
            let known = &self.known;
            let sent = &self.sent;
            let next = self
                .after
                .plan_next_of(|kind| known.contains(kind) || new.contains(kind) || sent.contains(kind));
            let Some((key, outcome)) = next else { break };
            planned.insert(key, outcome);
        }
        let moved = planned.into_iter().filter_map(|(template, after)| {
            let before = match self.before.template(&template) {
                Some(_) => self.before.plan(&template),
                None => Outcome::Nowhere { preserve: false },
            };
            (before != after).then_some(Moved { template, before, after })
        });
        let moved = moved.collect();
        new.retain(|kind| !self.sent.contains(kind));
        (moved, new)
    }

    /// The copy of a Service that a member would have by policies.
    pub(crate) fn service(&mut self, key: &ServiceKey, id: &ClusterId) -> Option<Arc<Value>> {
        let template = implied::template(key);
        self.after.template(&template)?;
        match self.after.plan(&template) {
            Outcome::Placed(placed) => placed.copies.get(id)?.object.clone().ok(),
            Outcome::Nowhere { .. } | Outcome::Undecided => None,
        }
    }

    /// A template, as it would be.
    pub(crate) fn template(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.after.template(key)
    }
}

fn key(object: &Value) -> ObjectKey {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    ObjectKey {
        kind: Kind::new(text("/apiVersion"), text("/kind")),
        namespace: text("/metadata/namespace").to_owned(),
        name: text("/metadata/name").to_owned(),
    }
}
