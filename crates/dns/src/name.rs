//! Names as they travel: labels in lower case, each after its length, without the root's zero.

use std::fmt;

/// The longest name in wire form, the root's zero included.
pub(crate) const LONGEST: usize = 255;
const LONGEST_LABEL: usize = 63;

/// A name, or the beginning or end of one. Ordered and compared as bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Name(Box<[u8]>);

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no DNS name: labels of 1 to 63 letters, digits, `-` and `_`, at most 253 characters")]
pub struct BadName(pub String);

impl Name {
    /// Reads dotted text: `web.shop`; a dot at the end means nothing.
    pub fn parse(text: &str) -> Result<Self, BadName> {
        let bad = || BadName(text.to_owned());
        let labels = text.strip_suffix('.').unwrap_or(text);
        let mut bytes = Vec::with_capacity(labels.len() + 1);
        for label in labels.split('.') {
            let fine = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
            let length = u8::try_from(label.len()).map_err(|_| bad())?;
            if !fine || label.is_empty() || label.len() > LONGEST_LABEL {
                return Err(bad());
            }
            bytes.push(length);
            bytes.extend(label.bytes().map(|byte| byte.to_ascii_lowercase()));
        }
        if bytes.len() >= LONGEST {
            return Err(bad());
        }
        Ok(Self(bytes.into()))
    }

    /// Reads a single label.
    pub fn label(text: &str) -> Result<Self, BadName> {
        if text.contains('.') { Err(BadName(text.to_owned())) } else { Self::parse(text) }
    }

    /// The parts one after the other; none if that is too long for a name.
    pub fn join(parts: &[&Self]) -> Option<Self> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.0.iter().copied()).collect();
        (bytes.len() < LONGEST).then(|| Self(bytes.into()))
    }

    /// Its bytes, without the root's zero.
    pub fn wire(&self) -> &[u8] {
        &self.0
    }

    /// What follows its first label; none if there is nothing.
    pub(crate) fn parent(&self) -> Option<Self> {
        let first = usize::from(*self.0.first()?);
        self.0.get(first + 1..).filter(|rest| !rest.is_empty()).map(|rest| Self(rest.into()))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = &*self.0;
        while let Some((&length, after)) = rest.split_first() {
            let (label, next) = after.split_at(usize::from(length).min(after.len()));
            f.write_str(&String::from_utf8_lossy(label))?;
            rest = next;
            if !rest.is_empty() {
                f.write_str(".")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_labels_in_lower_case() {
        assert_eq!(Name::parse("Web.shop.").unwrap().wire(), b"\x03web\x04shop");
        assert_eq!(Name::parse("_http._tcp").unwrap().to_string(), "_http._tcp");
        assert_eq!(Name::parse("a.b.c").unwrap().parent().unwrap().to_string(), "b.c");
        assert_eq!(Name::parse("c").unwrap().parent(), None);
    }

    #[test]
    fn what_cannot_travel_is_refused() {
        let (long, longest) = ("a".repeat(64), vec!["a".repeat(60); 5].join("."));
        for text in ["", ".", "a..b", "a b", "ä", long.as_str(), longest.as_str()] {
            assert_eq!(Name::parse(text), Err(BadName(text.to_owned())), "{text}");
        }
        assert!(Name::label("a.b").is_err());
        let half = Name::parse(&vec!["a".repeat(60); 3].join(".")).unwrap();
        assert_eq!(Name::join(&[&half, &half]), None);
    }
}
