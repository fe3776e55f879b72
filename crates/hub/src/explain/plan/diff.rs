//! What lies between two plans of a service, as members and people will see it. Pure.
//!
//! Objects are compared as the member would write them ([`wanted`]), so what is equal here costs no request there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use atoll_api::explain::Remark;
use atoll_api::explain::plan::{
    Change, ClusterChanges, Condition, ConditionChange, ConflictChange, FieldChange, ObjectChange,
    ServiceChange, ServiceRemark,
};
use atoll_api::names::kind::mcs;
use atoll_engine::facts::Protocol;
use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, Namespace, ServiceKey, ServiceName, SliceName};
use atoll_engine::plan::{Backend, ClusterPlan, Crossing, ImportPlan, Plan, Slice};
use atoll_engine::reason::text;
use atoll_engine::time::Time;
use atoll_member::core::object::{ConditionBody, ImportBody, ServiceBody};
use atoll_member::core::wanted::{self, DerivedState};
use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::{Namespace as NamespaceObject, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::fields::{self, Fields};
use super::{endpoints, remarks};

/// What changes, of all services.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) clusters: BTreeMap<ClusterId, ClusterChanges>,
    pub(super) conflicts: Vec<ConflictChange>,
    pub(super) hub: Vec<ServiceChange>,
}

/// Where clients come in, and where it leads to.
type At = ((Protocol, u16), SocketAddr);
type Backends = BTreeMap<At, Backend>;

fn backend(((protocol, port), address): &At) -> String {
    format!("{address} for port {port}/{}", protocol.as_str())
}

/// What a cluster holds of a service.
#[derive(Default)]
struct Holds<'a> {
    service: Option<ServiceBody>,
    import: Option<(ImportBody, Vec<ClusterId>)>,
    slices: BTreeMap<&'a SliceName, Hung<'a>>,
    conditions: Vec<(&'static str, ConditionBody)>,
}

/// A slice, and the Service that it hangs on.
struct Hung<'a> {
    intent: Intent,
    slice: &'a Slice,
    on: Option<&'a ServiceName>,
    headless: bool,
}

impl Changes {
    /// Adds what lies between two plans of a service. `alone`: clusters whose import of it Atoll leaves to others.
    pub(super) fn add(
        &mut self,
        key: &ServiceKey,
        before: Option<&Plan>,
        after: Option<&Plan>,
        alone: &BTreeSet<ClusterId>,
    ) {
        let ids: BTreeSet<&ClusterId> =
            [before, after].into_iter().flatten().flat_map(|plan| plan.clusters.keys()).collect();
        for id in ids {
            let part = |plan: Option<&Plan>| plan.and_then(|plan| plan.clusters.get(id)).cloned();
            let (was, is) = (part(before), part(after));
            let mut changes = nothing(id);
            if was != is && !alone.contains(id) {
                objects(key, id, was.as_deref(), is.as_deref(), &mut changes);
                changes.endpoints = endpoints::changes(key, was.as_deref(), is.as_deref());
            }
            let known: Vec<Remark> = remarks::of(before, id);
            let news = remarks::of(after, id).into_iter().filter(|remark| !known.contains(remark));
            changes.problems =
                news.map(|remark| ServiceRemark { service: key.to_string(), remark }).collect();
            self.merge(id, changes);
        }
        self.conflicts(key, before, after);
        self.crossing(key, before, after);
    }

    /// Something stands in the way of a service in a cluster.
    pub(super) fn problem(&mut self, id: &ClusterId, key: &ServiceKey, remark: Remark) {
        let problems = vec![ServiceRemark { service: key.to_string(), remark }];
        self.merge(id, ClusterChanges { problems, ..nothing(id) });
    }

    /// The hub makes a namespace in a cluster.
    pub(super) fn namespace(&mut self, id: &ClusterId, name: &Namespace) {
        let made = ObjectChange {
            change: Change::Add,
            kind: NamespaceObject::KIND.to_owned(),
            namespace: String::new(),
            name: name.to_string(),
            why: "the hub makes its namespaces in every member".to_owned(),
            fields: Vec::new(),
        };
        self.merge(id, ClusterChanges { objects: vec![made], ..nothing(id) });
    }

