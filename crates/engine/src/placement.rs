//! Templates + policies + clusters → which cluster holds which copy, and why not the others.
//!
//! ```text
//!   access        who wrote a policy, and whether they may have what follows from it
//!   choose        which policy has a template: priority, closeness, name; who takes it from whom
//!   select        which clusters: affinity, taints, readiness, spread
//!   divide        how many replicas in each
//!   dependencies  what goes along
//!   autoscale     whose replicas are a member's own, because an autoscaler goes there
//!   copies        what each cluster gets, and what is withheld
//!   prune         what of a template travels
//!   overrides     how a copy differs in one cluster
//!   aggregate     what the copies say, together
//!   why           for whoever asks: what was decided by what
//! ```
//!
//! Start at [`Placer`]: changes in, the outcomes of what they concern out. What was decided is remembered ([`Decision`]; the hub keeps
//! it in a binding): a template keeps its clusters when its policy goes, and those that have it are preferred where there is a choice.

pub mod access;
pub mod affinity;
pub mod aggregate;
pub mod autoscale;
pub mod choose;
pub mod copies;
pub mod dependencies;
pub mod divide;
pub mod object;
pub mod overrides;
pub mod policy;
pub mod prune;
pub mod select;
pub mod text;
pub mod why;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_api::names::{kind, namespace, service};
use serde_json::Value;

use crate::names::ClusterId;
use access::{Access, Author, Counts, Question, Refusal, Stamp, Verdict};
use affinity::ClusterFact;
use autoscale::{Autoscalers, Workload};
use copies::Withheld;
use object::{Kind, ObjectKey};
use overrides::Overriding;
use policy::{ConflictResolution, Placement, PolicyId, PropagationSpec, Suspension};
use select::{Clusters, Nowhere, select};

/// What was decided of a template: the hub keeps it in its binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The policy that has it; none if that is gone.
    pub policy: Option<PolicyId>,
    /// Where it goes, as the policy says.
    pub placement: Placement,
    /// The same, as it was written.
    pub written: Arc<Value>,
    /// The clusters, with their replicas where its kind has any.
    pub clusters: BTreeMap<ClusterId, Option<i64>>,
    /// Which of several groups of clusters it is.
    pub affinity: Option<String>,
    /// Whether what it needs goes along.
    pub propagate_deps: bool,
    /// What happens to an object that a member has already.
    pub conflict: ConflictResolution,
    /// What is held up.
    pub suspension: Suspension,
    /// Whether copies stay when it goes.
    pub preserve: bool,
    /// Who wrote the policy, where that has to be asked about.
    pub author: Option<Arc<Author>>,
    /// The template's uid: of another one of the same name nothing was decided.
    pub uid: String,
}

/// A policy, its placement as it was written, and who wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// What it says.
    pub spec: PropagationSpec,
    /// `spec.placement`, as it was written.
    pub written: Arc<Value>,
    /// Who wrote it.
    pub stamp: Stamp,
}

/// Something that changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// A member.
    Cluster(ClusterId, Option<ClusterFact>),
    /// A policy.
    Policy(PolicyId, Option<Box<Policy>>),
    /// An override policy.
    Override(PolicyId, Option<Box<Overriding>>),
    /// A template.
    Template(ObjectKey, Option<Arc<Value>>),
    /// What was decided in a former life.
    Recalled(ObjectKey, Box<Decision>),
    /// Whom a template went along with in a former life: until these have been planned, it still does.
    RecalledAlong(ObjectKey, BTreeSet<ObjectKey>),
    /// What was answered to a question about an author.
    Verdict(Question, Verdict),
}

/// What becomes of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is not known yet whether its policies count: nothing changes.
    Undecided,
    /// It is wanted nowhere: no copy is to be left.
    Nowhere {
        /// Copies stay where they are, and are managed by Atoll no more.
        preserve: bool,
    },
    /// It goes to clusters, or would if any fitted.
    Placed(Box<Placed>),
}

