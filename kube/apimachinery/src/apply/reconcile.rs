//! Ownership written down under an older schema: what was owned part by part and is now atomic is owned as a whole.

use super::element::Element;
use super::set::Set;
use super::shape::{Chosen, Form, Type};
use crate::schema::ListKind;

/// The set as the schema of today has it.
pub(super) fn reconcile(set: &Set, of: Type<'_>) -> Set {
    let mut whole = Set::default();
    visit(Some(set), of, false, &mut Vec::new(), &mut whole);
    if whole.is_empty() { set.clone() } else { set.without(&whole).union(&whole) }
}

/// `leaf`: the set has this path and nothing below it.
fn visit(set: Option<&Set>, of: Type<'_>, leaf: bool, path: &mut Vec<Element>, whole: &mut Set) {
    match of.atom().chosen(Form::Open) {
        Some(Chosen::List(list)) => {
            if *list.kind == ListKind::Atomic {
                if !leaf {
                    whole.insert(path);
                }
                return;
            }
            each(set, path, whole, |_| Some(list.items));
        }
        Some(Chosen::Map(fields)) => {
            if fields.free() {
                return;
            }
            if fields.atomic {
                if !leaf && set.is_some_and(|set| !set.is_empty()) {
                    whole.insert(path);
                }
                return;
            }
            each(set, path, whole, |element| match element {
                Element::Field(name) => fields.field(name),
                _ => fields.other(),
            });
        }
        Some(Chosen::Scalar(_)) | None => {}
    }
}

fn each<'s>(
    set: Option<&Set>,
    path: &mut Vec<Element>,
    whole: &mut Set,
    of: impl Fn(&Element) -> Option<Type<'s>>,
) {
    for (element, member) in set.into_iter().flat_map(Set::steps) {
        let Some(of) = of(element) else { continue };
        let below = set.and_then(|set| set.below(element));
        path.push(element.clone());
        visit(below, of, member && below.is_none(), path, whole);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::parse;
    use serde_json::{Value, json};

    fn reconciled(fields: &Value, schema: &Value) -> Value {
        let schema = parse(&json!({ "type": "object", "properties": { "spec": schema } })).unwrap();
        reconcile(&Set::decode(fields).unwrap(), Type::of_object(&schema)).encode()
    }

    #[test]
    fn what_became_atomic_is_owned_as_a_whole() {
        let parts = json!({ "f:spec": { "f:a": { "f:x": {} }, "f:b": { ".": {}, "k:{\"n\":1}": { ".": {}, "f:n": {} } }, "f:c": {} } });
        let schema = |kind: &str| {
            json!({ "type": "object", "properties": {
                "a": { "type": "object", "x-kubernetes-map-type": kind, "properties": { "x": { "type": "string" } } },
                "b": { "type": "array", "x-kubernetes-list-type": if kind == "atomic" { "atomic" } else { "map" },
                       "x-kubernetes-list-map-keys": ["n"], "items": { "type": "object", "properties": { "n": { "type": "integer" } } } },
                "c": { "type": "string" },
            } })
        };
        assert_eq!(reconciled(&parts, &schema("granular")), parts);
        let whole = json!({ "f:spec": { "f:a": {}, "f:b": {}, "f:c": {} } });
        assert_eq!(reconciled(&parts, &schema("atomic")), whole);
        assert_eq!(reconciled(&whole, &schema("atomic")), whole);
        // The other way round nothing is known of the parts.
        assert_eq!(reconciled(&whole, &schema("granular")), whole);
    }
}
