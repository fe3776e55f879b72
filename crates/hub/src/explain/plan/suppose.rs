//! Tries changes on a copy of the engine. Pure: objects in, plans before and after out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atoll_api::explain::Remark;
use atoll_api::explain::plan::{Action, Ignored, PlacementChange, PlanRequest, Supposed};
use atoll_api::names::annotation::{self, import};
use atoll_api::names::code::Code;
use atoll_api::names::kind::{mcs, networking, own};
use atoll_api::types::{MultiClusterService, SharingPolicy};
use atoll_engine::engine::Engine;
use atoll_engine::facts::NamespaceState;
use atoll_engine::intent::imports::ImportTo;
use atoll_engine::names::{ClusterId, Namespace, ServiceKey};
use atoll_engine::placement::Outcome as Placement;
use atoll_engine::plan::{ImportPlan, Plan};
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use atoll_member::imagine::{self, Imagined, Meaning};
use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::Namespace as NamespaceObject;
use serde_json::Value;

use super::diff::Changes;
use super::placements;
use crate::mcs::edge;
use crate::policies::{Moved, Trial};
use crate::services::{fences, imports};

/// What the hub knows that the engine does not.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// The hub's uid.
    pub(super) hub: Arc<str>,
    /// Whether load balancers are ours to make.
    pub(super) balances: bool,
    /// When it is supposed to happen.
    pub(super) now: Time,
}

/// A question that can't be answered as it is put.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unclear {
    #[error("{object} ({place}): {why}")]
    Object { object: String, place: String, why: String },
    #[error("`{0}` is not a member of this clusterset")]
    NoMember(String),
}

/// Plans of services, before or after.
type Plans = BTreeMap<ServiceKey, Arc<Plan>>;

/// What comes of it.
pub(super) struct Outcome {
    pub(super) changes: Changes,
    pub(super) placements: Vec<PlacementChange>,
    pub(super) ignored: Vec<Ignored>,
}

struct Supposition {
    engine: Engine,
    setting: Setting,
    members: BTreeMap<ClusterId, Imagined>,
    ignored: Vec<Ignored>,
    /// ServiceImports of others that would be there.
    foreign: BTreeSet<(ClusterId, ServiceKey)>,
    /// What policies plan by, if that is known.
    trial: Option<Trial>,
    changes: Changes,
}

/// What would come of it if all of this happened to a copy of the engine.
pub(super) fn suppose(
    mut engine: Engine,
    trial: Option<Trial>,
    request: &PlanRequest,
    setting: Setting,
) -> Result<Outcome, Unclear> {
    let now = setting.now;
    let mut before: Plans = engine.plans().map(|(key, plan)| (key.clone(), Arc::clone(plan))).collect();
    before.extend(plans(&mut engine, now)); // what waits for a plan now is no consequence
    let mut supposed = Supposition {
        engine,
        setting,
        members: BTreeMap::new(),
        ignored: Vec::new(),
        foreign: BTreeSet::new(),
        trial,
        changes: Changes::default(),
    };
    for there in &request.current {
        if let Some(cluster) = &there.cluster {
            let id = supposed.member(cluster)?;
            let member = supposed.imagined(&id);
            member.is_there(&there.object).map_err(|why| unclear(&there.object, Some(cluster), &why))?;
        } else if let Some(trial) = &mut supposed.trial {
            trial.is_there(&there.object);
        }
    }
    // What policies bring to members is there before what is applied in them.
    for change in request.changes.iter().filter(|change| change.cluster.is_none()) {
        supposed.in_hub(change, request)?;
    }
    let leaving: Vec<ClusterId> =
        request.without.iter().map(|cluster| supposed.member(cluster)).collect::<Result<_, _>>()?;
    let placements = supposed.placements(&leaving);
    for change in &request.changes {
        if let Some(cluster) = &change.cluster {
            supposed.in_member(cluster, change)?;
        }
    }
    for id in &leaving {
        let _ = supposed.engine.apply(id, Change::Left);
    }
    let after = plans(&mut supposed.engine, now);
    let Supposition { ignored, foreign, mut changes, .. } = supposed;
    for (key, after) in &after {
        let before = before.get(key).map(|plan| &**plan);
        let alone = alone(key, before, &foreign, &mut changes);
        changes.add(key, before, Some(after), &alone);
    }
    Ok(Outcome { changes, placements, ignored })
}

