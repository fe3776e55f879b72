//! Takes a CRD or a schema apart into facts that can be compared one by one.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Lines such as `v1beta1 spec.ports[].port: format = "int32"`.
pub(crate) type Facts = BTreeSet<String>;

/// Everything that a CRD says but for its prose.
pub(crate) fn of_crd(crd: &Value) -> Facts {
    let mut facts = Facts::new();
    let spec = &crd["spec"];
    facts.insert(format!("name = {}", crd["metadata"]["name"]));
    for key in ["group", "scope", "conversion", "preserveUnknownFields"] {
        facts.insert(format!("{key} = {}", spec[key]));
    }
    for key in ["kind", "plural", "singular", "shortNames", "categories"] {
        facts.insert(format!("names: {key} = {}", spec["names"][key]));
    }
    for version in spec["versions"].as_array().expect("versions") {
        let name = version["name"].as_str().expect("a version's name");
        for key in ["served", "storage", "subresources", "deprecated", "selectableFields"] {
            facts.insert(format!("{name}: {key} = {}", version[key]));
        }
        for (i, column) in version["additionalPrinterColumns"].as_array().into_iter().flatten().enumerate() {
            facts.insert(format!("{name}: column {i} = {}", without(column, &["description"])));
        }
        let schema = &version["schema"]["openAPIV3Schema"];
        facts.extend(of_schema(schema).into_iter().map(|fact| format!("{name} {fact}")));
    }
    facts
}

/// Everything that a schema says but for its prose, and for the three fields that the API server itself sees to.
pub(crate) fn of_schema(schema: &Value) -> Facts {
    let mut root = schema.clone();
    if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    }
    let mut facts = Facts::new();
    descend(&root, "", &mut facts);
    facts
}

fn descend(schema: &Value, path: &str, facts: &mut Facts) {
    for (key, value) in schema.as_object().expect("a schema is an object") {
        match key.as_str() {
            "description" => {}
            "properties" => {
                for (name, property) in value.as_object().expect("properties") {
                    let dot = if path.is_empty() { "" } else { "." };
                    descend(property, &format!("{path}{dot}{name}"), facts);
                }
            }
            "items" => descend(value, &format!("{path}[]"), facts),
            "additionalProperties" if value.is_object() => descend(value, &format!("{path}{{}}"), facts),
            "required" | "enum" => {
                let sorted: BTreeSet<_> =
                    value.as_array().expect("a list").iter().map(Value::to_string).collect();
                facts.insert(format!("{path}: {key} = {sorted:?}"));
            }
            _ => {
                facts.insert(format!("{path}: {key} = {}", whole(value)));
            }
        }
    }
}

/// A limit that is a whole number is the same with and without `.0`.
fn whole(value: &Value) -> Value {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 => Value::from(number as i64),
        _ => value.clone(),
    }
}

/// An object without some of its keys.
pub(crate) fn without(value: &Value, keys: &[&str]) -> Value {
    let kept = value.as_object().into_iter().flatten().filter(|(key, _)| !keys.contains(&key.as_str()));
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>())
}

/// Compares ours with what is published. `differences` are those that we want, as `+ ours` and `- published`, each
/// with its reason; one that is no longer there fails too.
pub(crate) fn compare(ours: &Facts, published: &Facts, differences: &[(&str, &str)]) {
    let added = ours.difference(published).map(|fact| format!("+ {fact}"));
    let missing = published.difference(ours).map(|fact| format!("- {fact}"));
    let found: BTreeSet<String> = added.chain(missing).collect();
    let wanted: BTreeSet<String> = differences.iter().map(|(fact, _)| (*fact).to_owned()).collect();
    let unexpected: Vec<_> = found.difference(&wanted).collect();
    let gone: Vec<_> = wanted.difference(&found).collect();
    assert!(
        unexpected.is_empty() && gone.is_empty(),
        "differences that are not listed: {unexpected:#?}\ndifferences that are no longer there: {gone:#?}"
    );
    assert!(!published.is_empty(), "nothing to compare with");
}
