//! Expressions that would run for hours, or make gigabytes: each ends within its budget, and says so. What honest rules
//! do with large objects still works.

use atoll_apimachinery::admission::{Budget, Policy, Request, evaluate, evaluate_within};
use atoll_apimachinery::schema::{self, Rules};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Far more than a budget takes even where the machine is busy, and far less than the bombs would.
const SOON: Duration = Duration::from_secs(20);

fn document(rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    json!({
        "type": "object",
        "x-kubernetes-validations": rules,
        "properties": {
            "list": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "text": {"type": "string"},
        },
    })
}

/// What rules say against a value.
fn said(rules: &[&str], value: &Value) -> Vec<String> {
    let schema = schema::parse(&document(rules)).unwrap();
    let start = Instant::now();
    let found = schema::rules(value, None, &schema);
    assert!(start.elapsed() < SOON, "{rules:?} took {:?}", start.elapsed());
    found.iter().map(ToString::to_string).collect()
}

fn large() -> Value {
    let list: Vec<String> = (0..10_000).map(|at| format!("element-{at}")).collect();
    let numbers: Vec<usize> = (0..10_000).collect();
    json!({"list": list, "numbers": numbers, "text": "a".repeat(200_000)})
}

#[test]
fn nested_loops_over_a_long_list_are_cut_off() {
    let found = said(&["self.list.all(x, self.list.all(y, x != y || x == y))"], &large());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("operation cancelled: actual cost limit exceeded"), "{found:?}");
    assert!(
        found[0].contains("no further validation rules will be run due to call cost exceeds limit"),
        "{found:?}"
    );
}

#[test]
fn a_failing_side_does_not_hide_that_the_budget_is_spent() {
    for rule in [
        "self.list.all(x, self.list.all(y, true)) || true",
        "!(self.list.all(x, self.list.all(y, true)) && false)",
        "self.list.exists(x, !self.list.all(y, true)) || self.list[-1] == '' || true",
    ] {
        let found = said(&[rule], &large());
        assert!(found.concat().contains("cost limit exceeded"), "{rule}: {found:?}");
    }
}

#[test]
fn strings_that_double_are_cut_off() {
    let doubled = (0..12).fold("self.text".to_owned(), |inner, _| format!("[{inner}].map(x, x + x)[0]"));
    for rule in [
        doubled.as_str(),
        "self.text.replace('', self.text).size() > 0",
        "self.list.map(x, self.text + x).join(self.text).size() > 0",
        "self.list.join(self.text).size() > 0",
        "lists.range(1000000000).size() > 0",
        "'%.999999999f'.format([1.0]).size() > 0",
        "self.text.split('').size() > 0 && self.list.map(x, self.text.split('')).size() > 0",
    ] {
        let found = said(&[rule], &large());
        assert!(found.concat().contains("cost limit exceeded"), "{rule}: {found:?}");
    }
}

#[test]
fn patterns_that_are_dear_are_cut_off() {
    for rule in [
        // Each is compiled, and none twice.
        "self.list.all(x, !self.text.matches(x + '{50}'))",
        "self.list.all(x, !self.text.matches('(a*)*(a*)*(a*)*' + 'b'))",
        "self.list.all(x, !self.text.matches('(a*)*b'))",
        "self.list.all(x, self.text.find('(a|b)*c') == '')",
    ] {
        let found = said(&[rule], &large());
        assert!(found.concat().contains("exceed"), "{rule}: {found:?}");
    }
    let found = said(&["'a'.matches('((a{100}){100}){100}')"], &large());
    assert!(found.concat().contains("error parsing regexp"), "{found:?}");
}

#[test]
fn comparing_large_values_again_and_again_is_cut_off() {
    for rule in [
        "self.list.all(x, self.list == self.list)",
        "self.list.all(x, self == self)",
        "self.numbers.all(x, !(-1 in self.numbers))",
        "self.numbers.all(x, self.numbers.sum() > 0)",
        "sets.contains(self.numbers, self.numbers)",
        "self.list.all(sets, sets.intersects(self.numbers, [-1]) || true)",
        "self.numbers.distinct().size() > 0",
        "self.list.all(x, optional.of(self.list).hasValue())",
    ] {
        let found = said(&[rule], &large());
        assert!(found.concat().contains("cost limit exceeded"), "{rule}: {found:?}");
    }
}

#[test]
fn many_dear_rules_share_one_budget() {
    // Each stays below what one may cost.
    let rule = "self.list.all(x, self.numbers.filter(y, y < 3).size() == 3 || true)";
    let rules: Vec<&str> = std::iter::repeat_n(rule, 40).collect();
    let small = json!({
        "list": (0..10).map(|at| at.to_string()).collect::<Vec<_>>(),
        "numbers": (0..9_000).collect::<Vec<_>>(),
    });
    let found = said(&rules, &small);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("validation failed due to running out of cost budget"), "{found:?}");
}

