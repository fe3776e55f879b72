//! JSON patch (RFC 6902), as lenient as an API server: `replace` may add, negative places count from the end.

use super::PatchError;
use serde_json::{Map, Value};

/// More operations than this a server refuses.
pub const MOST_OPERATIONS: usize = 10_000;
/// What `copy` operations may add together, in bytes: a few of them could otherwise double an object many times.
const MOST_COPIED: usize = 3 << 20;

/// Carries out a list of operations, all or none.
///
/// # Errors
/// When the patch is no list of operations, or one of them does not fit the object.
pub fn json(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let malformed = |why: &str| PatchError::Malformed(why.to_owned());
    let Value::Array(operations) = patch else {
        return Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            json_type(patch)
        )));
    };
    let mut patched = object.clone();
    let mut copied = 0;
    for operation in operations {
        let Value::Object(operation) = operation else {
            return Err(malformed("a JSON patch is a list of objects"));
        };
        carry_out(&mut patched, operation, &mut copied).map_err(PatchError::Unprocessable)?;
    }
    Ok(patched)
}

fn carry_out(document: &mut Value, operation: &Map<String, Value>, copied: &mut usize) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let kind = text("op").unwrap_or("unknown");
    let path = text("path").ok_or_else(|| format!("{kind} operation failed to decode path: missing value"));
    let from = text("from").ok_or_else(|| format!("{kind} operation failed to decode from: missing value"));
    let value = || operation.get("value").cloned().unwrap_or_default();
    match kind {
        "add" => add(document, path?, value()),
        "remove" => remove(document, path?).map(|_| ()),
        "replace" => replace(document, path?, value()),
        "move" => {
            let moved = remove(document, from?)?;
            add(document, path?, moved)
        }
        "copy" => {
            let copy = find(document, from?)?.cloned().unwrap_or_default();
            *copied += copy.to_string().len();
            if *copied > MOST_COPIED {
                return Err(format!("the copies would add {copied} bytes, more than {MOST_COPIED}"));
            }
            add(document, path?, copy)
        }
        "test" => {
            let path = path?;
            let found = if path.is_empty() { Some(&*document) } else { find(document, path)? };
            if found.unwrap_or(&Value::Null) == &value() {
                Ok(())
            } else {
                Err(format!("testing value {path} failed: test failed"))
            }
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

/// The names on the way, and the last one.
fn steps(path: &str) -> Result<(Vec<String>, String), String> {
    let mut steps = path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~"));
    steps.next();
    let mut steps: Vec<_> = steps.collect();
    let last = steps.pop().ok_or_else(|| format!("doc is missing path: {path:?}: missing value"))?;
    Ok((steps, last))
}

fn container<'d>(document: &'d mut Value, path: &str) -> Result<(&'d mut Value, String), String> {
    let (way, last) = steps(path)?;
    let missing = || format!("doc is missing path: {path:?}: missing value");
    let mut at = document;
    for step in way {
        at = match at {
            Value::Object(fields) => fields.get_mut(&step),
            Value::Array(items) => place(&step, items.len()).ok().and_then(|place| items.get_mut(place)),
            _ => None,
        }
        .ok_or_else(missing)?;
    }
    if at.is_object() || at.is_array() { Ok((at, last)) } else { Err(missing()) }
}

fn find<'d>(document: &'d mut Value, path: &str) -> Result<Option<&'d Value>, String> {
    match container(document, path)? {
        (Value::Object(fields), name) => Ok(fields.get(&name)),
        (Value::Array(items), step) => {
            let place = place(&step, items.len())?;
            items.get(place).map(Some).ok_or_else(|| invalid_index(&step))
        }
        _ => Ok(None),
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    match container(document, path)? {
        (Value::Object(fields), name) => {
            fields.insert(name, value);
        }
        (Value::Array(items), step) if step == "-" => items.push(value),
        (Value::Array(items), step) => {
            let place = place(&step, items.len() + 1)?;
            if place > items.len() {
                return Err(invalid_index(&step));
            }
            items.insert(place, value);
        }
        _ => {}
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, String> {
    match container(document, path)? {
        (Value::Object(fields), name) => fields
            .remove(&name)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {name}: missing value")),
        (Value::Array(items), step) => {
            let place = place(&step, items.len())?;
            if place >= items.len() {
                return Err(invalid_index(&step));
            }
            Ok(items.remove(place))
        }
        _ => Ok(Value::Null),
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *document = value;
        return Ok(());
    }
    match container(document, path)? {
        // A key that is not there is added: that is what API servers do.
        (Value::Object(fields), name) => {
            fields.insert(name, value);
        }
        (Value::Array(items), step) => {
            let place = place(&step, items.len())?;
            *items.get_mut(place).ok_or_else(|| invalid_index(&step))? = value;
        }
        _ => {}
    }
    Ok(())
}

/// A place in a list; a negative one counts from the end.
fn place(step: &str, length: usize) -> Result<usize, String> {
    let number: i64 = step.parse().map_err(|_| format!("value was not a proper array index: '{step}'"))?;
    match usize::try_from(number) {
        Ok(place) => Ok(place),
        Err(_) => length
            .checked_sub(usize::try_from(number.unsigned_abs()).map_err(|_| invalid_index(step))?)
            .ok_or_else(|| invalid_index(step)),
    }
}

fn invalid_index(step: &str) -> String {
    format!("Unable to access invalid index: {step}: invalid index referenced")
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn copies_cannot_grow_an_object_without_end() {
        let object = json!({ "list": ["x".repeat(1000)] });
        let copies =
            |from: &str, count| json!(vec![json!({ "op": "copy", "from": from, "path": "/list/-" }); count]);
        assert!(json(&object, &copies("/list/0", 40)).is_ok());
        // Each doubles the list.
        assert!(matches!(json(&object, &copies("/list", 40)), Err(PatchError::Unprocessable(_))));
    }
}
