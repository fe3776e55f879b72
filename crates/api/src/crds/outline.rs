//! Reads a schema from its outline: one line per field, indented by depth, with what the schema says of it.
//!
//! ```text
//! spec       type="object"  required=["resourceSelectors"]
//!  priority  type="integer" format="int32"
//!  exclude   type="array"
//!   []       type="string"
//! ```
//! An outline holds facts of a published schema and none of its prose. `[]` are the elements of a list, `{}` the values of a map.

use serde_json::{Map, Value, json};

/// The schema of an outline. Our outlines are part of the program: what can't be read in them is left out, and found by the
/// tests that compare them with what is published.
pub(super) fn read(outline: &str) -> Value {
    let mut lines = outline.lines().filter(|line| !line.is_empty()).peekable();
    let root = lines.next().unwrap_or_default();
    let mut schema = keywords(root);
    children(&mut schema, 0, &mut lines);
    schema
}

fn children<'a, I: Iterator<Item = &'a str>>(
    parent: &mut Value,
    depth: usize,
    lines: &mut std::iter::Peekable<I>,
) {
    while let Some(line) = lines.next_if(|line| indent(line) > depth) {
        let mut schema = keywords(line);
        children(&mut schema, indent(line), lines);
        let name = line.trim_start().split('\t').next().unwrap_or_default();
        match name {
            "[]" => parent["items"] = schema,
            "{}" => parent["additionalProperties"] = schema,
            name => parent["properties"][name] = schema,
        }
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// What stands behind a field's name.
fn keywords(line: &str) -> Value {
    let pairs = line.split('\t').skip(1).filter_map(|pair| pair.split_once('='));
    let read = pairs.map(|(key, value)| (key.to_owned(), serde_json::from_str(value).unwrap_or(json!(null))));
    Value::Object(read.collect::<Map<_, _>>())
}
