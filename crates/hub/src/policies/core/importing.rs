//! `ServiceImports` of the hub: where each goes is said to the engine, which makes the members' own; what became of those is told
//! on the template.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::names::annotation::{self, import};
use atoll_api::names::{event, label};
use atoll_engine::intent::imports::ImportTo;
use atoll_engine::names::{ClusterId, Namespace, ServiceKey};
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_link::{CopyState, WhyNot};
use serde_json::Value;

use super::super::binding::Held;
use super::{Command, Propagator, Source, uid};
use crate::services::imports::{Absent, Derived, News, derived, is_import, ports};

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Imports {
    explicit: BTreeSet<Namespace>,
    said_explicit: Option<BTreeSet<Namespace>>,
    /// Those of which something may be new.
    news: BTreeSet<ServiceKey>,
    said: BTreeMap<ServiceKey, ImportTo>,
    /// Whether it was said that nothing is left to be said.
    said_all: bool,
    absent: BTreeMap<ServiceKey, Absent>,
}

impl Imports {
    /// A template was planned.
    pub(super) fn placed(&mut self, key: &ObjectKey) {
        if let Some(key) = service(key) {
            self.news.insert(key);
        }
    }
}

/// The service that a ServiceImport is of.
fn service(key: &ObjectKey) -> Option<ServiceKey> {
    is_import(&key.kind).then(|| ServiceKey::parse(&key.namespace, &key.name).ok())?
}

impl Propagator {
    /// How the services of a namespace are imported.
    pub(super) fn import_mode(&mut self, key: &ObjectKey, object: Option<&Value>) {
        let Ok(name) = Namespace::parse(key.name.as_str()) else { return };
        let mode = object.and_then(|object| object["metadata"]["annotations"][annotation::IMPORT].as_str());
        match mode {
            Some(import::EXPLICIT) => drop(self.imports.explicit.insert(name)),
            Some(import::AUTO) | None => drop(self.imports.explicit.remove(&name)),
            Some(other) => {
                self.imports.explicit.remove(&name);
                let (auto, explicit) = (import::AUTO, import::EXPLICIT);
                let message = format!(
                    "invalid value {other:?} in {}, using {auto:?}; set {auto:?} or {explicit:?}",
                    annotation::IMPORT
                );
                self.tell(key, &uid(object), true, event::namespace::UNKNOWN_IMPORT_MODE, message);
            }
        }
    }

    /// Says to the engine what it has not been told.
    pub(super) fn say_imports(&mut self) {
        if self.listed.contains(&Source::Namespaces)
            && self.imports.said_explicit.as_ref() != Some(&self.imports.explicit)
        {
            self.imports.said_explicit = Some(self.imports.explicit.clone());
            self.out.push(Command::Imports(News::Explicit(self.imports.explicit.clone())));
        }
        for key in std::mem::take(&mut self.imports.news) {
            let to = self.import_to(&key);
            if self.imports.said.get(&key) != to.as_ref() {
                match &to {
                    Some(to) => drop(self.imports.said.insert(key.clone(), to.clone())),
                    None => {
                        self.imports.said.remove(&key);
                        self.imports.absent.remove(&key);
                    }
                }
                self.out.push(Command::Imports(News::To(key, to)));
            }
        }
        let all = |mut kinds: std::collections::btree_set::Iter<'_, Kind>| {
            kinds.all(|kind| !is_import(kind) || self.known.contains(kind))
        };
        let undecided = self.undecided.iter().any(|key| is_import(&key.kind));
        if !self.imports.said_all && !undecided && all(self.watched.iter()) {
            self.imports.said_all = true;
            self.out.push(Command::Imports(News::Placed));
        }
    }

    /// Where the templates of a service go: there can be one per version of the kind that policies speak of.
    fn import_to(&self, key: &ServiceKey) -> Option<ImportTo> {
        let mut to: Option<ImportTo> = None;
        for template in self.import_templates(key) {
            let (Some(item), Some(object)) = (self.items.get(&template), self.placer.template(&template))
            else {
                continue;
            };
            // Where the hub's API is a member's, that member's own imports are there too.
            let ours = !object["metadata"]["labels"][label::HUB].is_null();
            if let Some(placed) = item.placed.as_ref().filter(|placed| !ours && !placed.copies.is_empty()) {
                let to = to.get_or_insert_default();
                // One that is withheld stays where it is.
                let there = self.imports.said.get(key);
                let is_there = |id: &ClusterId| there.is_some_and(|there| there.clusters.contains(id));
                let goes = placed.copies.iter().filter(|(id, copy)| copy.object.is_ok() || is_there(id));
                to.clusters.extend(goes.map(|(id, _)| id.clone()));
                to.ports = ports(object);
            }
        }
        to
    }

    fn import_templates(&self, key: &ServiceKey) -> Vec<ObjectKey> {
        let (namespace, name) = (key.namespace.to_string(), key.name.to_string());
        let kinds = self.watched.iter().filter(|kind| is_import(kind)).cloned();
        kinds.map(|kind| ObjectKey { kind, namespace: namespace.clone(), name: name.clone() }).collect()
    }

    /// The engine says who does not import, and why.
    pub(super) fn absent(&mut self, key: &ServiceKey, absent: Absent) {
        if absent.is_empty() {
            self.imports.absent.remove(key);
        } else {
            self.imports.absent.insert(key.clone(), absent);
        }
        self.import_templates(key).iter().for_each(|template| self.tell_imported(template));
    }

    /// Tells on a template what became of the derived Services.
    pub(super) fn tell_imported(&mut self, key: &ObjectKey) {
        let Some(service) = service(key) else { return };
        let Some((item, placed)) = self.items.get(key).and_then(|item| Some((item, item.placed.as_ref()?)))
        else {
            return;
        };
        let (mut waits, mut bad) = (placed.copies.is_empty(), Vec::new());
        for id in placed.copies.keys() {
            let absent = self.imports.absent.get(&service).and_then(|absent| absent.get(id));
            match (absent, item.holders.get(id)) {
                (Some(why), _) => bad.push(format!("{id}: {}", why.text())),
                (None, Some(Held::Said(CopyState::Applied { status, .. }))) => match derived(status) {
                    Derived::Usable => {}
                    Derived::Awaited => waits = true,
                    Derived::Refused(why) => bad.push(format!("{id}: {why}")),
                },
                (
                    None,
                    Some(Held::Said(
                        CopyState::NotApplied(WhyNot::MadeByOthers | WhyNot::NotYet) | CopyState::Gone,
                    )),
                )
                | (None, Some(Held::Silent) | None) => waits = true,
                (None, Some(Held::Said(CopyState::NotApplied(why)))) => bad.push(format!("{id}: {why}")),
                (None, Some(Held::Unordered(why))) => bad.push(format!("{id}: {why}")),
            }
        }
        let names: Vec<_> = placed.copies.keys().map(ClusterId::as_str).collect();
        let fine = format!("the derived Service is in {}", names.join(", "));
        let uid = self.placer.template(key).map(|template| uid(Some(template))).unwrap_or_default();
        let (good, failed) =
            (event::import::SYNC_DERIVED_SERVICE_SUCCEED, event::import::SYNC_DERIVED_SERVICE_FAILED);
        if !bad.is_empty() {
            self.told.remove(&(key.clone(), good)); // it may be told again when it is so again
            self.tell(key, &uid, true, failed, bad.join("; "));
        } else if !waits {
            self.told.remove(&(key.clone(), failed));
            self.tell(key, &uid, false, good, fine);
        }
    }
}