    fn merge(&mut self, id: &ClusterId, new: ClusterChanges) {
        let ClusterChanges { cluster: _, objects, endpoints, conditions, problems } = new;
        if objects.is_empty() && endpoints.is_empty() && conditions.is_empty() && problems.is_empty() {
            return;
        }
        let all = self.clusters.entry(id.clone()).or_insert_with(|| nothing(id));
        all.objects.extend(objects);
        all.endpoints.extend(endpoints);
        all.conditions.extend(conditions);
        all.problems.extend(problems);
    }

    fn conflicts(&mut self, key: &ServiceKey, before: Option<&Plan>, after: Option<&Plan>) {
        let (was, is) = (remarks::conflicts(before), remarks::conflicts(after));
        let mut note = |change, conflict: &atoll_engine::reason::Conflict| {
            self.conflicts.push(ConflictChange {
                change,
                service: key.to_string(),
                winner: conflict.winner.to_string(),
                remark: Remark::new(conflict.about.code(), text::conflict(conflict)),
            });
        };
        for conflict in &is {
            match was.iter().find(|before| before.about.code() == conflict.about.code()) {
                None => note(Change::Add, conflict),
                Some(before) if before != conflict => note(Change::Change, conflict),
                Some(_) => {}
            }
        }
        for conflict in was {
            if is.iter().all(|after| after.about.code() != conflict.about.code()) {
                note(Change::Remove, &conflict);
            }
        }
    }

    fn crossing(&mut self, key: &ServiceKey, before: Option<&Plan>, after: Option<&Plan>) {
        let none = Crossing::default();
        let of = |plan: Option<&Plan>| plan.and_then(|plan| plan.crossing.clone());
        let (was, is) = (of(before), of(after));
        let (was, is) = (was.as_deref().unwrap_or(&none), is.as_deref().unwrap_or(&none));
        let mut fields = Fields::default();
        let clusters = |ids: &BTreeSet<ClusterId>| fields::clusters(&ids.iter().cloned().collect::<Vec<_>>());
        fields.note("providers", &was.providers, &is.providers, clusters);
        fields.note("consumers", &was.consumers, &is.consumers, clusters);
        let news = is.notes.iter().filter(|note| !was.notes.contains(note));
        let remarks: Vec<Remark> =
            news.map(|note| Remark::new(note.code(), text::cross_note(note))).collect();
        let none = Backends::new();
        let of = |plan: Option<&Plan>| plan.and_then(|plan| plan.balanced.clone());
        let (was, is) = (of(before), of(after));
        let was = was.as_ref().map_or(&none, |balanced| &balanced.backends);
        let is = is.as_ref().map_or(&none, |balanced| &balanced.backends);
        let listed = |one: &Backends, keep: &dyn Fn(&At) -> bool| {
            one.keys().filter(|at| keep(at)).map(backend).collect::<Vec<_>>()
        };
        let change = ServiceChange {
            service: key.to_string(),
            fields: fields.0,
            added: listed(is, &|at| !was.contains_key(at)),
            changed: listed(is, &|at| was.get(at).is_some_and(|before| is.get(at) != Some(before))),
            removed: listed(was, &|at| !is.contains_key(at)),
            remarks,
        };
        let ServiceChange { service: _, fields, added, changed, removed, remarks } = &change;
        let quiet = [added, changed, removed].iter().all(|list| list.is_empty());
        if !(fields.is_empty() && quiet && remarks.is_empty()) {
            self.hub.push(change);
        }
    }
}

fn nothing(id: &ClusterId) -> ClusterChanges {
    ClusterChanges {
        cluster: id.to_string(),
        objects: Vec::new(),
        endpoints: Vec::new(),
        conditions: Vec::new(),
        problems: Vec::new(),
    }
}

