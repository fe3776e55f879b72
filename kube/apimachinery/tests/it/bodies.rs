//! Request bodies, good and bad.

use atoll_apimachinery::strict::{self, ParseError};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn duplicates_are_told_by_path_and_the_last_one_counts() {
    let body = br#"{"a":1,"spec":{"x":1,"x":2,"x":3,"ports":[{"n":1},{"n":1,"n":2}]},"a":4}"#;
    let (value, doubled) = strict::parse(body).unwrap();
    assert_eq!(value, json!({"a": 4, "spec": {"x": 3, "ports": [{"n": 1}, {"n": 2}]}}));
    assert_eq!(doubled, ["spec.x", "spec.ports[1].n", "a"]);
}

#[test]
fn numbers_and_strings_are_read_as_the_server_reads_them() {
    let body =
        r#"[1, -0, 1.50, 1e3, 9223372036854775807, 9223372036854775808, "\u00e9\ud83d\ude00\ud800x\/"]"#;
    let (value, _) = strict::parse(body.as_bytes()).unwrap();
    assert_eq!(value, json!([1, 0, 1.5, 1000, i64::MAX, 9_223_372_036_854_775_808_f64, "é😀\u{fffd}x/"]));
}

#[test]
fn complaints_are_those_of_the_server() {
    for (body, complaint) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("{a", "invalid character 'a' looking for beginning of object key string"),
        ("{\"a\"}", "invalid character '}' after object key"),
        ("{\"a\":1 \"", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("nul!", "invalid character '!' in literal null (expecting 'l')"),
        ("\"\u{1}\"", "invalid character '\\x01' in string literal"),
        (r#""\x""#, "invalid character 'x' in string escape code"),
        (r#""\u12g4""#, r"invalid character 'g' in \u hexadecimal character escape"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("01", "invalid character '1' after top-level value"),
    ] {
        assert_eq!(strict::parse(body.as_bytes()), Err(ParseError::Syntax(complaint.to_owned())), "{body}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(strict::parse(nested(strict::DEPTH_MOST).as_bytes()).is_ok());
    assert_eq!(strict::parse(nested(strict::DEPTH_MOST + 1).as_bytes()), Err(ParseError::TooDeep));
    assert_eq!(strict::parse("{\"a\":".repeat(1_000_000).as_bytes()), Err(ParseError::TooDeep));
}

#[test]
fn yaml_means_the_same_and_tells_duplicates() {
    let (value, doubled) =
        strict::parse_yaml(b"kind: A\nspec:\n  n: 1\n  on: \"yes\"\n  l: [a, {b: null}]\n").unwrap();
    assert_eq!(value, json!({"kind": "A", "spec": {"n": 1, "on": "yes", "l": ["a", {"b": null}]}}));
    assert!(doubled.is_empty());
    let (value, doubled) = strict::parse_yaml(b"a: 1\na: 2\n").unwrap();
    assert_eq!(value, json!({"a": 2}));
    assert_eq!(doubled.len(), 1);
    assert!(strict::parse_yaml(b"a: [").is_err());
    assert!(strict::parse_yaml("[".repeat(100_000).as_bytes()).is_err());
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|flag| json!(flag)),
        any::<i64>().prop_map(|number| json!(number)),
        "\\PC{0,8}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| json!(items)),
            prop::collection::btree_map("\\PC{0,5}", inner, 0..5).prop_map(|fields| json!(fields)),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(value in any_json()) {
        prop_assert_eq!(strict::parse(value.to_string().as_bytes()), Ok((value, Vec::new())));
    }

    #[test]
    fn agrees_with_serde_json_on_what_is_json(text in "[\\[\\]{}:,\"\\\\a1e.\\- tfn]{0,12}") {
        let ours = strict::parse(text.as_bytes()).map(|(value, _)| value);
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "{}", text);
    }

    #[test]
    fn no_bytes_bring_it_down(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = strict::parse(&bytes);
        let _ = strict::parse_yaml(&bytes);
    }
}
