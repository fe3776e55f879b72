//! JSON patch (RFC 6902), as lenient as an API server: `replace` may add, negative places count from the end.

use super::PatchError;
use crate::strict::DEPTH_MOST;
use serde_json::{Map, Value};

/// More operations than this a server refuses.
pub const MOST_OPERATIONS: usize = 10_000;
/// What `copy` operations may add together, in bytes: a few of them could otherwise double an object many times.
const MOST_COPIED: usize = 3 << 20;

/// How many values all operations together may move about: the items behind a place in a list, and what is below a value that
/// goes elsewhere. Ten thousand operations on a long list would take minutes, and each may nest what others made.
const MOST_MOVED: usize = 2_000_000;

/// What the operations of a patch have used up.
#[derive(Default)]
struct Used {
    copied: usize,
    moved: usize,
}

impl Used {
    fn moves(&mut self, values: usize) -> Result<(), String> {
        self.moved = self.moved.saturating_add(values);
        if self.moved > MOST_MOVED {
            return Err(format!("the operations would move more than {MOST_MOVED} values"));
        }
        Ok(())
    }

    /// Is a value that is put at `path` still as deep as a body may be?
    fn nests(&mut self, path: &str, value: &Value) -> Result<(), String> {
        let above = path.split('/').count() - 1;
        let room = DEPTH_MOST.checked_sub(above).ok_or_else(|| "exceeded max depth".to_owned())?;
        self.fits(value, room)
    }

    fn fits(&mut self, value: &Value, room: usize) -> Result<(), String> {
        let (fields, items) = (value.as_object(), value.as_array());
        if fields.is_none() && items.is_none() {
            return Ok(());
        }
        let room = room.checked_sub(1).ok_or_else(|| "exceeded max depth".to_owned())?;
        for below in fields.into_iter().flat_map(Map::values).chain(items.into_iter().flatten()) {
            self.moves(1)?;
            self.fits(below, room)?;
        }
        Ok(())
    }
}

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
    let mut used = Used::default();
    for operation in operations {
        let Value::Object(operation) = operation else {
            return Err(malformed("a JSON patch is a list of objects"));
        };
        carry_out(&mut patched, operation, &mut used).map_err(PatchError::Unprocessable)?;
    }
    Ok(patched)
}

fn carry_out(document: &mut Value, operation: &Map<String, Value>, used: &mut Used) -> Result<(), String> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let kind = text("op").unwrap_or("unknown");
    let path = text("path").ok_or_else(|| format!("{kind} operation failed to decode path: missing value"));
    let from = text("from").ok_or_else(|| format!("{kind} operation failed to decode from: missing value"));
    let value = || operation.get("value").cloned().unwrap_or_default();
    match kind {
        "add" => add(document, path?, value(), used),
        "remove" => remove(document, path?, used).map(|_| ()),
        "replace" => replace(document, path?, value(), used),
        "move" => {
            let moved = remove(document, from?, used)?;
            add(document, path?, moved, used)
        }
        "copy" => {
            let copy = find(document, from?)?.cloned().unwrap_or_default();
            used.copied += copy.to_string().len();
            if used.copied > MOST_COPIED {
                return Err(format!("the copies would add {} bytes, more than {MOST_COPIED}", used.copied));
            }
            add(document, path?, copy, used)
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

fn add(document: &mut Value, path: &str, value: Value, used: &mut Used) -> Result<(), String> {
    used.nests(path, &value)?;
    match container(document, path)? {
        (Value::Object(fields), name) => {
            fields.insert(name, value);
        }
        (Value::Array(items), step) if step == "-" => items.push(value),
        (Value::Array(items), step) => {
            let place = place(&step, items.len() + 1)?;
            let behind = items.len().checked_sub(place).ok_or_else(|| invalid_index(&step))?;
            used.moves(behind)?;
            items.insert(place, value);
        }
        _ => {}
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str, used: &mut Used) -> Result<Value, String> {
    match container(document, path)? {
        (Value::Object(fields), name) => fields
            .remove(&name)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {name}: missing value")),
        (Value::Array(items), step) => {
            let place = place(&step, items.len())?;
            if place >= items.len() {
                return Err(invalid_index(&step));
            }
            used.moves(items.len() - place)?;
            Ok(items.remove(place))
        }
        _ => Ok(Value::Null),
    }
}

fn replace(document: &mut Value, path: &str, value: Value, used: &mut Used) -> Result<(), String> {
    used.nests(path, &value)?;
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
    fn a_patch_cannot_nest_an_object_deeper_than_a_body_may_be() {
        // Each round puts all that there is below a chain of objects, as deep as a path can say.
        let chain = (0..98).fold(json!({}), |below, _| json!({ "a": below }));
        let bottom = "/a".repeat(98);
        let round = [
            json!({ "op": "add", "path": "/b", "value": chain }),
            json!({ "op": "move", "from": "/a", "path": format!("/b{bottom}/a") }),
            json!({ "op": "move", "from": "/b", "path": "/a" }),
        ];
        let rounds: Vec<&Value> = round.iter().cycle().take(9_999).collect();
        assert!(matches!(json(&json!({ "a": {} }), &json!(rounds)), Err(PatchError::Unprocessable(_))));
        // An honest move is one.
        let moves = json!([{ "op": "move", "from": "/a", "path": "/b/c" }]);
        assert_eq!(json(&json!({ "a": 1, "b": {} }), &moves), Ok(json!({ "b": { "c": 1 } })));
    }

    #[test]
    fn a_patch_cannot_shift_a_long_list_ten_thousand_times() {
        let object = json!({ "list": vec![0; 500_000] });
        let removes = json!(vec![json!({ "op": "remove", "path": "/list/0" }); MOST_OPERATIONS]);
        assert!(matches!(json(&object, &removes), Err(PatchError::Unprocessable(_))));
        let few = json!(vec![json!({ "op": "remove", "path": "/list/0" }); 3]);
        let left = json(&object, &few).map(|patched| patched["list"].as_array().map(Vec::len));
        assert_eq!(left, Ok(Some(499_997)));
    }

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
