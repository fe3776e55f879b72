//! What is to be done with one target, decided when its turn has come.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, Namespace, ServiceKey, ServiceName, SliceName};
use atoll_engine::plan::{ClusterPlan, DispatchPlan, ImportPlan};

use super::Core;
use super::cache::{self, Copy, Held, HeldService};
use super::event::{Now, Request};
use super::object::{Attached, Fingerprint, Kind, ObjectName, PropertyName, SliceBody, Target};
use super::wanted::{self, DerivedState};
use atoll_link::Problem;

/// How long after its start a hub waits for members before it says that they import nothing.
const ALL_HEARD: Duration = Duration::from_secs(60);

/// What is to be done with a target.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is as it should be.
    Settled,
    /// Something else has to happen first; that will bring it back into the queue.
    Wait,
    /// These have to be made first.
    After(BTreeSet<Target>),
    /// It has to be read first.
    Read,
    /// This is to be sent; the print is what the object should then say.
    Send(Request, Option<Fingerprint>),
    /// It has another owner.
    Blocked(Problem),
}

use Verdict::{After, Blocked, Read, Send, Settled, Wait};

impl Core {
    pub(super) fn judge(&self, target: &Target, now: Now) -> Verdict {
        if !self.gate.may_write() {
            return Wait;
        }
        match target {
            Target::Service(key, name) => self.judge_service(key, name),
            Target::Import(key) => self.judge_import(key),
            Target::Slice(key, name) => self.judge_slice(key, name),
            Target::ImportStatus(key) => self.judge_import_status(key, now),
            Target::ExportStatus(key) => self.judge_export_status(key, now),
            Target::MisnamedStatus(namespace, name) => self.judge_misnamed(namespace, name, now),
            Target::Property(name) => self.judge_property(*name),
        }
    }

    pub(super) fn part(&self, key: &ServiceKey) -> Option<&ClusterPlan> {
        self.plans.get(key)?.as_deref()
    }

    fn import_plan(&self, key: &ServiceKey) -> Option<&ImportPlan> {
        self.part(key).map(|part| &part.import)
    }

    fn delete(&self, target: Target, copy: &Copy) -> Verdict {
        if copy.version.deleting {
            Wait
        } else if copy.doubted {
            Read
        } else if self.gate.may_delete() {
            Send(Request::Delete(target, copy.version.clone()), None)
        } else {
            Wait
        }
    }

    /// May something be made or changed for the import of the service here?
    fn obstacle(&self, key: &ServiceKey, kind: Kind, name: &str) -> Option<Verdict> {
        if self.closing.contains(&key.namespace) {
            return Some(Settled);
        }
        let object =
            |kind, name: &str| ObjectName { kind, namespace: Some(key.namespace.clone()), name: name.into() };
        // An import of another owner means that the other one serves it here, unless we do: then it was ours, or came later.
        let serving = self.cache.held.get(key).is_some_and(|held| !held.services.is_empty());
        let import =
            Some(object(Kind::Import, key.name.as_str())).filter(|_| kind == Kind::Import || !serving);
        let candidates = import.into_iter().chain([object(kind, name)]);
        let taken = candidates.into_iter().find(|object| self.cache.foreign.contains_key(object))?;
        Some(Blocked(Problem::Foreign { service: key.clone(), object: taken }))
    }

    /// May a slice of the service be dispatched here?
    fn dispatch_obstacle(&self, key: &ServiceKey, name: &SliceName) -> Option<Verdict> {
        if self.closing.contains(&key.namespace) {
            return Some(Settled);
        }
        let object = super::see::named(Kind::Slice, &key.namespace, name.as_str());
        let taken = self.cache.foreign.contains_key(&object);
        taken.then(|| Blocked(Problem::Foreign { service: key.clone(), object }))
    }