/// What a part says that its cluster holds.
fn holds<'a>(key: &'a ServiceKey, id: &ClusterId, part: Option<&'a ClusterPlan>) -> Holds<'a> {
    let Some(part) = part else { return Holds::default() };
    let mut holds = Holds::default();
    if let Some((import, derived)) = wanted::derived(&part.import) {
        holds.service = derived.map(|derived| wanted::service(key, import, derived));
        let (stale, withdrawn) = wanted::lost_sources(&part.import, None);
        let status = wanted::import_status(import, DerivedState::Usable, (&stale, &withdrawn), &[], Time(0));
        holds.import = Some((wanted::import(key, import, &[], None), status.clusters));
        holds.conditions.extend(status.conditions.into_iter().map(|one| (mcs::SERVICE_IMPORT, one)));
    }
    if let Some(status) = &part.export {
        let imports = matches!(part.import, ImportPlan::Present { .. });
        let conditions = wanted::export_status(status, (key, id, imports), &[], Time(0));
        holds.conditions.extend(conditions.into_iter().map(|one| (mcs::SERVICE_EXPORT, one)));
    }
    let headless = holds.import.as_ref().is_some_and(|(import, _)| import.headless);
    for (intent, slice) in wanted::slices(part) {
        let (on, headless) = match intent {
            Intent::Export => (wanted::derived_name(&part.import), headless),
            Intent::CrossCluster => (Some(&key.name), false),
        };
        holds.slices.insert(&slice.name, Hung { intent, slice, on, headless });
    }
    holds
}

/// Objects and conditions that differ.
fn objects(
    key: &ServiceKey,
    id: &ClusterId,
    before: Option<&ClusterPlan>,
    after: Option<&ClusterPlan>,
    into: &mut ClusterChanges,
) {
    let (was, is) = (holds(key, id, before), holds(key, id, after));
    let left_alone = after.is_some_and(|part| matches!(part.import, ImportPlan::Untouched(_)));
    let mut remade = false;
    if !left_alone {
        let gone = why_absent(after);
        if let (Some(before), Some(after)) = (&was.service, &is.service) {
            remade = before.name != after.name
                || before.headless != after.headless
                || before.families.first() != after.families.first();
        }
        match (&was.service, &is.service) {
            (Some(before), Some(after)) if before.name == after.name => {
                let fields = fields::service(before, after);
                if before != after {
                    let why = if remade { "deleted and made again" } else { "" };
                    into.objects.push(object(
                        Change::Change,
                        Service::KIND,
                        key,
                        before.name.as_str(),
                        why,
                        fields,
                    ));
                }
            }
            (before, after) => {
                if let Some(after) = after {
                    let from = is.import.as_ref().map_or(String::new(), |(_, from)| exported_by(from));
                    into.objects.push(object(
                        Change::Add,
                        Service::KIND,
                        key,
                        after.name.as_str(),
                        &from,
                        Vec::new(),
                    ));
                }
                if let Some(before) = before {
                    into.objects.push(object(
                        Change::Remove,
                        Service::KIND,
                        key,
                        before.name.as_str(),
                        &gone,
                        Vec::new(),
                    ));
                }
            }
        }
        match (&was.import, &is.import) {
            (Some((before, were)), Some((after, are))) => {
                let mut fields = fields::import((before, were), (after, are));
                if remade && !after.headless && fields.is_empty() {
                    fields.push(FieldChange {
                        field: "ips".to_owned(),
                        before: String::new(),
                        after: "those of the new derived Service".to_owned(),
                    });
                }
                if !fields.is_empty() {
                    into.objects.push(object(
                        Change::Change,
                        mcs::SERVICE_IMPORT,
                        key,
                        key.name.as_str(),
                        "",
                        fields,
                    ));
                }
            }
            (None, Some((_, from))) => {
                into.objects.push(object(
                    Change::Add,
                    mcs::SERVICE_IMPORT,
                    key,
                    key.name.as_str(),
                    &exported_by(from),
                    Vec::new(),
                ));
            }
            (Some(_), None) => {
                into.objects.push(object(
                    Change::Remove,
                    mcs::SERVICE_IMPORT,
                    key,
                    key.name.as_str(),
                    &gone,
                    Vec::new(),
                ));
            }
            (None, None) => {}
        }
    }
    slices(key, &was, &is, after, remade, into);
    conditions(key, &was, &is, left_alone, into);
}