#[test]
fn honest_rules_on_large_objects_are_within_the_budget() {
    let rules = [
        "self.list.all(x, x.startsWith('element-'))",
        "self.list.map(x, x.size()).sum() > 0",
        "self.list.filter(x, x == 'element-77').size() == 1",
        "self.numbers.exists_one(x, x == 5)",
        "self.list.exists(x, x.matches('^[a-z]+-[0-9]+$'))",
        "self.text.size() == 200000 && !self.text.contains('b')",
        "self.list == self.list",
    ];
    assert_eq!(said(&rules, &large()), Vec::<String>::new());
    let nested = ["self.list.all(x, self.list.exists_one(y, x == y))"];
    let list: Vec<String> = (0..100).map(|at| at.to_string()).collect();
    assert_eq!(said(&nested, &json!({"list": list})), Vec::<String>::new());
}

#[test]
fn rules_that_may_be_dear_are_told_apart() {
    let dear = |rule: &str, value: &Value| {
        let schema = schema::parse(&document(&[rule])).unwrap();
        let rules = Rules::compile(&schema);
        let _ = rules.check(value, None, &schema);
        rules.are_dear()
    };
    assert!(!dear("self.list.all(x, x != '')", &json!({"list": ["a"]})));
    assert!(dear("self.list.all(x, self.list.all(y, x == y))", &json!({"list": ["a"]})));
    assert!(dear("self.numbers.all(x, x + 1 > 0)", &large()), "it was");
}

fn policy(expression: &str, extra: Value) -> Policy {
    let mut spec = json!({"validations": [{"expression": expression}]});
    for (field, value) in extra.as_object().unwrap() {
        spec[field] = value.clone();
    }
    Policy::compile(&json!({"metadata": {"name": "bomb"}, "spec": spec})).unwrap()
}

fn request(object: &Value) -> Request<'_> {
    let create = Request { operation: "CREATE", version: "v1", kind: "ConfigMap", ..Request::default() };
    Request { resource: "configmaps", name: "a", namespace: "b", object: Some(object), ..create }
}

fn bound() -> Value {
    json!({"metadata": {"name": "all"}, "spec": {"policyName": "bomb", "validationActions": ["Deny"]}})
}

#[test]
fn a_policy_that_loops_is_cut_off_and_refuses() {
    let object = large();
    let nested = "object.list.all(x, object.list.all(y, true))";
    let variable = json!({"variables": [{"name": "slow", "expression": nested}]});
    for asked in [policy(nested, json!({})), policy("variables.slow", variable)] {
        let start = Instant::now();
        let outcome = evaluate(&asked, &bound(), None, &request(&object));
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        let message = &outcome.denials[0].message;
        assert!(message.contains("operation cancelled: actual cost limit exceeded"), "{message}");
    }
    let ignored = policy(nested, json!({"failurePolicy": "Ignore"}));
    assert!(evaluate(&ignored, &bound(), None, &request(&object)).denials.is_empty());
}

#[test]
fn many_policies_share_what_one_request_may_cost() {
    let object = large();
    let asked = policy("object.numbers.map(x, x + 1).size() > 0", json!({}));
    let mut budget = Budget::request();
    let start = Instant::now();
    let refused = (0..1000).find_map(|_| {
        let outcome = evaluate_within(&asked, &bound(), None, &request(&object), &mut budget);
        outcome.denials.into_iter().next()
    });
    assert!(start.elapsed() < 3 * SOON, "{:?}", start.elapsed());
    assert!(refused.unwrap().message.contains("running out of cost budget"));
}

#[test]
fn messages_with_fields_are_refused_and_nothing_panics() {
    for rule in ["Thing{a: 1} == self", "google.protobuf.Struct{} == {}", "[Thing{}].all(x, true)"] {
        let found = said(&[rule], &large());
        assert_eq!(found.len(), 1, "{rule}: {found:?}");
    }
}

#[test]
fn a_definition_or_policy_of_very_many_rules_is_refused_at_once() {
    let start = Instant::now();
    let rules: Vec<Value> = (0..100_000).map(|at| json!({"rule": format!("self.x != {at}")})).collect();
    let x = json!({"type": "integer"});
    let bomb = json!({"type": "object", "properties": {"x": x}, "x-kubernetes-validations": rules});
    let found = schema::structural(&bomb, "schema");
    assert!(found[0].to_string().contains("must have at most 2000 validation rules"), "{found:?}");
    let validations: Vec<Value> = (0..100_000).map(|at| json!({"expression": format!("{at} > 0")})).collect();
    let refused = Policy::compile(&json!({"spec": {"validations": validations}})).unwrap_err();
    assert!(refused[0].to_string().contains("must have at most 1000 expressions"), "{refused:?}");
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}
