//! `fieldSelector`: `metadata.name=web,status.phase!=Running`.

use super::{SelectorError, TERMS_MOST, too_many_terms};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// All of its terms must hold; with none it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The terms, in a fixed order.
    pub terms: Vec<Term>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The field's path, such as `metadata.name`.
    pub field: String,
    /// Must it be equal, or differ?
    pub equal: bool,
    /// What it is compared with.
    pub value: String,
}

impl Selector {
    /// Reads a selector. Which fields a kind can be selected by is the caller's to check.
    ///
    /// # Errors
    /// Where a term has no operator, or a value's escapes are wrong.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split(text);
        if parts.len() > TERMS_MOST {
            return Err(too_many_terms(parts.len()));
        }
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let unclear = || SelectorError(format!("invalid selector: '{text}'; can't understand '{part}'"));
            let (field, equal, value) = term(part).ok_or_else(unclear)?;
            terms.push(Term { field: field.to_owned(), equal, value: unescaped(value)? });
        }
        Ok(Self { terms })
    }

    /// Does it select everything?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Does it select an object with these fields? A field that the object does not have is the empty string.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<Cow<'a, str>>) -> bool {
        self.terms.iter().all(|term| (field(&term.field).unwrap_or_default() == term.value) == term.equal)
    }

    /// Does it select this object, its fields found by plain paths?
    #[must_use]
    pub fn matches_object(&self, object: &Value) -> bool {
        self.matches(|path| {
            let found = path.split('.').try_fold(object, |value, step| value.get(step))?;
            match found {
                Value::String(text) => Some(Cow::Borrowed(text.as_str())),
                Value::Bool(flag) => Some(flag.to_string().into()),
                Value::Number(number) => Some(number.to_string().into()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            }
        })
    }

    /// The value that this field must have, if the selector fixes it: one object can be read instead of a list.
    #[must_use]
    pub fn exactly(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.field == field).map(|term| term.value.as_str())
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            let (comma, operator) = (if at > 0 { "," } else { "" }, if term.equal { "=" } else { "!=" });
            let value = term.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", term.field)?;
        }
        Ok(())
    }
}

/// Splits at commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn term(part: &str) -> Option<(&str, bool, &str)> {
    let at = part.find(['=', '!']).filter(|at| part[*at..].starts_with('=') || part[*at..].starts_with("!="));
    // A lone `!` is part of the field's name.
    let at = at.or_else(|| {
        let equals = part.find('=')?;
        Some(part.find("!=").map_or(equals, |differs| differs.min(equals)))
    })?;
    let (field, rest) = part.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, true, value))
}

fn unescaped(value: &str) -> Result<String, SelectorError> {
    let bad = |sequence: String| {
        SelectorError(format!("invalid field selector: invalid escape sequence: {sequence}"))
    };
    let mut out = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                Some(next) => return Err(bad(format!("\\{next}"))),
                None => return Err(bad("\\".to_owned())),
            },
            ',' | '=' => {
                // The server prints the character's number.
                let text = "invalid field selector: unescaped character in value: ";
                return Err(SelectorError(format!("{text}{}", u32::from(character))));
            }
            plain => out.push(plain),
        }
    }
    Ok(out)
}