/// Plans all that is dirty; the last plan of each service counts.
fn plans(engine: &mut Engine, now: Time) -> Plans {
    let mut plans = Plans::new();
    while let Some(outcome) = engine.plan_next(now) {
        plans.insert(outcome.plan.service.clone(), outcome.plan);
    }
    plans
}

/// The clusters in which a ServiceImport of another owner would stand in the way of ours. One of ours that is there stays ours.
fn alone(
    key: &ServiceKey,
    before: Option<&Plan>,
    foreign: &BTreeSet<(ClusterId, ServiceKey)>,
    changes: &mut Changes,
) -> BTreeSet<ClusterId> {
    let held = |id: &ClusterId| {
        let part = before.and_then(|plan| plan.clusters.get(id));
        part.is_some_and(|part| matches!(part.import, ImportPlan::Present { .. } | ImportPlan::Untouched(_)))
    };
    let ids: BTreeSet<ClusterId> =
        foreign.iter().filter(|(id, of)| of == key && !held(id)).map(|(id, _)| id.clone()).collect();
    for id in &ids {
        let message = format!(
            "the ServiceImport {key} would not be Atoll's: Atoll leaves it alone, and does not import here"
        );
        changes.problem(id, key, Remark::new(Code::NotManaged, message));
    }
    ids
}

impl Supposition {
    fn member(&self, name: &str) -> Result<ClusterId, Unclear> {
        let id = ClusterId::parse(name).ok();
        let id = id.filter(|id| self.engine.world().clusters.contains_key(id));
        id.ok_or_else(|| Unclear::NoMember(short(name)))
    }

    fn imagined(&mut self, id: &ClusterId) -> &mut Imagined {
        let (world, hub, now) = (self.engine.world(), &self.setting.hub, self.setting.now);
        self.members.entry(id.clone()).or_insert_with(|| Imagined::of(world, id, Arc::clone(hub), now))
    }

    fn in_member(&mut self, cluster: &str, change: &Supposed) -> Result<(), Unclear> {
        let id = self.member(cluster)?;
        let mut tell = Vec::new();
        let member = self.imagined(&id);
        let meaning = match change.action {
            Action::Apply => member.applied(&change.object, &mut tell),
            Action::Delete => member.deleted(&change.object, &mut tell),
        };
        let meaning = meaning.map_err(|why| unclear(&change.object, Some(cluster), &why))?;
        for change in tell {
            let _ = self.engine.apply(&id, change);
        }
        match meaning {
            Meaning::Fact { left_out } => {
                for problem in left_out {
                    self.ignore(change, &problem.to_string());
                }
            }
            Meaning::Ours => self.ignore(change, "Atoll manages such objects: it would write its own again"),
            Meaning::ForeignImport(key) => drop(self.foreign.insert((id, key))),
            Meaning::Misnamed => {
                self.ignore(change, "no Service can have this name, so nothing would be exported");
            }
            Meaning::NoFact => self.ignore(
                change,
                "it belongs to no Service of the cluster: it has no kubernetes.io/service-name label, a type other \
                 than IPv4 and IPv6, or another multi-cluster controller wrote it",
            ),
            Meaning::NotRead => self.ignore(change, "Atoll does not read objects of this kind in members"),
        }
        Ok(())
    }

    fn in_hub(&mut self, change: &Supposed, request: &PlanRequest) -> Result<(), Unclear> {
        let object = &change.object;
        let version = text(object, "/apiVersion");
        let (group, _) = version.split_once('/').unwrap_or(("", version));
        match (group, text(object, "/kind")) {
            (networking::GROUP, networking::MULTI_CLUSTER_SERVICE) => self.multi_cluster_service(change),
            (own::GROUP, own::SHARING_POLICY) => self.sharing_policy(change, request),
            (NamespaceObject::GROUP, NamespaceObject::KIND) => {
                self.namespace(change)?;
                self.template(change)
            }
            (mcs::GROUP, mcs::SERVICE_EXPORT) => {
                self.ignore(
                    change,
                    "a ServiceExport counts in the cluster that has the Service: use --in CLUSTER",
                );
                Ok(())
            }
            _ => self.template(change),
        }
    }

