//! What a planner wants done, as values: the shell carries it out and does not choose.

use super::facts::Meta;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The kinds that controllers read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    Revision,
    Job,
    Pod,
    Service,
    Slice,
    Node,
    Namespace,
    Account,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Create(Kind, Value),
    /// The whole object, as it was read at the resourceVersion in it.
    Replace(Kind, Value),
    /// A merge patch of the object, or of its status.
    Patch {
        kind: Kind,
        target: Target,
        status: bool,
        body: Value,
    },
    Delete(Kind, Target),
}

/// The object that an action is about, in the state that was decided on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: u64,
}

impl From<&Meta> for Target {
    fn from(meta: &Meta) -> Self {
        Self {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            version: meta.version,
        }
    }
}

impl Action {
    /// Pods come and go side by side; everything else in the order that was planned.
    pub(crate) fn has_no_order(&self) -> bool {
        matches!(self, Self::Create(Kind::Pod, _) | Self::Delete(Kind::Pod, _))
    }

    /// Makes an object's status what it should be; `None` where it is.
    pub(crate) fn status(kind: Kind, meta: &Meta, is: &Value, should: &Value) -> Option<Self> {
        let status = difference(is, should)?;
        Some(Self::Patch { kind, target: meta.into(), status: true, body: json!({"status": status}) })
    }
}

/// The merge patch that leads from one object to another; nested objects are replaced field by field.
pub(crate) fn difference(is: &Value, should: &Value) -> Option<Value> {
    let empty = Map::new();
    let (is, should) = (is.as_object().unwrap_or(&empty), should.as_object().unwrap_or(&empty));
    let mut patch = Map::new();
    for (field, value) in should {
        match is.get(field) {
            Some(old) if old == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                patch.extend(difference(old, value).map(|inner| (field.clone(), inner)));
            }
            _ => {
                patch.insert(field.clone(), value.clone());
            }
        }
    }
    patch.extend(
        is.keys().filter(|field| !should.contains_key(*field)).map(|field| (field.clone(), Value::Null)),
    );
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// What is to be done about one object now, and when to look at it again although nothing happens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<Action>,
    pub(crate) again: Option<Timestamp>,
}

impl Plan {
    pub(crate) fn look_again(&mut self, at: Option<Timestamp>) {
        self.again = match (self.again, at) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_only_what_differs() {
        for (is, should, want) in [
            (json!({"a": 1, "b": [1]}), json!({"a": 1, "b": [1]}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
            (json!({"o": {"a": 1, "b": 1}}), json!({"o": {"a": 1}}), Some(json!({"o": {"b": null}}))),
            (Value::Null, json!({"a": 1}), Some(json!({"a": 1}))),
        ] {
            assert_eq!(difference(&is, &should), want, "{is} to {should}");
        }
    }
}
