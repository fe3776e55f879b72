//! What an object of one kind may look like: one node per field, the same for built-in kinds and for CRDs.

mod check;
mod correlate;
mod default;
mod embedded;
mod field_path;
mod lists;
mod parse;
mod properties;
mod prune;
mod rules;
mod structural;
mod validate;

pub use check::{check, with_rules};
pub use default::{default, fill};
pub use embedded::embedded;
use field_path::field_path;
pub use lists::unique;
pub use parse::{Unstructural, parse};
pub use properties::Properties;
pub use prune::prune;
pub use rules::{Rules, rules};
pub use structural::structural;
pub(crate) use validate::pattern;
pub use validate::{known_format, validate};

use serde_json::{Number, Value};

/// One field's schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// What kind of value it is.
    pub kind: Kind,
    /// May it be `null`?
    pub nullable: bool,
    /// Named fields, of an object.
    pub properties: Properties,
    /// What every value of a map is, where keys are free.
    pub additional: Option<Box<Schema>>,
    /// What every item of a list is.
    pub items: Option<Box<Schema>>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// What it is when it is not given.
    pub default: Option<Value>,
    /// Unknown fields are kept (`x-kubernetes-preserve-unknown-fields`).
    pub preserve_unknown: bool,
    /// A whole object of its own, with apiVersion, kind and metadata (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// How lists of it merge, and what makes an item the same item.
    pub list: ListKind,
    /// Owned as a whole by one manager (`x-kubernetes-map-type: atomic`).
    pub atomic_map: bool,
    /// How a strategic merge patch treats it; built-in kinds only.
    pub patch: PatchStrategy,
    /// How an API server's own types write the field; built-in kinds only.
    pub encoding: Encoding,
    /// Rules in CEL (`x-kubernetes-validations`).
    pub rules: Vec<Rule>,
    /// Limits on the value.
    pub limits: Limits,
    /// Said by `kubectl explain`.
    pub description: String,
}

/// What kind of value a schema describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Not said.
    #[default]
    Any,
    /// An object: named fields, or a map.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A number or a string (`x-kubernetes-int-or-string`).
    IntOrString,
}

impl Kind {
    /// As `type` has it; empty where there is none.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any | Self::IntOrString => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// How a list merges (`x-kubernetes-list-type`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// Owned as a whole.
    #[default]
    Atomic,
    /// Each value is an item.
    Set,
    /// Items are told apart by these fields.
    Map(Vec<String>),
}

/// What a strategic merge patch does with a field (`x-kubernetes-patch-strategy`, `…-merge-key`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Items merge by [`PatchStrategy::merge_key`] (or as a set when there is none); otherwise the list is replaced.
    pub merge: bool,
    /// An object is replaced rather than merged.
    pub replace: bool,
    /// Keys that the patch does not name are dropped.
    pub retain_keys: bool,
    /// The field that tells items apart.
    pub merge_key: Option<String>,
}

/// Whether a field is written when there is nothing in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Encoding {
    /// Kept as it is given, as custom resources are.
    #[default]
    AsGiven,
    /// Left out when it is null.
    Nullable,
    /// Left out when it is empty, zero or false.
    OmitEmpty,
    /// Never left out; this is written when it is not given.
    Always(Value),
}

/// A rule in CEL.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// What is said when it fails.
    pub message: Option<String>,
    /// An expression that gives the message.
    pub message_expression: Option<String>,
    /// The reason in the error's cause (`FieldValueInvalid` when not given).
    pub reason: Option<String>,
    /// Where the error points, relative to the field with the rule.
    pub field_path: Option<String>,
    /// A transition rule that is asked even when there was no old value.
    pub optional_old_self: bool,
}

/// Limits on a value, in the words of OpenAPI.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// `format`
    pub format: Option<String>,
    /// `enum`
    pub one_of_values: Option<Vec<Value>>,
    /// `minimum`
    pub minimum: Option<Number>,
    /// `maximum`
    pub maximum: Option<Number>,
    /// `exclusiveMinimum`
    pub exclusive_minimum: bool,
    /// `exclusiveMaximum`
    pub exclusive_maximum: bool,
    /// `multipleOf`
    pub multiple_of: Option<Number>,
    /// `minLength`
    pub min_length: Option<u64>,
    /// `maxLength`
    pub max_length: Option<u64>,
    /// `pattern`
    pub pattern: Option<String>,
    /// `minItems`
    pub min_items: Option<u64>,
    /// `maxItems`
    pub max_items: Option<u64>,
    /// `uniqueItems`
    pub unique_items: bool,
    /// `minProperties`
    pub min_properties: Option<u64>,
    /// `maxProperties`
    pub max_properties: Option<u64>,
    /// `allOf`
    pub all_of: Vec<Schema>,
    /// `anyOf`
    pub any_of: Vec<Schema>,
    /// `oneOf`
    pub one_of: Vec<Schema>,
    /// `not`
    pub not: Option<Box<Schema>>,
}

impl Schema {
    /// The schema of a field or of a map's value, if there is one.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.additional.as_deref())
    }
}