    fn judge_service(&self, key: &ServiceKey, name: &ServiceName) -> Verdict {
        let Some(plan) = self.import_plan(key) else { return Settled };
        let part = self.part(key);
        let held = self.cache.held.get(key);
        let service = held.and_then(|held| held.services.get(name));
        let target = || Target::Service(key.clone(), name.clone());
        let wanted = match plan {
            ImportPlan::Untouched(_) => return Settled,
            ImportPlan::Absent(_) => None,
            ImportPlan::Present { import, .. } => import
                .derived
                .as_ref()
                .filter(|derived| derived.name == *name)
                .map(|derived| (import, derived)),
        };
        let Some((import, derived)) = wanted else {
            let Some(service) = service else { return Settled };
            let hangs = |held: &Held| held.slices.values().any(|s| hangs_on(&s.attached, service));
            let successor =
                wanted::derived_name(plan).map(|next| held.is_some_and(|h| h.services.contains_key(next)));
            return match successor {
                // What is renamed stays until everything hangs on its successor.
                Some(false) => Wait,
                Some(true) if held.is_some_and(hangs) => Wait,
                Some(true) | None => self.delete(target(), &service.copy),
            };
        };
        if let Some(obstacle) = self.obstacle(key, Kind::Service, name.as_str()) {
            return obstacle;
        }
        let body = wanted::service(key, import, derived);
        let print = self.cache.printer.print(Some(&body));
        let Some(service) = service else {
            // Made anew after it was deleted: ask for the addresses that its users know.
            let known = held.and_then(|held| held.import.as_ref()).map(|import| &import.ips[..]);
            let wish = !body.headless
                && self.unwished.get(key).is_none_or(|refused| *refused < super::outcome::WISHES);
            let ips = known.filter(|_| wish).map(|ips| wanted::in_order(ips, &body.families));
            return Send(Request::Service { ips: ips.unwrap_or_default(), body, onto: None }, Some(print));
        };
        if let Some(verdict) = unsure(&service.copy) {
            return verdict;
        }
        if misshapen(service, body.headless, &body.families) {
            // Slices that could not be written again must not go with it.
            let kept = |held: &Held| {
                held.slices.values().any(|slice| {
                    part.is_some_and(|part| wanted::keeps(part, slice.intent, slice.source.as_ref()))
                        && slice.attached.owner.is_some()
                        && hangs_on(&slice.attached, service)
                })
            };
            return if held.is_some_and(kept) { Wait } else { self.delete(target(), &service.copy) };
        }
        if service.copy.says(print) {
            return Settled;
        }
        let ips = if body.headless {
            Vec::new()
        } else if service.families == body.families {
            service.ips.clone()
        } else {
            service.ips.iter().take(1).copied().collect()
        };
        Send(Request::Service { body, ips, onto: Some(service.copy.version.clone()) }, Some(print))
    }

    /// The derived Service, if slices can hang on it and the import can give its addresses.
    pub(super) fn usable_service(&self, key: &ServiceKey) -> Option<&HeldService> {
        let (import, derived) = wanted::derived(self.import_plan(key)?)?;
        let derived = derived?;
        let service = self.cache.held.get(key)?.services.get(&derived.name)?;
        let has_ip = import.spec.headless || !service.ips.is_empty();
        let good = !service.copy.version.deleting
            && has_ip
            && !misshapen(service, import.spec.headless, &derived.families);
        good.then_some(service)
    }

    /// Why the API server does not take the derived Service.
    fn derived_refused(&self, key: &ServiceKey) -> Option<&str> {
        let name = wanted::derived_name(self.import_plan(key)?)?;
        self.refused.get(&Target::Service(key.clone(), name.clone())).map(|why| &**why)
    }

    fn judge_import(&self, key: &ServiceKey) -> Verdict {
        let Some(plan) = self.import_plan(key) else { return Settled };
        let held = self.cache.held.get(key).and_then(|held| held.import.as_ref());
        let import = match plan {
            ImportPlan::Untouched(_) => return Settled,
            ImportPlan::Absent(_) => {
                return held.map_or(Settled, |held| self.delete(Target::Import(key.clone()), &held.copy));
            }
            ImportPlan::Present { import, .. } => import,
        };
        if let Some(obstacle) = self.obstacle(key, Kind::Import, key.name.as_str()) {
            return obstacle;
        }
        if let Some(verdict) = held.and_then(|held| unsure(&held.copy)) {
            return verdict;
        }
        let ips = match (&import.derived, self.usable_service(key)) {
            (Some(_), Some(service)) => &service.ips[..],
            // People look at the import first: it has to say what is wrong. The addresses that it had are wished for later.
            (Some(_), None) if self.derived_refused(key).is_some() => held.map_or(&[][..], |held| &held.ips),
            (Some(_), None) => return Wait,
            (None, _) => &[],
        };
        let body = wanted::import(key, import, ips, held.and_then(|held| held.stale.as_deref()));
        let print = self.cache.printer.print(Some(&body));
        if held.is_some_and(|held| held.copy.says(print)) {
            return Settled;
        }
        Send(Request::Import(body, held.map(|held| held.copy.version.clone())), Some(print))
    }

