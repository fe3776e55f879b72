//! Takes in what was seen: facts to tell, objects of ours to compare, objects of others to stay away from.

use atoll_api::names::prefix;
use atoll_engine::facts::{InternalTrafficPolicy, ServiceFact, ServiceType, SessionAffinity};
use atoll_engine::names::{Namespace, NodeName, ServiceKey, ServiceName, SliceName};
use atoll_engine::world::Change;

use super::Core;
use super::cache::{HeldProperty, Sight};
use super::event::{Gone, OwnService, OwnSlice, Seen};
use super::object::{Kind, ObjectName, Target, Version};
use super::sync::Epoch;

impl Core {
    pub(super) fn see(&mut self, seen: Seen) {
        let mut tell = Vec::new();
        match seen {
            Seen::Namespace(name, state) => {
                let reopened = self.closing.remove(&name);
                self.facts.namespace(name.clone(), state, self.gate.epoch(Kind::Namespace), &mut tell);
                if reopened || !tell.is_empty() {
                    // What was refused for want of the namespace may be possible now, whatever the plan says.
                    self.look_at_namespace(&name);
                }
            }
            Seen::Node(name, addresses) => {
                self.facts.node(name, addresses, self.gate.epoch(Kind::Node), &mut tell);
            }
            Seen::Service(key, fact) => {
                let epoch = self.gate.epoch(Kind::Service);
                let object = named(Kind::Service, &key.namespace, key.name.as_str());
                self.lost_to_others(&object);
                if key.name.as_str().starts_with(prefix::DERIVED) {
                    self.cache.foreign.insert(object, epoch);
                }
                self.facts.service(key, fact, true, epoch, &mut tell);
            }
            Seen::OwnService(seen) => self.see_own_service(seen, &mut tell),
            Seen::Slice(namespace, name, of, fact) => {
                let epoch = self.gate.epoch(Kind::Slice);
                self.foreign_slice(&namespace, &name, epoch);
                self.facts.slice((namespace, name), of, fact.into(), epoch, &mut tell);
            }
            Seen::OtherSlice(namespace, name) => {
                self.foreign_slice(&namespace, &name, self.gate.epoch(Kind::Slice));
                self.facts.no_slice(&(namespace, name), &mut tell);
            }
            Seen::OwnSlice(seen) => self.see_own_slice(seen, &mut tell),
            Seen::Export(seen) => {
                let epoch = self.gate.epoch(Kind::Export);
                match self.cache.export(&seen, epoch) {
                    Sight::News => {
                        self.queue.add(Target::ExportStatus(seen.key.clone()));
                        self.facts.export(seen.key, seen.fact, epoch, &mut tell);
                    }
                    // It was in the list all the same: the end of the list must not take it away.
                    Sight::Same | Sight::Older => self.facts.still_exported(&seen.key, epoch),
                }
            }
            Seen::MisnamedExport(seen) => {
                let target = Target::MisnamedStatus(seen.namespace.clone(), seen.name.clone());
                if self.cache.misnamed(seen, self.gate.epoch(Kind::Export)) {
                    self.queue.add(target);
                }
            }
            Seen::Import(key) => {
                let object = named(Kind::Import, &key.namespace, key.name.as_str());
                self.cache.foreign.insert(object.clone(), self.gate.epoch(Kind::Import));
                self.cache.drop_from(&key, &object);
                self.queue.add(Target::Import(key));
            }
            Seen::OwnImport(seen) => {
                let key = seen.key.clone();
                let object = named(Kind::Import, &key.namespace, key.name.as_str());
                self.unblock(&object);
                let target = Target::Import(key.clone());
                let before = self.copy(&target).map(|copy| (copy.version.clone(), copy.print));
                if self.cache.import(seen, self.gate.epoch(Kind::Import)) {
                    self.note_change(target, before);
                    self.queue.add(Target::Import(key.clone()));
                    self.queue.add(Target::ImportStatus(key.clone()));
                }
                self.holds(&key);
            }
            Seen::Property(seen) => {
                let epoch = self.gate.epoch(Kind::Property);
                let (name, version) = (seen.name, seen.version);
                let held = HeldProperty { version, ours: seen.ours, value: seen.value, epoch };
                self.cache.properties.insert(name, held);
                self.queue.add(Target::Property(name));
            }
        }
        self.tell(tell);
    }

