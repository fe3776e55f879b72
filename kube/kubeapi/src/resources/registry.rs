//! Which resources are served: the built-in ones, and those that CRDs bring.

mod builtin;
mod custom;
mod pages;
mod versions;

pub(crate) use custom::resources;
pub(crate) use pages::{Fingerprint, Page};

use pages::Pages;

use crate::aggregated;
use crate::http::encode;
use crate::resources::resource::{Resource, split_api_version};
use crate::resources::strategy::has_condition;
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Everything that is served at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    groups: BTreeMap<String, Group>,
    /// The custom resources of each CRD, by its name.
    definitions: BTreeMap<String, Definition>,
    /// What clients are told of it.
    pages: Pages,
}

/// A CRD that is served.
#[derive(Clone, Debug)]
struct Definition {
    description: Description,
    resources: Vec<Arc<Resource>>,
}

/// What of a CRD decides what is served, as text: another of these means that it is served anew.
#[derive(Clone, Debug, PartialEq)]
struct Description {
    spec: Bytes,
    names: Bytes,
    terminating: bool,
}

impl Description {
    fn of(definition: &Value) -> Self {
        Self {
            spec: Bytes::copy_from_slice(&encode::write(&definition["spec"])),
            names: encode::write(&definition["status"]["acceptedNames"]),
            terminating: has_condition(definition, "Terminating"),
        }
    }
}

/// One API group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Its versions, the preferred one first.
    pub(crate) versions: Vec<Version>,
}

/// One version of a group.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) resources: BTreeMap<String, Arc<Resource>>,
}

impl Registry {
    /// What is served without any CRD. `loopback` says whether endpoints may have loopback addresses.
    pub(crate) fn builtin(loopback: bool) -> Self {
        let mut registry = Self::default();
        for mut resource in builtin::all() {
            resource.rules.loopback = loopback;
            registry.add(Arc::new(resource));
        }
        registry
    }

    /// Serves a group that other code answers for.
    pub(crate) fn aggregate(&mut self, group: &aggregated::Group) {
        group.resources().map(Arc::new).for_each(|resource| self.add(resource));
    }

    /// Does other code answer for this version of a group? Then no CRD adds to it, as on a real API server.
    fn is_aggregated(&self, group: &str, version: &str) -> bool {
        let version = self.version(group, version);
        version.is_some_and(|version| version.resources.values().any(|one| one.aggregated.is_some()))
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let group = self.groups.entry(resource.group.clone()).or_default();
        let version = match group.versions.iter_mut().find(|version| version.name == resource.version) {
            Some(version) => version,
            None => {
                group.versions.push(Version { name: resource.version.clone(), resources: BTreeMap::new() });
                group.versions.sort_by(|a, b| versions::preference(&b.name, &a.name));
                let at =
                    group.versions.iter().position(|version| version.name == resource.version).unwrap_or(0);
                &mut group.versions[at]
            }
        };
        version.resources.insert(resource.names.plural.clone(), resource);
    }

    /// Is this what is served of the CRD?
    fn serves(&self, name: &str, description: &Description) -> bool {
        self.definitions.get(name).is_some_and(|known| known.description == *description)
    }

    /// Serves a CRD whose names are accepted, in place of what it was; watches of that end. `since` is the revision that its
    /// schemas hold from.
    pub(crate) fn define(&mut self, name: &str, definition: &Value, since: u64) {
        self.define_as(name, definition, Description::of(definition), since);
    }

    fn define_as(&mut self, name: &str, definition: &Value, description: Description, since: u64) {
        self.forget(name);
        let resources = resources(definition, since).into_iter();
        let resources = resources.filter(|one| !self.is_aggregated(&one.group, &one.version));
        let resources: Vec<_> = resources.map(Arc::new).collect();
        for resource in &resources {
            self.add(Arc::clone(resource));
        }
        self.definitions.insert(name.to_owned(), Definition { description, resources });
    }

    /// Serves the resources of a CRD no longer.
    pub(crate) fn forget(&mut self, definition: &str) {
        let gone = self.definitions.remove(definition);
        for old in gone.into_iter().flat_map(|gone| gone.resources) {
            old.retired.send_replace(true);
            let Some(group) = self.groups.get_mut(&old.group) else { continue };
            for version in group.versions.iter_mut().filter(|version| version.name == old.version) {
                version.resources.remove(&old.names.plural);
            }
            group.versions.retain(|version| !version.resources.is_empty());
            if group.versions.is_empty() {
                self.groups.remove(&old.group);
            }
        }
    }

    /// What is served of a CRD, version by version.
    pub(crate) fn defined(&self, name: &str) -> &[Arc<Resource>] {
        self.definitions.get(name).map_or(&[], |definition| &definition.resources)
    }

    /// The resource of that plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.resources.get(plural)
    }

    /// The resource of that kind.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (group, version) = split_api_version(api_version);
        self.version(group, version)?.resources.values().find(|resource| resource.names.kind == kind)
    }

    /// Any version of the resource, the preferred one first.
    pub(crate) fn any_version(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.groups.get(group)?.versions.iter().find_map(|version| version.resources.get(plural))
    }

    pub(crate) fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.groups.get(group)?.versions.iter().find(|known| known.name == version)
    }

    /// A page that is made of this registry, once.
    pub(crate) fn page(&self, name: &str, make: impl FnOnce() -> Page) -> Page {
        self.pages.page(name, make)
    }

    pub(crate) fn groups(&self) -> &BTreeMap<String, Group> {
        &self.groups
    }

    /// One resource for each place that objects are kept in.
    pub(crate) fn stores(&self) -> Vec<&Arc<Resource>> {
        let mut seen = BTreeMap::new();
        for group in self.groups.values() {
            for resource in group.versions.iter().flat_map(|version| version.resources.values()) {
                if resource.verbs.contains(&"list") && resource.aggregated.is_none() {
                    seen.entry((&resource.stored.group, &resource.stored.plural)).or_insert(resource);
                }
            }
        }
        seen.into_values().collect()
    }
}

/// The registry that requests see: replaced as a whole.
#[derive(Debug)]
pub(crate) struct Served(RwLock<Arc<Registry>>);

impl Served {
    pub(crate) fn new(registry: Registry) -> Self {
        Self(RwLock::new(Arc::new(registry)))
    }

    pub(crate) fn now(&self) -> Arc<Registry> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves a CRD whose names are accepted as it is described now. Nothing happens if it is served so.
    pub(crate) fn define(&self, name: &str, definition: &Value, since: u64) {
        let description = Description::of(definition);
        if !self.now().serves(name, &description) {
            self.change(|registry| registry.define_as(name, definition, description, since));
        }
    }

    /// Changes it; requests under way go on with what they have.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Registry)) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Registry::clone(&current);
        change(&mut next);
        *current = Arc::new(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_resources_are_found_by_plural_and_by_kind() {
        let registry = Registry::builtin(false);
        let deployments = registry.find("apps", "v1", "deployments").unwrap();
        assert_eq!(deployments.names.kind, "Deployment");
        assert_eq!(registry.of_kind("apps/v1", "Deployment").unwrap().names.plural, "deployments");
        assert!(registry.find("apps", "v2", "deployments").is_none());
    }

    #[test]
    fn events_of_both_groups_are_kept_in_one_place() {
        let registry = Registry::builtin(false);
        let new = registry.find("events.k8s.io", "v1", "events").unwrap();
        let old = registry.find("", "v1", "events").unwrap();
        assert_eq!(new.key("a", "b"), old.key("a", "b"));
    }
}