    fn judge_slice(&self, key: &ServiceKey, name: &SliceName) -> Verdict {
        let Some(part) = self.part(key) else { return Settled };
        let held = self.cache.held.get(key).and_then(|held| held.slices.get(name));
        let Some((intent, slice)) = wanted::slice(part, name) else {
            let Some(held) = held else { return Settled };
            return match (wanted::keeps(part, held.intent, held.source.as_ref()), held.intent) {
                (true, Intent::Export) => self.judge_kept(key, name, &part.import),
                (true, Intent::CrossCluster) => Settled, // It hangs on a Service that keeps its name.
                (false, _) => {
                    let awaited = match self.replaced.awaited(key, name) {
                        Some(awaited) => awaited.clone(),
                        None => self.successors(key, part, held.intent, held.source.as_ref()),
                    };
                    if awaited.is_empty() {
                        self.delete(Target::Slice(key.clone(), name.clone()), &held.copy)
                    } else {
                        After(awaited)
                    }
                }
            };
        };
        let obstacle = match intent {
            Intent::Export => self.obstacle(key, Kind::Slice, name.as_str()),
            Intent::CrossCluster => self.dispatch_obstacle(key, name),
        };
        if let Some(obstacle) = obstacle {
            return obstacle;
        }
        if let Some(verdict) = held.and_then(|held| unsure(&held.copy)) {
            return verdict;
        }
        let attached = match intent {
            Intent::Export => self.attachment(key, &part.import),
            // No owner: the Service is its users', and kube-proxy looks at the name.
            Intent::CrossCluster => {
                Some(Attached { to: Some(key.name.clone()), owner: None, headless: false })
            }
        };
        let Some(attached) = attached else { return Wait };
        let body = SliceBody { of: key.clone(), intent, attached, slice: Arc::clone(slice) };
        let print = self.cache.printer.print(Some(&body));
        if held.is_some_and(|held| held.copy.says(print)) {
            return Settled;
        }
        Send(Request::Slice(body, held.map(|held| held.copy.version.clone())), Some(print))
    }

    /// What is under way and may take over from a slice of this source: another name, or endpoints that have moved.
    fn successors(
        &self,
        key: &ServiceKey,
        part: &ClusterPlan,
        intent: Intent,
        source: Option<&ClusterId>,
    ) -> BTreeSet<Target> {
        let under_way = |target: &Target| self.queue.awaits(target) && !self.refused.contains_key(target);
        let slices: Vec<Target> = wanted::slices_of(part, intent)
            .filter(|slice| source.is_none_or(|source| slice.source == *source))
            .map(|slice| Target::Slice(key.clone(), slice.name.clone()))
            .collect();
        // Without their Service they are not even tried.
        let service = match intent {
            Intent::Export => wanted::derived_name(&part.import),
            Intent::CrossCluster => None,
        };
        let service = service
            .filter(|_| !slices.is_empty() && self.usable_service(key).is_none())
            .map(|name| Target::Service(key.clone(), name.clone()));
        slices.into_iter().chain(service).filter(under_way).collect()
    }

