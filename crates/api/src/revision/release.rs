//! A release number as it stands in a label: `v0.5.2`, `v0.6.0-rc.1`.

use std::cmp::Ordering;
use std::fmt;

/// A release, ordered as semantic versioning orders it: a pre-release comes before its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    core: [u64; 3],
    pre: Vec<Part>,
}

/// One part of a pre-release. A number comes before a word (semver, 11.4).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

impl Release {
    /// A release that is not a pre-release.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self { core: [major, minor, patch], pre: Vec::new() }
    }

    /// Reads `v1.2.3` or `v1.2.3-rc.1`; the `v` may be absent. `None` for anything else.
    ///
    /// ```
    /// use atoll_api::revision::Release;
    /// let parse = |text| Release::parse(text).expect("a release");
    /// assert!(parse("v0.10.0") > parse("v0.9.0"));
    /// assert!(parse("v1.0.0-rc.2") < parse("v1.0.0"));
    /// assert_eq!(Release::parse("main"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (core, pre) = match text.split_once('-') {
            Some((core, pre)) => (core, pre.split('.').map(Part::parse).collect::<Option<Vec<_>>>()?),
            None => (text, Vec::new()),
        };
        let numbers = core.split('.').map(number).collect::<Option<Vec<_>>>()?;
        Some(Self { core: numbers.try_into().ok()?, pre })
    }
}

impl Part {
    fn parse(text: &str) -> Option<Self> {
        let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        plain.then(|| number(text).map_or_else(|| Self::Word(text.to_owned()), Self::Number))
    }
}

/// Digits only: `u64::parse` alone would also take a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

impl Ord for Release {
    fn cmp(&self, other: &Self) -> Ordering {
        let pre = match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (true, true) | (false, false) => self.pre.cmp(&other.pre),
        };
        self.core.cmp(&other.core).then(pre)
    }
}

impl PartialOrd for Release {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.core;
        write!(f, "v{major}.{minor}.{patch}")?;
        for (i, part) in self.pre.iter().enumerate() {
            f.write_str(if i == 0 { "-" } else { "." })?;
            match part {
                Part::Number(n) => write!(f, "{n}")?,
                Part::Word(w) => f.write_str(w)?,
            }
        }
        Ok(())
    }
}
