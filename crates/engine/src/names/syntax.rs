//! What Kubernetes accepts as a name. A string that fails here would be refused by every importer's API server.

/// An RFC-1123 label: lower-case letters, digits and inner dashes, at most 63 characters.
pub fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

/// An RFC-1123 label of at most 48 characters: Karmada's limit, which fits DNS, label values and object names.
pub fn is_cluster_id(text: &str) -> bool {
    text.len() <= 48 && is_label(text)
}

/// Labels joined by dots, at most 253 characters.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

/// The name of a port: empty, or a label.
pub fn is_port_name(text: &str) -> bool {
    text.is_empty() || is_label(text)
}

/// The value of a label: empty, or at most 63 letters, digits, `-`, `_` and `.`, with an alphanumeric at both ends.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified_part(text)
}

/// The key of a label or annotation: an optional subdomain and `/`, then up to 63 characters.
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(text),
    }
}

/// Anything that can stand in one line of text: the uid of an object.
pub fn is_uid(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_graphic())
}

fn is_label_of_any_length(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_qualified_part(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && edge(text.bytes().next())
        && edge(text.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_as_kubernetes_takes_them() {
        for (rule, name, good, bad) in [
            (
                is_label as fn(&str) -> bool,
                "label",
                &["a", "web-0", "0a"][..],
                &["", "-a", "a-", "A", "a.b", "../x"][..],
            ),
            (is_subdomain, "subdomain", &["a", "a.b-c.d"], &["", ".", "a..b", "a.-b", "a/b"]),
            (is_port_name, "port name", &["", "http"], &["HTTP", "a_b"]),
            (is_label_value, "label value", &["", "a_B.c-d"], &["-a", "a b", "a\n"]),
            (is_qualified_name, "key", &["app", "example.com/App_1"], &["", "/a", "a/", "a/b/c", "a b"]),
        ] {
            for text in good {
                assert!(rule(text), "{name} {text:?}");
            }
            for text in bad {
                assert!(!rule(text), "{name} {text:?}");
            }
        }
        assert!(is_cluster_id(&"a".repeat(48)) && !is_cluster_id(&"a".repeat(49)));
        assert!(is_label(&"a".repeat(63)) && !is_label(&"a".repeat(64)));
        assert!(is_subdomain(&"a".repeat(253)) && !is_subdomain(&"a".repeat(254)));
    }
}