    /// A slice whose contents are not known: it only follows the derived Service.
    fn judge_kept(&self, key: &ServiceKey, name: &SliceName, plan: &ImportPlan) -> Verdict {
        if matches!(plan, ImportPlan::Untouched(_)) {
            return Settled;
        }
        let Some(held) = self.cache.held.get(key) else { return Settled };
        let Some(slice) = held.slices.get(name) else { return Settled };
        let attached = match self.attachment(key, plan) {
            Some(attached) => attached,
            // The Service has to be made anew, and must not take the slice with it.
            None if slice.attached.owner.is_some() => Attached { owner: None, ..slice.attached.clone() },
            None => return Wait,
        };
        if slice.attached == attached || slice.copy.says(self.cache.printer.print(Some(&attached))) {
            return Settled;
        }
        if let Some(verdict) = unsure(&slice.copy) {
            return verdict;
        }
        let print = self.cache.printer.print(Some(&attached));
        let (name, onto) = (name.clone(), slice.copy.version.clone());
        Send(Request::Attach { of: key.clone(), name, attached, onto }, Some(print))
    }

    fn attachment(&self, key: &ServiceKey, plan: &ImportPlan) -> Option<Attached> {
        let (import, derived) = wanted::derived(plan)?;
        let service = self.usable_service(key)?;
        Some(Attached {
            to: Some(derived?.name.clone()),
            owner: Some(service.copy.version.uid.clone()),
            headless: import.spec.headless,
        })
    }

    fn judge_import_status(&self, key: &ServiceKey, now: Now) -> Verdict {
        let Some(plan @ ImportPlan::Present { import, .. }) = self.import_plan(key) else { return Settled };
        let Some(held) = self.cache.held.get(key).and_then(|held| held.import.as_ref()) else { return Wait };
        if self.closing.contains(&key.namespace) {
            return Settled;
        }
        if let Some(verdict) = unsure(&held.copy) {
            return verdict;
        }
        let derived = match (self.usable_service(key), self.derived_refused(key)) {
            (Some(_), _) => DerivedState::Usable,
            (None, Some(why)) => DerivedState::Refused(why),
            (None, None) => DerivedState::Awaited,
        };
        let (stale, withdrawn) = wanted::lost_sources(plan, held.stale.as_deref());
        let body = wanted::import_status(import, derived, (&stale, &withdrawn), &held.since, now.wall);
        let print = self.cache.printer.print(Some(&body));
        if held.status == print || held.status_answered == Some((print, held.status)) {
            return Settled;
        }
        Send(Request::ImportStatus(key.clone(), body, held.copy.version.clone()), Some(print))
    }

    fn judge_export_status(&self, key: &ServiceKey, now: Now) -> Verdict {
        let Some(status) = self.part(key).and_then(|part| part.export.as_ref()) else { return Settled };
        let Some(held) = self.cache.exports.get(key) else { return Wait };
        if held.copy.version.uid != status.uid || self.closing.contains(&key.namespace) {
            return Settled; // The plan speaks of another export; the one that is there will have its own.
        }
        if let Some(verdict) = unsure(&held.copy) {
            return verdict;
        }
        let imports = matches!(self.import_plan(key), Some(ImportPlan::Present { .. }));
        let at = (key, &self.identity.cluster, imports);
        let conditions = wanted::export_status(status, at, &held.since, now.wall);
        let print = self.cache.printer.print(Some(&conditions));
        if held.copy.says(print) {
            return Settled;
        }
        // After a hub's start its members are heard one by one: what stands there names all of them.
        let awaited = status.reach.as_ref().is_some_and(|reach| reach.awaited);
        let young = self.began.is_some_and(|began| now.instant.saturating_duration_since(began) < ALL_HEARD);
        if awaited && young && held.outline == cache::outline(&conditions, &self.cache.printer) {
            return Settled;
        }
        Send(Request::ExportStatus(key.clone(), status.uid.clone(), conditions), Some(print))
    }

    /// No plan speaks of such an export: no cluster can have a Service of this name.
    fn judge_misnamed(&self, namespace: &Namespace, name: &Arc<str>, now: Now) -> Verdict {
        let at = (namespace.clone(), Arc::clone(name));
        let Some(held) = self.cache.misnamed.get(&at) else { return Settled };
        if self.closing.contains(namespace) {
            return Settled;
        }
        if let Some(verdict) = unsure(&held.copy) {
            return verdict;
        }
        let conditions = wanted::misnamed_status(name, &held.since, now.wall);
        let print = self.cache.printer.print(Some(&conditions));
        if held.copy.says(print) {
            return Settled;
        }
        let (namespace, name) = at;
        Send(Request::MisnamedStatus(namespace, name, held.copy.version.uid.clone(), conditions), Some(print))
    }