/// A template that a policy places, or that goes along with another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// What was decided; none for what only goes along with others.
    pub decision: Option<Decision>,
    /// Whom it goes along with.
    pub required_by: BTreeSet<ObjectKey>,
    /// Why no cluster was chosen.
    pub nowhere: Option<Nowhere>,
    /// Clusters that the policy names and that are no members.
    pub unknown: BTreeSet<String>,
    /// What each cluster gets.
    pub copies: BTreeMap<ClusterId, Copy>,
}

/// What one cluster gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// The object, or why it is not written.
    pub object: Result<Arc<Value>, Withheld>,
    /// What happens to one that is there already.
    pub conflict: ConflictResolution,
    /// Nothing is to be written at present.
    pub suspended: bool,
    /// It is made by other means; see what it has become, and write nothing.
    pub observed: bool,
}

/// Remembers everything that placement depends on, and what was decided.
#[derive(Clone, Debug, Default)]
pub struct Placer {
    clusters: Clusters,
    policies: BTreeMap<PolicyId, PropagationSpec>,
    written: BTreeMap<PolicyId, Arc<Value>>,
    stamps: BTreeMap<PolicyId, Stamp>,
    overrides: BTreeMap<PolicyId, Overriding>,
    access: Access,
    /// Whether copies of Services keep their `externalIPs`.
    external_ips: bool,
    templates: BTreeMap<ObjectKey, Arc<Value>>,
    decided: BTreeMap<ObjectKey, Decision>,
    /// What goes along with whom.
    needs: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    needed_by: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    autoscalers: Autoscalers,
    dirty: BTreeSet<ObjectKey>,
    /// Kinds whose templates have to be known, and those of them that the caller has not been told of.
    kinds: BTreeSet<Kind>,
    fresh: Vec<Kind>,
}