    fn see_own_service(&mut self, mut seen: OwnService, tell: &mut Vec<Change>) {
        let epoch = self.gate.epoch(Kind::Service);
        let name = seen.name.clone();
        let object = named(Kind::Service, &name.namespace, name.name.as_str());
        let of = self.whose(&object, &seen.of, true);
        seen.of = of.clone();
        self.unblock(&object);
        if let Some(before) = self.cache.belongs(object.clone(), &of) {
            self.cache.drop_from(&before, &object);
            self.look_at(&before);
        }
        let target = Target::Service(of.clone(), name.name.clone());
        self.facts.service(name, derived_fact(), false, epoch, tell);
        let before = self.copy(&target).map(|copy| (copy.version.clone(), copy.print));
        if self.cache.service(seen, epoch) {
            self.note_change(target, before);
            self.look_at(&of);
        }
        self.holds(&of);
    }

    fn see_own_slice(&mut self, mut seen: OwnSlice, tell: &mut Vec<Change>) {
        let name = seen.name.clone();
        let object = named(Kind::Slice, &seen.of.namespace, name.as_str());
        let of = self.whose(&object, &seen.of, seen.body.is_none());
        seen.of = of.clone();
        self.unblock(&object);
        if let Some(before) = self.cache.belongs(object.clone(), &of) {
            self.cache.drop_from(&before, &object);
            self.queue.add(Target::Slice(before, name.clone()));
        }
        self.facts.no_slice(&(of.namespace.clone(), name.clone()), tell);
        let target = Target::Slice(of.clone(), name);
        let before = self.copy(&target).map(|copy| (copy.version.clone(), copy.print));
        if self.cache.slice(seen, self.gate.epoch(Kind::Slice)) {
            self.note_change(target.clone(), before);
            self.queue.add(target);
        }
        self.holds(&of);
    }

    /// The service that an object of ours belongs to: the one that it names, unless only another one's plan has an object of this
    /// name; the label was edited then. `search`: even one that we did not know to have it.
    fn whose(&self, object: &ObjectName, said: &ServiceKey, search: bool) -> ServiceKey {
        if self.wants(said, object) {
            return said.clone();
        }
        let before = self.cache.owner(object).filter(|before| self.wants(before, object));
        let searched = || {
            let namespace = self.plans.keys().filter(|key| key.namespace == said.namespace);
            namespace.into_iter().find(|key| self.wants(key, object))
        };
        before.or_else(|| if search { searched() } else { None }).unwrap_or(said).clone()
    }

    fn foreign_slice(&mut self, namespace: &Namespace, name: &SliceName, epoch: Epoch) {
        let object = named(Kind::Slice, namespace, name.as_str());
        self.lost_to_others(&object);
        if name.as_str().starts_with(prefix::IMPORTED) {
            self.cache.foreign.insert(object, epoch);
        }
    }

    /// What was ours has lost our label, or was made anew by another owner.
    fn lost_to_others(&mut self, object: &ObjectName) {
        if let Some(key) = self.cache.drop_object(object) {
            self.look_at(&key);
        }
    }

    /// The name is free, or ours.
    fn unblock(&mut self, object: &ObjectName) {
        if self.cache.foreign.remove(object).is_none() {
            return;
        }
        if let Some(namespace) = &object.namespace {
            self.look_at_namespace(namespace);
        }
    }

    fn look_at_namespace(&mut self, namespace: &Namespace) {
        let planned: Vec<ServiceKey> =
            self.plans.keys().filter(|key| key.namespace == *namespace).cloned().collect();
        for key in planned {
            self.look_at(&key);
        }
    }

