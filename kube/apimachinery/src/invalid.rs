//! What is wrong with a field, in the words that clients of a kube-apiserver know.

mod quote;
mod status;

pub use quote::quoted;
pub(crate) use quote::{go_float, go_json, go_number};
pub use status::{causes, status};

use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// How many problems of one kind an answer tells at most: one body can have a million of them.
pub const TOLD_MOST: usize = 100;
/// How many bytes of a path are told: a key can be as long as a body, and every problem below it tells its path.
const PATH_MOST: usize = 1024;

/// A path as it is told.
#[must_use]
pub fn told<'a>(path: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let path = path.into();
    match path.len() {
        0..=PATH_MOST => path,
        _ => format!("{}…", &path[..path.floor_char_boundary(PATH_MOST)]).into(),
    }
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What kind of wrong.
    pub kind: ErrorKind,
    /// The field's path: `spec.ports[0].name`.
    pub field: String,
    /// The value that is wrong, where the message shows one.
    pub value: Option<Value>,
    /// What would be right.
    pub detail: String,
}

/// Kinds of wrong fields; each is a `reason` of a Status' cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Refers to something that is not there.
    NotFound,
    /// Must be given.
    Required,
    /// Is there twice.
    Duplicate,
    /// Malformed or out of bounds.
    Invalid,
    /// Not one of the values that there are.
    NotSupported,
    /// Not allowed here and now.
    Forbidden,
    /// Too many bytes or characters.
    TooLong,
    /// Too few characters.
    TooShort,
    /// Too many items.
    TooMany,
    /// Too few items.
    TooFew,
    /// Not of the schema's type.
    TypeInvalid,
    /// Not the client's fault.
    Internal,
}

impl ErrorKind {
    /// The `reason` of a Status' cause.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }

    /// Does the message show the value? Not where it is absent or too long to repeat.
    fn shows_value(self) -> bool {
        match self {
            Self::NotFound
            | Self::Duplicate
            | Self::Invalid
            | Self::NotSupported
            | Self::TooMany
            | Self::TooFew
            | Self::TypeInvalid => true,
            Self::Required | Self::Forbidden | Self::TooLong | Self::TooShort | Self::Internal => false,
        }
    }
}

impl FieldError {
    fn new(kind: ErrorKind, field: &str, value: Option<Value>, detail: impl Into<String>) -> Self {
        Self { kind, field: field.to_owned(), value, detail: detail.into() }
    }

    /// The value is malformed or out of bounds.
    #[must_use]
    pub fn invalid(field: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, field, Some(value.into()), detail)
    }

    /// As [`FieldError::invalid`], of a value whose text is made already: JSON in a struct's order.
    #[must_use]
    pub fn invalid_as_shown(field: &str, shown: &str, detail: &str) -> Self {
        Self::new(ErrorKind::Invalid, field, None, format!("{shown}: {detail}"))
    }

    /// The field must be given.
    #[must_use]
    pub fn required(field: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Required, field, None, detail)
    }

    /// The field may not be given or changed here.
    #[must_use]
    pub fn forbidden(field: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, field, None, detail)
    }

    /// The value is there twice.
    #[must_use]
    pub fn duplicate(field: &str, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::Duplicate, field, Some(value.into()), "")
    }

    /// The value refers to something that is not there.
    #[must_use]
    pub fn not_found(field: &str, value: impl Into<Value>) -> Self {
        Self::new(ErrorKind::NotFound, field, Some(value.into()), "")
    }

    /// The value is none of `supported`.
    #[must_use]
    pub fn not_supported<T: AsRef<str>>(field: &str, value: impl Into<Value>, supported: &[T]) -> Self {
        let listed: Vec<String> = supported.iter().map(|one| quoted(one.as_ref())).collect();
        let detail = if listed.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", listed.join(", "))
        };
        Self::new(ErrorKind::NotSupported, field, Some(value.into()), detail)
    }

    /// The value is not of the schema's type.
    #[must_use]
    pub fn type_invalid(field: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::TypeInvalid, field, Some(value.into()), detail)
    }

    /// More than `most` bytes.
    #[must_use]
    pub fn too_long(field: &str, most: u64) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        Self::new(ErrorKind::TooLong, field, None, format!("may not be more than {most} {unit}"))
    }

    /// `actual` items are more than `most`.
    #[must_use]
    pub fn too_many(field: &str, actual: u64, most: u64) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        Self::new(ErrorKind::TooMany, field, Some(actual.into()), detail)
    }

    /// Something went wrong that is not the client's fault.
    #[must_use]
    pub fn internal(field: &str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, field, None, detail)
    }

    /// The `reason` of a Status' cause.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.kind.reason()
    }

    /// The message without the field: what a Status' cause says.
    #[must_use]
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if self.kind.shows_value()
            && let Some(value) = &self.value
        {
            text.push_str(": ");
            text.push_str(&quote::shown(value));
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for FieldError {}