impl Placer {
    /// Takes in a change, and notes what it concerns.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Cluster(id, fact) => {
                let before = match &fact {
                    Some(fact) => self.clusters.insert(id, fact.clone()),
                    None => self.clusters.remove(&id),
                };
                if before != fact {
                    self.dirty.extend(self.decided.keys().cloned());
                    self.dirty.extend(self.needed_by.keys().cloned());
                    self.concerns(|_, _| true);
                }
            }
            Change::Policy(id, policy) => {
                let (said, written) = match policy.map(|policy| *policy) {
                    Some(Policy { spec, written, stamp }) => (Some((spec, stamp)), Some(written)),
                    None => (None, None),
                };
                let (spec, stamp) = said.unzip();
                spec.iter()
                    .flat_map(|spec: &PropagationSpec| &spec.resource_selectors)
                    .for_each(|one| self.knows(&one.kind));
                let before = replace(&mut self.policies, &id, spec.clone());
                replace(&mut self.written, &id, written);
                let stamped_before = replace(&mut self.stamps, &id, stamp.clone());
                if before == spec && stamped_before == stamp {
                    return;
                }
                let speaks = |spec: &Option<PropagationSpec>, key: &ObjectKey, template: &Value| {
                    spec.as_ref()
                        .is_some_and(|spec| choose::meant(&spec.resource_selectors, key, template).is_some())
                };
                self.concerns(|key, template| speaks(&before, key, template) || speaks(&spec, key, template));
                let its = self.decided.iter().filter(|(_, decided)| decided.policy.as_ref() == Some(&id));
                self.dirty.extend(its.map(|(key, _)| key.clone()));
            }
            Change::Override(id, overriding) => {
                let overriding = overriding.map(|overriding| *overriding);
                let before = replace(&mut self.overrides, &id, overriding.clone());
                if before != overriding {
                    // What is decided or goes along is written somewhere; the rest does not mind.
                    self.dirty.extend(self.decided.keys().cloned());
                    self.dirty.extend(self.needed_by.keys().cloned());
                }
            }
            Change::Template(key, template) => {
                let template = template.filter(|template| travels(&key, template));
                let before = replace(&mut self.templates, &key, template.clone());
                if before != template || (template.is_none() && self.decided.contains_key(&key)) {
                    if autoscale::is_autoscaler(&key.kind) {
                        for workload in self.autoscalers.note(&key, template.as_deref()) {
                            self.mark(&workload);
                        }
                    }
                    self.dirty.insert(key);
                }
            }
            Change::Recalled(key, decision) => {
                self.knows(&key.kind);
                self.decided.insert(key.clone(), *decision);
                self.dirty.insert(key);
            }
            Change::RecalledAlong(key, parents) => {
                self.knows(&key.kind);
                for parent in &parents {
                    self.needs.entry(parent.clone()).or_default().insert(key.clone());
                }
                self.needed_by.entry(key.clone()).or_default().extend(parents);
                self.dirty.insert(key);
            }
            Change::Verdict(question, verdict) => {
                self.dirty.extend(self.access.answered(question, verdict));
            }
        }
    }

    /// One whose copies of Services keep their `externalIPs`, or do not.
    #[must_use]
    pub fn with_external_ips(kept: bool) -> Self {
        Self { external_ips: kept, ..Self::default() }
    }

    /// What has to be asked of the hub's API.
    pub fn questions(&mut self) -> Vec<Question> {
        self.access.take_questions()
    }

    /// What has to be asked again from time to time.
    pub fn stale_questions(&mut self) -> Vec<Question> {
        self.access.stale()
    }

    /// Policies that do not count, since the last time.
    pub fn refusals(&mut self) -> Vec<Refusal> {
        self.access.take_refusals()
    }

    fn concerns(&mut self, whom: impl Fn(&ObjectKey, &Value) -> bool) {
        let found = self.templates.iter().filter(|(key, template)| whom(key, template));
        self.dirty.extend(found.map(|(key, _)| key.clone()));
    }

    /// Plans a workload anew, whatever version its template is of.
    fn mark(&mut self, workload: &Workload) {
        let keys = self.kinds.iter().filter_map(|kind| workload.key(kind));
        self.dirty.extend(keys.filter(|key| self.templates.contains_key(key)));
    }

    /// Kinds whose templates have to be known from now on.
    pub fn new_kinds(&mut self) -> Vec<Kind> {
        std::mem::take(&mut self.fresh)
    }

    fn knows(&mut self, kind: &Kind) {
        if !self.kinds.contains(kind) {
            self.kinds.insert(kind.clone());
            self.fresh.push(kind.clone());
        }
    }

    /// A template, if it is there.
    pub fn template(&self, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.templates.get(key)
    }

    /// Plans a template anew, although nothing is known to have changed.
    pub fn look_again(&mut self, key: &ObjectKey) {
        self.knows(&key.kind);
        self.dirty.insert(key.clone());
    }

    /// Whether anything waits to be planned.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Plans the next of what changed.
    pub fn plan_next(&mut self) -> Option<(ObjectKey, Outcome)> {
        self.plan_next_of(|_| true)
    }

    /// Plans the next of what changed, among kinds whose templates are all known: one that is not known yet is not gone.
    pub fn plan_next_of(&mut self, known: impl Fn(&Kind) -> bool) -> Option<(ObjectKey, Outcome)> {
        // Autoscalers that were placed in a former life, and what they scale is not known yet: until then replicas stay as they are.
        let unread: Vec<&Kind> =
            self.kinds.iter().filter(|kind| autoscale::is_autoscaler(kind) && !known(kind)).collect();
        let placed = |kind: &Kind, namespace: &str| {
            self.decided.keys().any(|key| key.kind == *kind && key.namespace == namespace)
        };
        let waits = |key: &ObjectKey| {
            object::has_replicas(&key.kind) && unread.iter().any(|kind| placed(kind, &key.namespace))
        };
        let key = self.dirty.iter().find(|key| known(&key.kind) && !waits(key)).cloned()?;
        self.dirty.remove(&key);
        let outcome = self.plan(&key);
        Some((key, outcome))
    }

    /// Whether a policy speaks of no template at all.
    pub fn is_idle(&self, id: &PolicyId) -> bool {
        let Some(spec) = self.policies.get(id) else { return false };
        !self.templates.iter().any(|(key, template)| {
            id.namespace.as_ref().is_none_or(|own| *own == key.namespace)
                && choose::meant(&spec.resource_selectors, key, template).is_some()
        })
    }

    /// Plans a template. Twice the same, if nothing changed in between.
    pub fn plan(&mut self, key: &ObjectKey) -> Outcome {
        let outcome = self.planned(key);
        self.access.planned(key);
        outcome
    }

    fn planned(&mut self, key: &ObjectKey) -> Outcome {
        let Some(template) = self.templates.get(key).cloned() else {
            let decided = self.decided.remove(key);
            self.goes_along(key, &BTreeSet::new());
            return Outcome::Nowhere { preserve: decided.is_some_and(|decided| decided.preserve) };
        };
        let Some(barred) = self.barred(key, &template) else { return Outcome::Undecided };
        let (decision, nowhere) = match self.decide(key, &template, &barred) {
            Some((decision, nowhere)) => (Some(decision), nowhere),
            None => (None, None),
        };
        let needs = match &decision {
            Some(decision) if decision.propagate_deps => dependencies::dependencies(&template),
            Some(_) | None => BTreeSet::new(),
        };
        let changed = self.decided.get(key) != decision.as_ref();
        match &decision {
            Some(decision) => drop(self.decided.insert(key.clone(), decision.clone())),
            None => drop(self.decided.remove(key)),
        }
        if changed {
            self.dirty.extend(self.needs.get(key).into_iter().flatten().cloned());
            if let Some(workload) = self.autoscalers.target(key).cloned() {
                self.mark(&workload);
            }
        }
        self.goes_along(key, &needs);
        let required_by = self.needed_by.get(key).cloned().unwrap_or_default();
        if decision.is_none() && required_by.is_empty() {
            return Outcome::Nowhere { preserve: false };
        }
        Outcome::Placed(Box::new(self.placed(key, &template, decision, required_by, nowhere)))
    }

    /// The policies that speak of it and do not count; none if that is not known of all.
    fn barred(&mut self, key: &ObjectKey, template: &Value) -> Option<BTreeSet<PolicyId>> {
        let Self { access, stamps, policies, .. } = self;
        let (mut barred, mut known) = (BTreeSet::new(), true);
        for (id, spec) in policies.iter().filter(|(id, _)| choose::in_reach(id, key)) {
            let stamp = stamps.get(id).unwrap_or(&Stamp::Missing);
            let unasked = match stamp {
                Stamp::By(author) => author.is_master(),
                Stamp::Unchecked => true,
                Stamp::Missing => false,
            };
            if unasked || choose::meant(&spec.resource_selectors, key, template).is_none() {
                continue;
            }
            match access.stamped(stamp, key) {
                Counts::Yes => {}
                Counts::Unknown => known = false,
                Counts::No(why) => {
                    access.refuse(id, false, &why);
                    barred.insert(id.clone());
                }
            }
        }
        known.then_some(barred)
    }

    /// Which policy has it, and where it goes.
    fn decide(
        &self,
        key: &ObjectKey,
        template: &Value,
        barred: &BTreeSet<PolicyId>,
    ) -> Option<(Decision, Option<Nowhere>)> {
        let uid = template["metadata"]["uid"].as_str().unwrap_or_default();
        // What was decided of another one of this name does not speak of this one.
        let before = self.decided.get(key).filter(|before| before.uid.is_empty() || before.uid == uid);
        let owner = before.and_then(|before| before.policy.as_ref());
        let mut decision = match choose::choose(&self.policies, barred, key, template, owner) {
            Some((id, spec)) => Decision {
                policy: Some(id.clone()),
                author: self.stamps.get(id).and_then(asked_about),
                uid: uid.to_owned(),
                placement: spec.placement.clone(),
                written: self.written.get(id).cloned().unwrap_or_default(),
                propagate_deps: spec.propagate_deps,
                conflict: spec.conflict_resolution,
                suspension: spec.suspension.clone(),
                preserve: spec.preserve_resources_on_deletion,
                ..Decision::default()
            },
            // Its policy is gone: it stays where it is, by what that policy said.
            None => Decision { policy: None, uid: uid.to_owned(), ..before?.clone() },
        };
        let there: BTreeSet<ClusterId> =
            before.into_iter().flat_map(|before| before.clusters.keys()).cloned().collect();
        let selected = match select(&decision.placement, &self.clusters, &there) {
            Ok(selected) => selected,
            Err(nowhere) => {
                (decision.clusters, decision.affinity) = (BTreeMap::new(), None);
                return Some((decision, Some(nowhere)));
            }
        };
        decision.affinity = selected.affinity;
        decision.clusters = match object::replicas(template) {
            None => selected.clusters.into_iter().map(|id| (id, None)).collect(),
            Some(replicas) => {
                let chosen = self.clusters.iter().filter(|(id, _)| selected.clusters.contains(*id));
                let chosen = chosen.map(|(id, fact)| (id.clone(), fact)).collect();
                let had = before.into_iter().flat_map(|before| &before.clusters);
                let had = had.map(|(id, replicas)| (id.clone(), replicas.unwrap_or(0))).collect();
                let scheduling = decision.placement.replica_scheduling.as_ref();
                let divided = divide::divide(scheduling, replicas, &chosen, &had);
                divided.into_iter().map(|(id, replicas)| (id, Some(replicas))).collect()
            }
        };
        Some((decision, None))
    }

    /// Notes what goes along with a template.
    fn goes_along(&mut self, key: &ObjectKey, needs: &BTreeSet<ObjectKey>) {
        let before = replace(&mut self.needs, key, Some(needs.clone()).filter(|needs| !needs.is_empty()));
        let before = before.unwrap_or_default();
        for gone in before.difference(needs) {
            if let Some(parents) = self.needed_by.get_mut(gone) {
                parents.remove(key);
                if parents.is_empty() {
                    self.needed_by.remove(gone);
                }
            }
            self.dirty.insert(gone.clone());
        }
        for new in needs.difference(&before) {
            self.knows(&new.kind);
            self.needed_by.entry(new.clone()).or_default().insert(key.clone());
            self.dirty.insert(new.clone());
        }
    }

    /// Clusters that are named and are no members.
    fn unknown(&self, placement: &Placement) -> BTreeSet<String> {
        let groups = placement.cluster_affinities.iter().map(|group| &group.affinity);
        let named =
            placement.cluster_affinity.iter().chain(groups).flat_map(|affinity| &affinity.cluster_names);
        named.filter(|name| !self.clusters.contains_key(name.as_str())).cloned().collect()
    }
}

