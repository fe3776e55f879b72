//! What a watch asks for next, and where it goes on after a failure.

use crate::failure::Failure;

/// How far a watch has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Position {
    /// Nothing is asked for yet.
    #[default]
    Start,
    /// This page of the list is to be asked for; none: the first.
    Page(Option<String>),
    /// The list is complete, as of this version.
    Listed(String),
    /// Everything up to this version is known.
    At(String),
}

impl Position {
    /// After a page; `next` leads to the one after it.
    pub(crate) fn after_page(next: Option<String>, version: Option<String>) -> Result<Self, Failure> {
        match (next.filter(|token| !token.is_empty()), version.filter(|version| !version.is_empty())) {
            (Some(token), _) => Ok(Self::Page(Some(token))),
            (None, Some(version)) => Ok(Self::Listed(version)),
            (None, None) => Err(Failure::NoVersion),
        }
    }

    /// After a change of an object that now has this version.
    pub(crate) fn after_change(version: Option<String>) -> Result<Self, Failure> {
        version.filter(|version| !version.is_empty()).map(Self::At).ok_or(Failure::NoVersion)
    }

    /// After a failure: half a list is worth nothing, a version is as long as the server knows it.
    #[must_use]
    pub(crate) fn after_failure(self, failure: &Failure) -> Self {
        match self {
            Self::Listed(version) | Self::At(version) if !failure.needs_list() => Self::At(version),
            Self::Start | Self::Page(_) | Self::Listed(_) | Self::At(_) => Self::Start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::tests::refused;

    fn at(version: &str) -> Position {
        Position::At(version.to_owned())
    }

    #[test]
    fn a_list_goes_on_to_its_last_page_and_is_followed_from_there() {
        let page = |next: Option<&str>, version: Option<&str>| {
            Position::after_page(next.map(str::to_owned), version.map(str::to_owned))
        };
        assert_eq!(page(Some("more"), Some("7")).unwrap(), Position::Page(Some("more".to_owned())));
        assert_eq!(page(Some("more"), None).unwrap(), Position::Page(Some("more".to_owned())));
        assert_eq!(page(None, Some("7")).unwrap(), Position::Listed("7".to_owned()));
        assert_eq!(page(Some(""), Some("7")).unwrap(), Position::Listed("7".to_owned()));
        assert!(matches!(page(None, None), Err(Failure::NoVersion)));
        assert!(matches!(page(Some(""), Some("")), Err(Failure::NoVersion)));
    }

    #[test]
    fn a_change_without_a_version_leaves_nothing_to_go_on_from() {
        assert_eq!(Position::after_change(Some("8".to_owned())).unwrap(), at("8"));
        assert!(matches!(Position::after_change(Some(String::new())), Err(Failure::NoVersion)));
        assert!(matches!(Position::after_change(None), Err(Failure::NoVersion)));
        assert_eq!(at("8").after_failure(&Failure::NoVersion), Position::Start);
    }

    #[test]
    fn a_broken_watch_goes_on_where_it_was_unless_the_server_does_not_know_the_version() {
        for failure in [refused(503), refused(403), Failure::Silent] {
            assert_eq!(at("7").after_failure(&failure), at("7"), "{failure}");
        }
        for code in [410, 504] {
            assert_eq!(at("7").after_failure(&refused(code)), Position::Start, "{code}");
        }
    }

    #[test]
    fn a_broken_list_begins_anew() {
        let second = Position::Page(Some("more".to_owned()));
        assert_eq!(second.after_failure(&refused(503)), Position::Start);
    }
}
