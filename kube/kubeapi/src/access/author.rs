//! Objects that say who wrote them: Kubernetes keeps no creator, and some controllers act with the rights of whoever asked.
//!
//! The API writes the stamp: when an object is created, and when anything but its metadata and status changes, by whatever verb. Any
//! other write keeps the stamp that is there. What clients say in its place is replaced.

use super::authn::User;
use crate::resources::resource::{Resource, Subresource};
use serde_json::Value;

/// Which objects are stamped, and how.
#[derive(Debug, Clone, Default)]
pub struct Stamping {
    /// The annotation that says who wrote an object: `userInfo` as reviews have it, as JSON.
    pub annotation: String,
    /// Group and plural of what is stamped.
    pub resources: Vec<(String, String)>,
    /// Users whose changes of metadata are none of an author's: a controller's.
    pub controllers: Vec<String>,
}

impl Stamping {
    /// Stamps an object that is about to be written.
    pub(crate) fn stamp(
        &self,
        resource: &Resource,
        subresource: Option<&Subresource>,
        user: &User,
        new: &mut Value,
        old: Option<&Value>,
    ) {
        if !self.resources.iter().any(|(group, plural)| resource.is(group, plural)) {
            return;
        }
        let before = old.and_then(|old| old["metadata"]["annotations"].get(&self.annotation)).cloned();
        let stamp = match old {
            Some(_) if subresource.is_some() => before,
            Some(old) if is_same(new, old) => {
                let controls = self.controllers.contains(&user.name);
                match before {
                    // Only they may take one off.
                    _ if controls => return,
                    Some(before) => Some(before),
                    None => Some(of(user)),
                }
            }
            Some(_) | None => Some(of(user)),
        };
        let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let annotations =
            metadata.entry("annotations").or_insert_with(|| Value::Object(serde_json::Map::new()));
        if !annotations.is_object() {
            *annotations = Value::Object(serde_json::Map::new());
        }
        if let Some(annotations) = annotations.as_object_mut() {
            match stamp {
                Some(stamp) => drop(annotations.insert(self.annotation.clone(), stamp)),
                None => drop(annotations.remove(&self.annotation)),
            }
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
}

fn of(user: &User) -> Value {
    user.info().to_string().into()
}

/// Whether everything but metadata and status is as it was.
fn is_same(new: &Value, old: &Value) -> bool {
    let own = |object: &Value| -> Vec<(String, Value)> {
        let fields = object.as_object().into_iter().flatten();
        let own = fields.filter(|(name, value)| {
            !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()) && !value.is_null()
        });
        let mut own: Vec<_> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
        own.sort_by(|(one, _), (other, _)| one.cmp(other));
        own
    };
    own(new) == own(old)
}