    fn multi_cluster_service(&mut self, change: &Supposed) -> Result<(), Unclear> {
        let bad = |why: &dyn std::fmt::Display| unclear(&change.object, None, &why);
        let name = (text(&change.object, "/metadata/namespace"), text(&change.object, "/metadata/name"));
        let key = ServiceKey::parse(name.0, name.1).map_err(|why| bad(&why))?;
        let asked = match change.action {
            Action::Delete => None,
            Action::Apply => {
                let object: MultiClusterService =
                    serde_json::from_value(change.object.clone()).map_err(|why| bad(&why))?;
                let asked = edge::asked(&object, self.setting.balances);
                if asked.is_none() {
                    self.ignore(change, "its type is not one that Atoll serves, so nothing would follow");
                }
                for remark in asked.iter().flat_map(|asked| &asked.remarks) {
                    self.ignore(change, remark);
                }
                asked
            }
        };
        let author = asked.as_ref().and_then(|asked| asked.author.clone());
        let intent = asked.map(|asked| asked.intent);
        if let Some(trial) = &mut self.trial {
            trial.imply(&key, intent.as_ref(), author.as_deref());
        }
        self.engine.intend(key, intent);
        Ok(())
    }

    /// A policy, a member's `Cluster`, or an object that policies may bring somewhere.
    fn template(&mut self, change: &Supposed) -> Result<(), Unclear> {
        let Some(trial) = &mut self.trial else {
            self.ignore(change, "the hub has not listed its policies yet; ask again in a few seconds");
            return Ok(());
        };
        let there = change.action == Action::Apply;
        trial.apply(&change.object, there).map_err(|why| unclear(&change.object, None, &why))
    }

    /// Where templates would go; what members would have of it is there from here on.
    fn placements(&mut self, leaving: &[ClusterId]) -> Vec<PlacementChange> {
        let Some(mut trial) = self.trial.take() else { return Vec::new() };
        leaving.iter().for_each(|id| trial.left(id));
        let (moved, new) = trial.moved();
        for kind in new {
            self.ignored.push(Ignored {
                object: kind.to_string(),
                cluster: None,
                why: "no policy has selected this kind so far: only objects of it that were sent along are planned".to_owned(),
            });
        }
        for one in &moved {
            self.brought(one, &mut trial);
        }
        moved.iter().filter_map(placements::change).collect()
    }

    /// What members would have because a template goes there, or would no longer have.
    fn brought(&mut self, moved: &Moved, trial: &mut Trial) {
        let key = ServiceKey::parse(&moved.template.namespace, &moved.template.name).ok();
        if imports::is_import(&moved.template.kind) {
            if let Some(key) = key {
                self.imports(key, moved, trial);
            }
            return;
        }
        let exports = moved.template.kind.is(mcs::GROUP, mcs::SERVICE_EXPORT);
        let preserved = match &moved.after {
            Placement::Undecided => true,
            Placement::Nowhere { preserve } => *preserve,
            Placement::Placed(_) => false,
        };
        let copies = |outcome: &Placement| placements::placed(outcome).map(|placed| placed.copies.clone());
        let (was, is) = (copies(&moved.before).unwrap_or_default(), copies(&moved.after).unwrap_or_default());
        for (id, copy) in &is {
            let same = was.get(id).is_some_and(|before| before.object == copy.object);
            let Ok(object) = &copy.object else { continue };
            if same || copy.suspended || copy.observed || !self.engine.world().clusters.contains_key(id) {
                continue;
            }
            let service = key.as_ref().filter(|_| exports).and_then(|key| trial.service(key, id));
            if let Some(service) = service {
                let _ = self.imagined(id).is_there(&service); // a copy: it can be read
            }
            self.tell(id, |member, tell| member.applied(object, tell));
        }
        for (id, copy) in was.iter().filter(|(id, _)| !preserved && !is.contains_key(*id)) {
            let Ok(object) = &copy.object else { continue };
            if !self.engine.world().clusters.contains_key(id) {
                continue;
            }
            self.tell(id, |member, tell| member.deleted(object, tell));
        }
    }

    /// What a copy means in a member. One that can't be read there is nothing to Atoll.
    fn tell(
        &mut self,
        id: &ClusterId,
        happens: impl FnOnce(&mut Imagined, &mut Vec<Change>) -> Result<Meaning, imagine::Unclear>,
    ) {
        let mut tell = Vec::new();
        let _ = happens(self.imagined(id), &mut tell);
        for change in tell {
            let _ = self.engine.apply(id, change);
        }
    }