fn slices(
    key: &ServiceKey,
    was: &Holds<'_>,
    is: &Holds<'_>,
    after: Option<&ClusterPlan>,
    remade: bool,
    into: &mut ClusterChanges,
) {
    for (name, new) in &is.slices {
        let from = format!("from {}", new.slice.source);
        let Some(old) = was.slices.get(name) else {
            into.objects.push(object(
                Change::Add,
                EndpointSlice::KIND,
                key,
                name.as_str(),
                &from,
                Vec::new(),
            ));
            continue;
        };
        let on = |hung: &Hung<'_>| hung.on.map_or("", ServiceName::as_str).to_owned();
        let moved = (new.intent == Intent::Export && remade)
            || (old.intent, old.on, old.headless) != (new.intent, new.on, new.headless);
        // Its name at the source and its notes are not written.
        let same = (&old.slice.source, old.slice.family, &old.slice.ports, &old.slice.endpoints)
            == (&new.slice.source, new.slice.family, &new.slice.ports, &new.slice.endpoints);
        if moved || !same {
            let fields = fields::slice(old.slice, new.slice, [&on(old), &on(new)]);
            into.objects.push(object(Change::Change, EndpointSlice::KIND, key, name.as_str(), &from, fields));
        }
    }
    for (name, old) in &was.slices {
        let kept = after.is_some_and(|part| wanted::keeps(part, old.intent, Some(&old.slice.source)));
        if !is.slices.contains_key(name) && !kept {
            let from = format!("from {}", old.slice.source);
            into.objects.push(object(
                Change::Remove,
                EndpointSlice::KIND,
                key,
                name.as_str(),
                &from,
                Vec::new(),
            ));
        }
    }
}

fn conditions(
    key: &ServiceKey,
    was: &Holds<'_>,
    is: &Holds<'_>,
    left_alone: bool,
    into: &mut ClusterChanges,
) {
    let say = |body: &ConditionBody| Condition {
        status: match body.status {
            Some(true) => "True",
            Some(false) => "False",
            None => "Unknown",
        }
        .to_owned(),
        reason: body.reason.clone(),
        message: body.message.clone(),
    };
    let find = |holds: &Holds<'_>, kind: &str, condition: &str| {
        let mut all = holds.conditions.iter();
        all.find(|(of, body)| *of == kind && *body.kind == *condition).map(|(_, body)| say(body))
    };
    let has = |holds: &Holds<'_>, kind: &str| holds.conditions.iter().any(|(of, _)| *of == kind);
    let mut seen = BTreeSet::new();
    for (kind, body) in is.conditions.iter().chain(&was.conditions) {
        if !seen.insert((*kind, body.kind.clone())) || (left_alone && *kind == mcs::SERVICE_IMPORT) {
            continue;
        }
        let (before, after) = (find(was, kind, &body.kind), find(is, kind, &body.kind));
        // The object goes, and its conditions with it; of an import that comes only what is wrong is worth a line.
        let comes_well = *kind == mcs::SERVICE_IMPORT
            && !has(was, kind)
            && after.as_ref().is_some_and(|after| after.status == "True");
        if before != after && has(is, kind) && !comes_well {
            into.conditions.push(ConditionChange {
                kind: (*kind).to_owned(),
                namespace: key.namespace.to_string(),
                name: key.name.to_string(),
                condition: body.kind.to_string(),
                before,
                after,
            });
        }
    }
}

fn object(
    change: Change,
    kind: &str,
    key: &ServiceKey,
    name: &str,
    why: &str,
    fields: Vec<FieldChange>,
) -> ObjectChange {
    let (kind, why, name) = (kind.to_owned(), why.to_owned(), name.to_owned());
    ObjectChange { change, kind, namespace: key.namespace.to_string(), name, why, fields }
}

fn exported_by(ids: &[ClusterId]) -> String {
    format!("exported by {}", fields::clusters(ids))
}

/// Why nothing of an import stays.
fn why_absent(part: Option<&ClusterPlan>) -> String {
    match part.map(|part| &part.import) {
        None => "the cluster is no member any more".to_owned(),
        Some(ImportPlan::Absent(why)) => text::absent(*why).to_owned(),
        Some(ImportPlan::Present { .. } | ImportPlan::Untouched(_)) => String::new(),
    }
}