    fn judge_property(&self, name: PropertyName) -> Verdict {
        let value = match name {
            PropertyName::ClusterId => self.identity.cluster.as_str(),
            PropertyName::Clusterset => &self.identity.clusterset,
        };
        match self.cache.properties.get(&name) {
            None => Send(Request::Property(name, value.into(), None), None),
            Some(held) if held.value == value => Settled,
            Some(held) if held.ours => {
                Send(Request::Property(name, value.into(), Some(held.version.clone())), None)
            }
            Some(held) => {
                Blocked(Problem::OtherProperty { name, theirs: held.value.clone(), ours: value.to_owned() })
            }
        }
    }

    /// Whether the plan of a service has this derived Service or slice.
    pub(super) fn wants(&self, key: &ServiceKey, object: &ObjectName) -> bool {
        let Some(part) = self.part(key) else { return false };
        match object.kind {
            Kind::Service => {
                wanted::derived_name(&part.import).is_some_and(|name| name.as_str() == &*object.name)
            }
            Kind::Slice => wanted::slices(part).any(|(_, slice)| slice.name.as_str() == &*object.name),
            Kind::Namespace | Kind::Node | Kind::Export | Kind::Import | Kind::Property => false,
        }
    }

    /// Everything that is, or should be, there of a service.
    pub(super) fn targets(&self, key: &ServiceKey) -> Vec<Target> {
        let part = self.part(key);
        let held = self.cache.held.get(key);
        let mut targets = vec![
            Target::Import(key.clone()),
            Target::ImportStatus(key.clone()),
            Target::ExportStatus(key.clone()),
        ];
        let names = held.into_iter().flat_map(|held| held.services.keys());
        targets.extend(
            names
                .chain(part.and_then(|part| wanted::derived_name(&part.import)))
                .map(|name| Target::Service(key.clone(), name.clone())),
        );
        let held = held.into_iter().flat_map(|held| held.slices.keys());
        let planned = part.into_iter().flat_map(wanted::slices).map(|(_, slice)| &slice.name);
        // What is to be made comes before what is to go.
        targets.extend(planned.chain(held).map(|name| Target::Slice(key.clone(), name.clone())));
        targets
    }

    /// Whether nothing is left to do for the service, now or later.
    pub(super) fn is_over(&self, key: &ServiceKey) -> bool {
        let over = self.part(key).is_none_or(|part| {
            let undispatched = matches!(part.dispatch, DispatchPlan::Absent(_) | DispatchPlan::Untouched(_));
            matches!(part.import, ImportPlan::Absent(_))
                && part.export.is_none()
                && undispatched
                && !part.follow
        });
        over && !self.cache.held.contains_key(key)
    }
}

/// What has to happen before this state is written upon.
fn unsure(copy: &Copy) -> Option<Verdict> {
    match (copy.version.deleting, copy.doubted) {
        (true, _) => Some(Wait),
        (false, true) => Some(Read),
        (false, false) => None,
    }
}

/// Whether a slice hangs on this very Service.
fn hangs_on(attached: &Attached, service: &HeldService) -> bool {
    attached.owner.as_ref() == Some(&service.copy.version.uid)
}

/// Whether a Service can't be made what it should be without being made anew.
fn misshapen(service: &HeldService, headless: bool, families: &[atoll_engine::network::Family]) -> bool {
    let other_primary =
        matches!((service.families.first(), families.first()), (Some(is), Some(wanted)) if is != wanted);
    service.headless != headless || other_primary
}

/// The source and original name of a slice that is about to be written.
pub(super) fn slice_source(part: Option<&ClusterPlan>, name: &SliceName) -> Option<(ClusterId, SliceName)> {
    let (_, slice) = wanted::slice(part?, name)?;
    Some((slice.source.clone(), slice.original.clone()))
}