/// The author of a stamp, where something has to be asked about them.
fn asked_about(stamp: &Stamp) -> Option<Arc<Author>> {
    match stamp {
        Stamp::By(author) => Some(Arc::clone(author)).filter(|author| !author.is_master()),
        Stamp::Unchecked | Stamp::Missing => None,
    }
}

/// Whether a template may leave the hub at all: what a control plane keeps for itself does not.
pub fn travels(key: &ObjectKey, template: &Value) -> bool {
    let reserved = namespace::is_control_plane(&key.namespace);
    let own = [kind::policy::GROUP, kind::work::GROUP, kind::cluster::GROUP].contains(&key.kind.group());
    let made = match (key.kind.group(), key.kind.kind.as_str()) {
        ("", "ConfigMap") => key.name == "kube-root-ca.crt",
        ("", "ServiceAccount") => key.name == "default",
        ("", "Service") => service::is_kubernetes_api(&key.namespace, &key.name),
        ("", "Secret") => template["type"] == "kubernetes.io/service-account-token",
        ("", "Event") | ("events.k8s.io", "Event") | ("coordination.k8s.io", "Lease") => true,
        _ => false,
    };
    !(reserved || own || made)
}

fn replace<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, key: &K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key.clone(), value),
        None => map.remove(key),
    }
}
