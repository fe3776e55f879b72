//! Who owns what, by uid; and which owners wait for what they own. Nothing here grows faster than what objects say.

use crate::http::encode::Owner;
use crate::storage::store::Key;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Who owns what.
#[derive(Default)]
pub(super) struct Graph {
    /// The objects that name an owner of this uid.
    owned: HashMap<String, BTreeSet<Key>>,
    /// What an object says of its owners.
    owners: BTreeMap<Key, Vec<Reference>>,
    /// Owners that wait until what they own is gone.
    waiting: HashMap<String, Key>,
    /// How many objects hold up an owner.
    blocking: HashMap<Place, usize>,
}

/// What an object says of an owner.
struct Reference {
    uid: String,
    name: String,
    blocks: bool,
}

/// An owner as those see it that hold it up: from one namespace, or from anywhere.
#[derive(PartialEq, Eq, Hash)]
struct Place {
    uid: String,
    name: String,
    from: Option<String>,
}

impl Graph {
    /// Learns what an object says; gives the uids that it named before.
    pub(super) fn put(&mut self, key: &Key, owners: &[Owner]) -> Vec<String> {
        let before = self.remove(key);
        if owners.is_empty() {
            return before;
        }
        let references: Vec<Reference> = owners.iter().map(Reference::of).collect();
        for reference in &references {
            self.owned.entry(reference.uid.clone()).or_default().insert(key.clone());
            for place in reference.holds_up(key) {
                *self.blocking.entry(place).or_default() += 1;
            }
        }
        self.owners.insert(key.clone(), references);
        before
    }

    /// Forgets what an object said; gives the uids that it named.
    pub(super) fn remove(&mut self, key: &Key) -> Vec<String> {
        let references = self.owners.remove(key).unwrap_or_default();
        for reference in &references {
            if let Some(keys) = self.owned.get_mut(&reference.uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.owned.remove(&reference.uid);
                }
            }
            for place in reference.holds_up(key) {
                if let Some(count) = self.blocking.get_mut(&place) {
                    *count -= 1;
                    if *count == 0 {
                        self.blocking.remove(&place);
                    }
                }
            }
        }
        references.into_iter().map(|reference| reference.uid).collect()
    }

    /// The objects that name an owner of this uid, wherever they are.
    pub(super) fn owned_by(&self, uid: &str) -> Vec<Key> {
        self.owned.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Those of them that can belong to the object with this key: an owner in a namespace owns only what is there too.
    pub(super) fn dependents(&self, owner: &Key, uid: &str) -> Vec<Key> {
        let mut all = self.owned_by(uid);
        all.retain(|key| owner.namespace().is_empty() || owner.namespace() == key.namespace());
        all
    }

    pub(super) fn owns(&self, uid: &str) -> bool {
        self.owned.contains_key(uid)
    }

    /// This owner waits from now on. False if it did.
    pub(super) fn wait(&mut self, uid: &str, owner: &Key) -> bool {
        self.waiting.insert(uid.to_owned(), owner.clone()).is_none()
    }

    /// This owner does not wait any more.
    pub(super) fn done(&mut self, uid: &str) {
        self.waiting.remove(uid);
    }

    /// The owner of this uid, if it waits and nothing holds it up. An object of another namespace does not, whatever it says.
    pub(super) fn is_free(&self, uid: &str) -> Option<Key> {
        let owner = self.waiting.get(uid)?;
        let from = Some(owner.namespace()).filter(|namespace| !namespace.is_empty()).map(str::to_owned);
        let place = Place { uid: uid.to_owned(), name: owner.name().to_owned(), from };
        (!self.blocking.contains_key(&place)).then(|| owner.clone())
    }
}

impl Reference {
    fn of(owner: &Owner) -> Self {
        let Owner { uid, name, block_owner_deletion, .. } = owner;
        Self { uid: uid.clone(), name: name.clone(), blocks: *block_owner_deletion == Some(true) }
    }

    fn holds_up(&self, by: &Key) -> impl Iterator<Item = Place> {
        let froms = [None, Some(by.namespace().to_owned())];
        let places = self
            .blocks
            .then(|| froms.map(|from| Place { uid: self.uid.clone(), name: self.name.clone(), from }));
        places.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(namespace: &str, name: &str) -> Key {
        Key::new("", "configmaps", namespace, name)
    }

    fn owner(name: &str, uid: &str) -> Owner {
        let (name, uid) = (name.to_owned(), uid.to_owned());
        Owner { name, uid, block_owner_deletion: Some(true), ..Owner::default() }
    }

    #[test]
    fn an_object_of_another_namespace_holds_no_owner_up_and_is_not_orphaned_with_it() {
        let mut graph = Graph::default();
        let victim = map("shop", "victim");
        graph.put(&map("evil", "x"), &[owner("victim", "u")]);
        graph.put(&map("shop", "other"), &[owner("another-name", "u")]);
        assert!(graph.wait("u", &victim));
        assert_eq!(graph.is_free("u"), Some(victim.clone()));
        assert_eq!(graph.dependents(&victim, "u"), [map("shop", "other")]);
        // What is in the same namespace does.
        graph.put(&map("shop", "child"), &[owner("victim", "u")]);
        assert_eq!(graph.is_free("u"), None);
        assert!(!graph.wait("u", &victim), "it waits already");
        assert_eq!(graph.remove(&map("shop", "child")), ["u"]);
        assert_eq!(graph.is_free("u"), Some(victim));
        graph.done("u");
        assert_eq!(graph.is_free("u"), None);
    }

    #[test]
    fn an_owner_of_the_whole_cluster_is_held_up_from_every_namespace() {
        let mut graph = Graph::default();
        let all = Key::new("", "nodes", "", "n");
        graph.wait("u", &all);
        graph.put(&map("a", "x"), &[owner("n", "u")]);
        assert_eq!(graph.is_free("u"), None);
        assert_eq!(graph.put(&map("a", "x"), &[]), ["u"], "it says so no more");
        assert_eq!(graph.is_free("u"), Some(all));
        assert!(graph.owned.is_empty() && graph.owners.is_empty() && graph.blocking.is_empty());
    }
}
