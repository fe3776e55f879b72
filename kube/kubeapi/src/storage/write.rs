//! The one way into the store for objects: whatever is derived from them hears of every write.

use crate::api::ApiState;
use crate::http::encode::Unrevised;
use crate::resources::resource::Resource;
use crate::resources::view;
use crate::storage::store::{Key, Object, Write, WriteError};
use serde_json::Value;

impl ApiState {
    /// Writes an object down: a new one, or in place of what is at revision `expect`.
    pub(crate) async fn write(
        &self,
        resource: &Resource,
        key: Key,
        object: &Value,
        expect: Option<u64>,
    ) -> Result<Object, WriteError> {
        let body = Unrevised::new(&view::stored(resource, object));
        let write = match expect {
            None => Write::create(move |revision| body.at(revision)),
            Some(expect) => Write::update(expect, move |revision| body.at(revision)),
        };
        let written = self.store.write(key, write).await?;
        self.written(resource, &written.key);
        Ok(written)
    }

    /// Removes an object if it is still what was read, which `shown` is. Its addresses are released.
    pub(crate) async fn remove(
        &self,
        resource: &Resource,
        existing: &Object,
        shown: &Value,
    ) -> Result<Object, WriteError> {
        // Watchers see the last state that was written.
        let body = Unrevised::of(&existing.body);
        let write = Write::delete(existing.revision, move |revision| body.at(revision));
        let gone = self.store.write(existing.key.clone(), write).await?;
        self.addresses.release(resource, shown);
        self.written(resource, &existing.key);
        Ok(gone)
    }

    /// Something of this resource was written: what is derived from it is read again.
    fn written(&self, resource: &Resource, key: &Key) {
        match resource.stored.group.as_str() {
            crate::access::rbac::GROUP => self.rbac.written(&self.store, key),
            crate::access::admission::GROUP => self.policies.changed(),
            _ => {}
        }
    }
}