    /// Where a ServiceImport of the hub goes.
    fn imports(&mut self, key: ServiceKey, moved: &Moved, trial: &Trial) {
        let to = match &moved.after {
            Placement::Undecided => return,
            Placement::Nowhere { .. } => None,
            Placement::Placed(placed) => {
                let goes = placed.copies.iter().filter(|(_, copy)| copy.object.is_ok());
                let template = trial.template(&moved.template);
                (!placed.copies.is_empty()).then(|| ImportTo {
                    clusters: goes.map(|(id, _)| id.clone()).collect(),
                    ports: template.map(|template| imports::ports(template)).unwrap_or_default(),
                })
            }
        };
        self.engine.ask_import(key, to);
    }

    fn sharing_policy(&mut self, change: &Supposed, request: &PlanRequest) -> Result<(), Unclear> {
        let bad = |why: &dyn std::fmt::Display| unclear(&change.object, None, &why);
        let read = |object: &Value| serde_json::from_value::<SharingPolicy>(object.clone());
        let name = text(&change.object, "/metadata/name");
        let mut fences = (*self.engine.world().fences).clone();
        // The engine knows what policies say, and not how they are called.
        let same = |object: &Value| {
            text(object, "/kind") == own::SHARING_POLICY && text(object, "/metadata/name") == name
        };
        let earlier = request.changes.iter().take_while(|other| !std::ptr::eq(*other, change));
        let earlier = earlier.filter(|other| other.cluster.is_none() && same(&other.object)).last();
        let known = match earlier {
            Some(earlier) => Some(&earlier.object).filter(|_| earlier.action == Action::Apply),
            None => request
                .current
                .iter()
                .find(|one| one.cluster.is_none() && same(&one.object))
                .map(|one| &one.object),
        };
        if let Some(known) = known {
            let known = fences::read(&read(known).map_err(|why| bad(&why))?);
            if let Some(at) = fences.policies.iter().position(|policy| *policy == known) {
                fences.policies.remove(at);
            }
        }
        if change.action == Action::Apply {
            fences.policies.push(fences::read(&read(&change.object).map_err(|why| bad(&why))?));
        }
        self.engine.set_fences(fences);
        Ok(())
    }

    /// Whether imports of the namespace have to be asked for; and the namespace in every member, if the hub makes it there.
    fn namespace(&mut self, change: &Supposed) -> Result<(), Unclear> {
        let object = &change.object;
        let name =
            Namespace::parse(text(object, "/metadata/name")).map_err(|why| unclear(object, None, &why))?;
        let annotations = object.pointer("/metadata/annotations");
        let mode = annotations.and_then(|all| all.get(annotation::IMPORT)).and_then(Value::as_str);
        let mut explicit = self.engine.world().imports.explicit.clone();
        match (change.action, mode == Some(import::EXPLICIT)) {
            (Action::Apply, true) => drop(explicit.insert(name.clone())),
            (Action::Apply, false) | (Action::Delete, _) => drop(explicit.remove(&name)),
        }
        self.engine.set_explicit(explicit);
        let makes = self.trial.as_ref().is_some_and(|trial| trial.makes_namespace(object));
        if change.action == Action::Delete || !makes {
            return Ok(()); // what the hub's users delete there is not deleted in members
        }
        let world = self.engine.world();
        let lacking = world.clusters.iter().filter(|(_, cluster)| !cluster.namespaces.contains_key(&name));
        for id in lacking.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            let made = Change::Namespace(name.clone(), Some(NamespaceState::Active));
            let _ = self.engine.apply(&id, made);
            self.changes.namespace(&id, &name);
        }
        Ok(())
    }

    fn ignore(&mut self, change: &Supposed, why: &str) {
        self.ignored.push(Ignored {
            object: named(&change.object),
            cluster: change.cluster.clone(),
            why: why.to_owned(),
        });
    }
}

fn unclear(object: &Value, cluster: Option<&str>, why: &dyn std::fmt::Display) -> Unclear {
    let place = cluster.map_or_else(|| "in the hub".to_owned(), |cluster| format!("in {}", short(cluster)));
    Unclear::Object { object: named(object), place, why: short(&why.to_string()) }
}

/// An object as people say it: `Kind namespace/name`.
fn named(object: &Value) -> String {
    let [kind, namespace, name] =
        ["/kind", "/metadata/namespace", "/metadata/name"].map(|pointer| short(text(object, pointer)));
    let name = if name.is_empty() { "without a name".to_owned() } else { name };
    let kind = if kind.is_empty() { "object" } else { &kind };
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// Whoever sent it may have sent a megabyte.
fn short(text: &str) -> String {
    const LONGEST: usize = 300;
    let cut = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default();
    if cut.len() < text.len() { format!("{cut}…") } else { text.to_owned() }
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
