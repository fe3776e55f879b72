//! The facts of one kind, from a watch and from the answers to writes, whichever is newer.

use super::News;
use crate::controllers::facts::{
    Deployment, Job, Meta, Node, Pod, ReplicaSet, Revision, Service, Slice, StatefulSet,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A value that is kept of an object.
pub(super) trait Fact: Clone + PartialEq {
    fn read(object: &Value) -> Self;
    fn meta(&self) -> &Meta;
}

macro_rules! facts {
    ($($fact:ident),*) => {$(
        impl Fact for $fact {
            fn read(object: &Value) -> Self {
                $fact::read(object)
            }
            fn meta(&self) -> &Meta {
                &self.meta
            }
        }
    )*};
}

facts!(Deployment, Job, Node, Pod, ReplicaSet, Revision, Service, Slice, StatefulSet);

impl Fact for Meta {
    fn read(object: &Value) -> Self {
        Self::read(object)
    }
    fn meta(&self) -> &Meta {
        self
    }
}

/// Namespace and name.
type Name = (String, String);

/// Facts by name.
pub(super) struct Table<T> {
    facts: BTreeMap<Name, Entry<T>>,
    /// What was deleted by us, by uid: a watch that is behind must not bring it back.
    removed: BTreeMap<String, u64>,
    /// What a watch said is gone, by uid: the answer to a request may be behind.
    gone: BTreeSet<String>,
    /// How many lists were begun.
    round: u64,
    listed: bool,
}

struct Entry<T> {
    fact: T,
    /// The list since which it is known.
    round: u64,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            facts: BTreeMap::new(),
            removed: BTreeMap::new(),
            gone: BTreeSet::new(),
            round: 0,
            listed: false,
        }
    }
}

impl<T: Fact> Table<T> {
    /// Were all of this kind listed once?
    pub(super) fn listed(&self) -> bool {
        self.listed
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&T> {
        self.facts.get(&(namespace.to_owned(), name.to_owned())).map(|entry| &entry.fact)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.facts.values().map(|entry| &entry.fact)
    }

    pub(super) fn within(&self, namespace: &str) -> impl Iterator<Item = &T> {
        let namespace = namespace.to_owned();
        let from = (namespace.clone(), String::new());
        let rest = self.facts.range((Bound::Included(from), Bound::Unbounded));
        rest.take_while(move |((of, _), _)| *of == namespace).map(|(_, entry)| &entry.fact)
    }

    /// No answer is awaited any more.
    pub(super) fn calm(&mut self) {
        self.gone.clear();
    }

    /// Takes news; answers with the facts that are new and those that are no more.
    pub(super) fn hear(&mut self, news: &News) -> Vec<T> {
        match news {
            News::Listing => {
                self.round += 1;
                Vec::new()
            }
            News::Seen(object) => self.put(T::read(object)),
            News::Gone(object) => {
                let meta = Meta::read(object);
                self.removed.remove(&meta.uid);
                let gone = self.remove(&meta).into_iter().collect();
                self.gone.insert(meta.uid);
                gone
            }
            News::Deleted(object) => {
                let meta = Meta::read(object);
                let gone = self.remove(&meta);
                if gone.is_some() {
                    self.removed.insert(meta.uid, self.round);
                }
                gone.into_iter().collect()
            }
            News::Listed => self.sweep(),
        }
    }

    fn put(&mut self, fact: T) -> Vec<T> {
        let meta = fact.meta();
        if self.removed.contains_key(&meta.uid) || self.gone.contains(&meta.uid) {
            return Vec::new();
        }
        let name = (meta.namespace.clone(), meta.name.clone());
        if let Some(entry) = self.facts.get_mut(&name) {
            entry.round = self.round;
            if entry.fact.meta().version >= meta.version {
                return Vec::new();
            }
        }
        let new = fact.clone();
        let old = self.facts.insert(name, Entry { fact, round: self.round });
        old.map(|entry| entry.fact).into_iter().chain([new]).collect()
    }

    fn remove(&mut self, meta: &Meta) -> Option<T> {
        let name = (meta.namespace.clone(), meta.name.clone());
        let same = self.facts.get(&name).is_some_and(|entry| entry.fact.meta().uid == meta.uid);
        if same { self.facts.remove(&name).map(|entry| entry.fact) } else { None }
    }

    fn sweep(&mut self) -> Vec<T> {
        self.listed = true;
        let round = self.round;
        self.removed.retain(|_, since| *since >= round);
        let gone = self.facts.extract_if(.., |_, entry| entry.round < round);
        let gone: Vec<T> = gone.map(|(_, entry)| entry.fact).collect();
        self.gone.extend(gone.iter().map(|fact| fact.meta().uid.clone()));
        gone
    }
}
