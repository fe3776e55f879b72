//! Input from anyone must be answered, whatever it is: seeds that were thought of or once found, and random ones.
//!
//! A panic, a stack overflow or an endless loop fails the test by itself.

use atoll_apimachinery::admission::Policy;
use atoll_apimachinery::selector::{fields, labels};
use atoll_apimachinery::{protobuf, schema, strict};
use proptest::prelude::*;
use serde_json::json;

fn seeds(of: &str) -> Vec<(String, Vec<u8>)> {
    let folder = format!("{}/tests/seeds/{of}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut seeds: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
        })
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{folder} has no seeds");
    seeds
}

fn body(bytes: &[u8]) {
    if let Ok((value, _)) = strict::parse(bytes) {
        // What was accepted can be written and read again, and means the same.
        let written = value.to_string();
        assert_eq!(strict::parse(written.as_bytes()).unwrap().0, value);
    }
    let _ = strict::parse_yaml(bytes);
}

fn selector(text: &str) {
    if let Ok(selector) = labels::Selector::parse(text) {
        let again = labels::Selector::parse(&selector.to_string());
        assert_eq!(again.as_ref(), Ok(&selector), "{text:?}");
    }
    if let Ok(selector) = fields::Selector::parse(text) {
        // Fields with an operator in them can't be written so that they are read again.
        if selector.terms.iter().all(|term| !term.field.contains(['!', '\\'])) {
            // Terms are in the order of the text that they were read from (`==` is written as `=`).
            let terms = |selector: &fields::Selector| {
                let mut terms: Vec<String> = selector.terms.iter().map(|term| format!("{term:?}")).collect();
                terms.sort();
                terms
            };
            let again = fields::Selector::parse(&selector.to_string()).unwrap();
            assert_eq!(terms(&again), terms(&selector), "{text:?}");
        }
    }
}

fn expression(text: &str) {
    let document = json!({"type": "object", "x-kubernetes-validations": [{"rule": text, "message": "m"}]});
    let _ = schema::structural(&document, "schema");
    let parsed = schema::parse(&document).unwrap();
    let _ = schema::rules(&json!({}), None, &parsed);
    let _ = Policy::compile(&json!({"spec": {"validations": [{"expression": text}]}}));
}

#[test]
fn an_operator_that_is_written_shorter_changes_the_order_and_nothing_else() {
    selector("= ,==");
}

#[test]
fn seeds_are_answered() {
    seeds("bodies").iter().for_each(|(_, bytes)| body(bytes));
    seeds("selectors").iter().for_each(|(_, bytes)| selector(&String::from_utf8_lossy(bytes)));
    seeds("expressions").iter().for_each(|(_, bytes)| expression(&String::from_utf8_lossy(bytes)));
    for (name, bytes) in seeds("protobuf") {
        let decoded = protobuf::decode(&bytes);
        assert_eq!(decoded.is_ok(), matches!(name.as_str(), "pod" | "definition"), "{name}: {decoded:?}");
    }
}

/// Three megabytes of messages of two bytes would be hundreds.
#[test]
fn very_many_empty_messages_are_refused_before_they_fill_the_memory() {
    let varint = |mut number: usize| {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    };
    let part = |field: u8, bytes: &[u8]| [vec![field << 3 | 2], varint(bytes.len()), bytes.to_vec()].concat();
    let pod = |containers: usize| {
        let spec = part(2, &[0x12, 0].repeat(containers)); // an empty container each
        let head = part(1, &[part(1, b"v1"), part(2, b"Pod")].concat());
        [b"k8s\0".to_vec(), head, part(2, &spec)].concat()
    };
    let few = protobuf::decode(&pod(1000)).unwrap();
    assert_eq!(few["spec"]["containers"].as_array().map(Vec::len), Some(1000));
    assert_eq!(protobuf::decode(&pod(1_500_000)), Err(protobuf::DecodeError::TooMuch));
}

/// A megabyte and fifty aliases would be fifty megabytes.
#[test]
fn an_alias_to_a_long_text_does_not_fill_the_memory() {
    let text = "x".repeat(1 << 20);
    let bomb = |times: usize| format!("a: &a {text}\nb: [{}]\n", vec!["*a"; times].join(","));
    assert!(strict::parse_yaml(bomb(2).as_bytes()).is_ok());
    assert!(strict::parse_yaml(bomb(50).as_bytes()).is_err());
}

/// Just below the bounds nothing overflows either.
#[test]
fn the_deepest_expressions_that_are_read_are_run() {
    for text in [
        format!("{}true{}", "(".repeat(32), ")".repeat(32)),
        format!("{}1{}", "[".repeat(32), "]".repeat(32)),
        format!("{}true", "!".repeat(32)),
        format!("{}1", "-".repeat(32)),
        format!("self{}", ".a".repeat(400)),
        format!("1{} > 0", "+1".repeat(44)),
        format!("self{} == 1", ".a".repeat(44)),
        format!("1{}", "+1".repeat(400)),
        format!("true{}", "&&true".repeat(200)),
        format!("true{}", " || true".repeat(200)),
        format!("{}1{}", "true?".repeat(32), ":1".repeat(32)),
        format!("{}true{}", "[1].all(x, ".repeat(30), ")".repeat(30)),
    ] {
        expression(&text);
    }
}

proptest! {
    #[test]
    fn any_text_is_answered_as_a_selector(text in "\\PC{0,24}", shaped in "[a-z!=<>(), in\\\\/.]{0,16}") {
        selector(&text);
        selector(&shaped);
    }

    #[test]
    fn any_bytes_are_answered_as_a_body(bytes in prop::collection::vec(any::<u8>(), 0..96)) {
        body(&bytes);
        let mut bytes = bytes;
        bytes.splice(0..0, *b"k8s\0");
        let _ = protobuf::decode(&bytes);
    }

    #[test]
    fn a_broken_message_is_answered(which in 0_usize..2, at in any::<prop::sample::Index>(), byte: u8, cut: bool) {
        let names = ["pod", "definition"];
        let mut bytes = seeds("protobuf").into_iter().find(|(name, _)| name == names[which]).unwrap().1;
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        if let Ok(object) = protobuf::decode(&bytes) {
            // Nothing grows without bound: JSON is at most some times as long as what it was read from.
            prop_assert!(object.to_string().len() < 64 * 1024 + bytes.len() * 8);
        }
    }

    #[test]
    fn any_text_is_answered_as_an_expression(text in "[a-z0-9.()\\[\\]{}!?:&|<>=+*/,'\" -]{0,24}") {
        expression(&text);
    }
}
