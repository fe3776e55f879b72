//! Fields of objects by dotted paths.

use serde_json::{Map, Value};

/// The value at a dotted path.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|step| !step.is_empty()).try_fold(object, |value, step| value.get(step))
}

/// The place at a dotted path, made if it is not there. `None` where something on the way is no object.
pub(crate) fn at_mut<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').filter(|step| !step.is_empty()).try_fold(object, |value, step| {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        Some(value.as_object_mut()?.entry(step).or_insert(Value::Null))
    })
}

/// Sets what is not there. Where its parent is not there either, nothing happens.
pub(crate) fn set_default(object: &mut Value, path: &str, value: impl Into<Value>) {
    let (parent, field) = path.rsplit_once('.').unwrap_or(("", path));
    let steps = parent.split('.').filter(|step| !step.is_empty());
    let parent = steps.into_iter().try_fold(object, |value, step| value.get_mut(step));
    if let Some(fields) = parent.and_then(Value::as_object_mut)
        && fields.get(field).is_none_or(Value::is_null)
    {
        fields.insert(field.to_owned(), value.into());
    }
}

/// The strings in a list.
pub(crate) fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Every object in the list at a path.
pub(super) fn each<'a>(object: &'a mut Value, path: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = path.split('.').try_fold(object, |value, step| value.get_mut(step));
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Is an object on its way out?
pub(crate) fn is_going(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// Takes what is `unwanted` out of the list in a field; the field goes with the last. False if there was nothing to take.
pub(crate) fn take_out(fields: &mut Value, field: &str, unwanted: impl Fn(&Value) -> bool) -> bool {
    let Some(fields) = fields.as_object_mut() else { return false };
    let Some(list) = fields.get_mut(field).and_then(Value::as_array_mut) else { return false };
    let before = list.len();
    list.retain(|one| !unwanted(one));
    let changed = list.len() < before;
    if list.is_empty() {
        fields.remove(field);
    }
    changed
}

/// Does an object's status say that this is so?
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == kind && one["status"] == "True")
}
