//! The named fields of an object: a map that costs nothing to copy until it is changed.
//!
//! Kubernetes' own kinds share most of their schemas: a Pod's is part of nine of them.

use super::Schema;
use std::collections::{BTreeMap, btree_map};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Named fields and their schemas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Properties(Arc<BTreeMap<String, Schema>>);

impl Deref for Properties {
    type Target = BTreeMap<String, Schema>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Properties {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl From<BTreeMap<String, Schema>> for Properties {
    fn from(properties: BTreeMap<String, Schema>) -> Self {
        Self(Arc::new(properties))
    }
}

impl FromIterator<(String, Schema)> for Properties {
    fn from_iter<T: IntoIterator<Item = (String, Schema)>>(properties: T) -> Self {
        Self(Arc::new(properties.into_iter().collect()))
    }
}

impl IntoIterator for Properties {
    type Item = (String, Schema);
    type IntoIter = btree_map::IntoIter<String, Schema>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a> IntoIterator for &'a Properties {
    type Item = (&'a String, &'a Schema);
    type IntoIter = btree_map::Iter<'a, String, Schema>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
