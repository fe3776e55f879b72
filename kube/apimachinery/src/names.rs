//! What names, labels and keys may look like. Each check returns what is wrong, in a kube-apiserver's words.

/// Most bytes of a DNS label.
pub const LABEL_MOST: usize = 63;
/// Most bytes of a DNS subdomain.
pub const SUBDOMAIN_MOST: usize = 253;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character";

/// What is wrong with it as a DNS label of RFC 1123, as names of Namespaces are.
#[must_use]
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, LABEL_MOST, "characters");
    if !is_dns1123_label(value) {
        wrong.push(if is_dns1123_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            let words = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
                         must start and end with an alphanumeric character";
            not_like(words, LABEL, &["my-name", "123-abc"])
        });
    }
    wrong
}

/// What is wrong with it as a DNS subdomain of RFC 1123, as most names are.
#[must_use]
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    subdomain(value, "characters")
}

fn subdomain(value: &str, unit: &str) -> Vec<String> {
    let mut wrong = longer_than(value, SUBDOMAIN_MOST, unit);
    if !is_dns1123_subdomain(value) {
        let words = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                     and must start and end with an alphanumeric character";
        wrong.push(not_like(words, SUBDOMAIN, &["example.com"]));
    }
    wrong
}

/// What is wrong with it as a DNS label of RFC 1035, as names of Services were until 1.34.
#[must_use]
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, LABEL_MOST, "characters");
    if !value.starts_with(|first: char| first.is_ascii_lowercase()) || !is_dns1123_label(value) {
        let words = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                     alphabetic character, and end with an alphanumeric character";
        wrong.push(not_like(words, LABEL_1035, &["my-name", "abc-123"]));
    }
    wrong
}

/// What is wrong with it as a qualified name: a label's key, a finalizer, a condition's type.
#[must_use]
pub fn qualified(value: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let mut wrong = Vec::new();
    let name = match value.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong
                    .extend(subdomain(prefix, "bytes").into_iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        _ => {
            let words = not_like(KEY_WORDS, KEY, &examples);
            return vec![format!(
                "a valid label key {words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else {
        wrong.extend(
            longer_than(name, LABEL_MOST, "bytes").into_iter().map(|text| format!("name part {text}")),
        );
    }
    if !is_key(name) {
        wrong.push(format!("name part {}", not_like(KEY_WORDS, KEY, &examples)));
    }
    wrong
}

/// What is wrong with it as the value of a label.
#[must_use]
pub fn label_value(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, LABEL_MOST, "bytes");
    if !value.is_empty() && !is_key(value) {
        let words = format!("a valid label must be an empty string or {}", &KEY_WORDS["must ".len()..]);
        wrong.push(not_like(&words, &format!("({KEY})?"), &["MyValue", "my_value", "12345"]));
    }
    wrong
}

/// What is wrong with it as one segment of a URL's path: names of RBAC objects, and of CRDs' objects no less.
#[must_use]
pub fn path_segment(value: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(value, "." | "..") {
        return vec![format!("may not be '{value}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|bad| value.contains(**bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

/// What is wrong with it as a key of a `ConfigMap` or a Secret.
#[must_use]
pub fn config_key(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, SUBDOMAIN_MOST, "characters");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if value.is_empty() || !value.bytes().all(plain) {
        let words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        wrong.push(not_like(words, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match value {
        "." | ".." => wrong.push(format!("must not be '{value}'")),
        _ if value.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// What is wrong with it as the name of a port: an IANA service name.
#[must_use]
pub fn port_name(value: &str) -> Vec<String> {
    let mut wrong = longer_than(value, 15, "characters");
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if value.is_empty() || !value.bytes().all(plain) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !value.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if value.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if value.starts_with('-') || value.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// What is wrong with it as the number of a port.
#[must_use]
pub fn port_number(value: i64) -> Option<String> {
    (!(1..=65535).contains(&value)).then(|| "must be between 1 and 65535, inclusive".to_owned())
}

fn is_dns1123_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let edge =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

/// Its labels may be longer than [`LABEL_MOST`]: the server asks no more of them.
fn is_dns1123_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns1123_label)
}

fn is_key(value: &str) -> bool {
    let bytes = value.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

fn longer_than(value: &str, most: usize, unit: &str) -> Vec<String> {
    (value.len() > most).then(|| format!("must be no more than {most} {unit}")).into_iter().collect()
}

fn not_like(words: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}
