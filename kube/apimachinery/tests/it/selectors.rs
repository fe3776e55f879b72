//! Selectors, in text and structured.

use atoll_apimachinery::selector::{fields, labels};

#[test]
fn label_selectors_read_back_as_written() {
    for text in
        ["a=b", "a==b", "a!=b", "a in (b,c)", "a notin (b)", "a", "!a", "a>5", "x.io/a=b,y=", "in in (in)"]
    {
        assert_eq!(labels::Selector::parse(text).unwrap().to_string(), text, "{text}");
    }
}

#[test]
fn field_selectors_unescape_and_escape() {
    let selector = fields::Selector::parse(r"metadata.name=a\,b\=c,spec.x!=y").unwrap();
    assert_eq!(selector.to_string(), r"metadata.name=a\,b\=c,spec.x!=y");
    assert_eq!(selector.exactly("metadata.name"), Some("a,b=c"));
}
