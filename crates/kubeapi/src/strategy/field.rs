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

/// Does an object's status say that this is so?
pub(crate) fn has_condition(object: &Value, kind: &str) -> bool {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == kind && one["status"] == "True")
}