    pub(super) fn gone(&mut self, Gone { object, version }: &Gone) {
        let mut tell = Vec::new();
        self.unblock(object);
        self.note_flight(object, version);
        let key = |name| Some(ServiceKey { namespace: object.namespace.clone()?, name });
        match object.kind {
            Kind::Namespace => {
                if let Ok(name) = Namespace::parse(&*object.name) {
                    self.closing.remove(&name);
                    self.facts.no_namespace(&name, &mut tell);
                }
            }
            Kind::Node => {
                if let Ok(name) = NodeName::parse(&*object.name) {
                    self.facts.no_node(&name, &mut tell);
                }
            }
            Kind::Service => {
                if let Some(key) = ServiceName::parse(&*object.name).ok().and_then(key) {
                    self.facts.no_service(&key, &mut tell);
                }
                self.forget(object, version);
            }
            Kind::Slice => {
                if let (Some(namespace), Ok(name)) = (&object.namespace, SliceName::parse(&*object.name)) {
                    self.facts.no_slice(&(namespace.clone(), name), &mut tell);
                }
                self.forget(object, version);
            }
            Kind::Export => {
                if let Some(namespace) = object.namespace.clone() {
                    self.cache.misnamed.remove(&(namespace, object.name.clone()));
                }
                let found = ServiceName::parse(&*object.name).ok().and_then(key);
                if let Some(key) = found.filter(|key| {
                    self.cache.exports.get(key).is_none_or(|held| held.copy.version.uid == version.uid)
                }) {
                    self.tell_unexported(&key);
                    self.cache.exports.remove(&key);
                    self.facts.no_export(&key, &mut tell);
                }
            }
            Kind::Import => {
                if let Some(key) = ServiceName::parse(&*object.name).ok().and_then(key) {
                    let held = self.cache.held.get(&key).and_then(|held| held.import.as_ref());
                    if held.is_some_and(|held| held.copy.version.uid == version.uid) {
                        self.note_loss(Target::Import(key.clone()));
                        self.cache.drop_from(&key, object);
                        self.tell_removed(&key);
                        self.look_at(&key);
                        self.retire(&key);
                    }
                }
            }
            Kind::Property => {
                if let Some(name) =
                    super::PropertyName::ALL.into_iter().find(|name| name.as_str() == &*object.name)
                {
                    self.cache.properties.remove(&name);
                    self.queue.add(Target::Property(name));
                }
            }
        }
        self.tell(tell);
    }

    /// Forgets a derived Service or slice of ours that is gone, if it is the one that we know.
    fn forget(&mut self, object: &ObjectName, version: &Version) {
        let Some(key) = self.cache.owner(object).cloned() else { return };
        let held = self.cache.held.get(&key);
        let copy = match object.kind {
            Kind::Service => held.and_then(|held| held.services.get(&*object.name)).map(|held| &held.copy),
            Kind::Slice => held.and_then(|held| held.slices.get(&*object.name)).map(|held| &held.copy),
            Kind::Namespace | Kind::Node | Kind::Export | Kind::Import | Kind::Property => None,
        };
        if copy.is_some_and(|copy| copy.version.uid != version.uid) {
            return;
        }
        match object.kind {
            Kind::Service => {
                if let Ok(name) = ServiceName::parse(&*object.name) {
                    self.note_loss(Target::Service(key.clone(), name));
                }
            }
            Kind::Slice => {
                // Kubernetes takes slices with the Service that they hang on.
                let service = self.usable_service(&key).map(|service| service.copy.version.uid.clone());
                let held = self.cache.held.get(&key).and_then(|held| held.slices.get(&*object.name));
                let alone = held.is_some_and(|held| held.attached.owner == service);
                if let (true, Ok(name)) = (alone, SliceName::parse(&*object.name)) {
                    self.note_loss(Target::Slice(key.clone(), name));
                }
            }
            Kind::Namespace | Kind::Node | Kind::Export | Kind::Import | Kind::Property => {}
        }
        self.cache.drop_object(object);
        match (object.kind, SliceName::parse(&*object.name)) {
            (Kind::Slice, Ok(name)) => {
                self.queue.add(Target::Slice(key.clone(), name));
                self.look_at_services(&key);
            }
            _ => self.look_at(&key),
        }
        self.retire(&key);
    }

    /// An answer that is older than this is no news.
    fn note_flight(&mut self, object: &ObjectName, version: &Version) {
        let Some(namespace) = object.namespace.clone() else { return };
        let targets = match object.kind {
            Kind::Service => {
                let of = self.cache.owner(object).cloned();
                of.zip(ServiceName::parse(&*object.name).ok()).map(|(of, name)| Target::Service(of, name))
            }
            Kind::Slice => {
                let of = self.cache.owner(object).cloned();
                of.zip(SliceName::parse(&*object.name).ok()).map(|(of, name)| Target::Slice(of, name))
            }
            Kind::Import => ServiceName::parse(&*object.name)
                .ok()
                .map(|name| Target::Import(ServiceKey { namespace, name })),
            Kind::Export => Some(match ServiceName::parse(&*object.name) {
                Ok(name) => Target::ExportStatus(ServiceKey { namespace, name }),
                Err(_) => Target::MisnamedStatus(namespace, object.name.clone()),
            }),
            Kind::Namespace | Kind::Node | Kind::Property => None,
        };
        for target in targets.into_iter().flat_map(|target| match target {
            Target::Import(key) => vec![Target::ImportStatus(key.clone()), Target::Import(key)],
            other => vec![other],
        }) {
            if let Some(flight) = self.queue.flight_mut(&target) {
                flight.gone_at = Some(version.revision);
            }
        }
    }

