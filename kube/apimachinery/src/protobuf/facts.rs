//! The facts file, read once: kinds, messages, fields. `facts protobuf` writes it.

use std::collections::HashMap;
use std::sync::LazyLock;

static FACTS: LazyLock<Facts> = LazyLock::new(|| read(include_str!("../../facts/protobuf.tsv")));

const META: &str = "k8s.io.apimachinery.pkg.apis.meta.v1";

struct Facts {
    kinds: HashMap<&'static str, &'static str>,
    messages: HashMap<&'static str, Message>,
}

/// The fields of one message.
#[derive(Debug)]
pub(super) struct Message {
    fields: Vec<Field>,
}

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    number: u32,
    /// In JSON.
    pub(super) name: String,
    pub(super) many: Many,
    /// Its fields stand among its parent's.
    pub(super) inline: bool,
    /// Left out when it is empty.
    pub(super) drop_empty: bool,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Many {
    One,
    List,
    /// With strings as keys.
    Map,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text,
    Bytes,
    Whole,
    Bool,
    Float,
    Message(String),
}

impl Message {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.number == number)
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }
}

/// The message of a kind. Options of requests are the same in every group.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    if let Some(name) = FACTS.kinds.get(format!("{api_version}/{kind}").as_str()) {
        return message(name);
    }
    let shared =
        ["DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "ListOptions", "GetOptions"];
    (shared.contains(&kind) || kind == "Status").then(|| message(&format!("{META}.{kind}"))).flatten()
}

pub(super) fn message(name: &str) -> Option<&'static Message> {
    FACTS.messages.get(name)
}

fn read(text: &'static str) -> Facts {
    let mut facts = Facts { kinds: HashMap::new(), messages: HashMap::new() };
    for line in text.lines() {
        let mut columns = line.split('\t');
        let Some(name) = columns.next() else { continue };
        if name.starts_with("k8s.io.") {
            facts.messages.insert(name, Message { fields: columns.filter_map(field).collect() });
        } else if let Some(message) = columns.next() {
            facts.kinds.insert(name, message);
        }
    }
    facts
}

fn field(column: &str) -> Option<Field> {
    let mut words = column.split(' ');
    let (number, name, marked) = (words.next()?.parse().ok()?, words.next()?, words.next()?);
    let kind = marked.trim_start_matches(['*', '%', '^', '?']);
    let marks = &marked[..marked.len() - kind.len()];
    Some(Field {
        number,
        name: name.to_owned(),
        many: match () {
            () if marks.contains('*') => Many::List,
            () if marks.contains('%') => Many::Map,
            () => Many::One,
        },
        inline: marks.contains('^'),
        drop_empty: marks.contains('?'),
        kind: match kind {
            "string" => Kind::Text,
            "bytes" => Kind::Bytes,
            "int32" | "int64" => Kind::Whole,
            "bool" => Kind::Bool,
            "double" => Kind::Float,
            message => Kind::Message(message.to_owned()),
        },
    })
}