    /// A list is complete: what of ours was not in it is gone.
    pub(super) fn sweep(&mut self, kind: Kind, epoch: Epoch) {
        self.cache
            .foreign
            .iter()
            .filter(|(o, seen)| o.kind == kind && **seen < epoch)
            .map(|(object, _)| object.clone())
            .collect::<Vec<_>>()
            .iter()
            .for_each(|object| self.unblock(object));
        let mut gone: Vec<Gone> = Vec::new();
        let mut doubtful: Vec<Target> = Vec::new();
        for (key, held) in &mut self.cache.held {
            let copies: Vec<(Target, &mut super::cache::Copy)> = match kind {
                Kind::Service => held
                    .services
                    .iter_mut()
                    .map(|(name, held)| (Target::Service(key.clone(), name.clone()), &mut held.copy))
                    .collect(),
                Kind::Slice => held
                    .slices
                    .iter_mut()
                    .map(|(name, held)| (Target::Slice(key.clone(), name.clone()), &mut held.copy))
                    .collect(),
                Kind::Import => {
                    held.import.iter_mut().map(|held| (Target::Import(key.clone()), &mut held.copy)).collect()
                }
                Kind::Namespace | Kind::Node | Kind::Export | Kind::Property => Vec::new(),
            };
            for (target, copy) in copies {
                if copy.epoch >= epoch {
                    continue;
                }
                if copy.fresh {
                    // Written while the list was made: it may be older or newer than the list. Ask.
                    (copy.doubted, copy.fresh, copy.epoch) = (true, false, epoch);
                    doubtful.push(target);
                } else {
                    let object = named(kind, &key.namespace, target.name());
                    gone.push(Gone { object, version: copy.version.clone() });
                }
            }
        }
        if kind == Kind::Export {
            self.cache.misnamed.retain(|_, held| held.copy.epoch >= epoch || held.copy.fresh);
            let old =
                self.cache.exports.iter().filter(|(_, held)| held.copy.epoch < epoch && !held.copy.fresh);
            gone.extend(old.map(|(key, held)| Gone {
                object: named(kind, &key.namespace, key.name.as_str()),
                version: held.copy.version.clone(),
            }));
        }
        for gone in gone {
            self.gone(&gone);
        }
        for target in doubtful {
            self.queue.add(target);
        }
        if kind == Kind::Property {
            self.cache.properties.retain(|_, held| held.epoch >= epoch);
        }
    }

    pub(super) fn look_at_services(&mut self, key: &ServiceKey) {
        let names: Vec<ServiceName> =
            self.cache.held.get(key).into_iter().flat_map(|held| held.services.keys().cloned()).collect();
        for name in names {
            self.queue.add(Target::Service(key.clone(), name));
        }
    }

    /// Forgets a plan that asks for nothing of which nothing is left.
    pub(super) fn retire(&mut self, key: &ServiceKey) {
        if self.is_over(key) {
            self.plans.remove(key);
            self.unwished.remove(key);
            self.endings.remove(key);
            self.refused.retain(|target, _| target.service() != Some(key));
        }
    }
}

/// An object by its names.
pub(super) fn named(kind: Kind, namespace: &Namespace, name: &str) -> ObjectName {
    ObjectName { kind, namespace: Some(namespace.clone()), name: name.into() }
}

/// All that needs to be known of a derived Service that is exported.
fn derived_fact() -> ServiceFact {
    ServiceFact {
        service_type: ServiceType::ClusterIp,
        headless: false,
        derived: true,
        ports: Vec::new(),
        session_affinity: SessionAffinity::None,
        client_ip_timeout: None,
        internal_traffic_policy: InternalTrafficPolicy::Cluster,
        traffic_distribution: None,
        families: Vec::new(),
    }
}
