//! Why a watch sees nothing for now.

use kube::core::Status;

/// Why a watch sees nothing for now.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A page of the list was refused, or did not come.
    #[error("cannot list: {0}")]
    List(#[source] kube::Error),
    /// The watch was refused, or did not start.
    #[error("cannot watch: {0}")]
    Watch(#[source] kube::Error),
    /// The server said so in the watch itself.
    #[error("the server reports an error in the watch: {0}")]
    Reported(#[source] Box<Status>),
    /// The connection broke, or said what can't be read.
    #[error("the watch broke: {0}")]
    Broke(#[source] kube::Error),
    /// The server neither said anything nor ended the watch in time: the connection is dead.
    #[error("the watch was silent for longer than the server keeps one")]
    Silent,
    /// There is nothing to go on from.
    #[error("no metadata.resourceVersion in the answer; can the kind be watched?")]
    NoVersion,
}

impl Failure {
    /// What the API said, if it said anything.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::List(kube::Error::Api(status))
            | Self::Watch(kube::Error::Api(status))
            | Self::Broke(kube::Error::Api(status))
            | Self::Reported(status) => Some(status),
            Self::List(_) | Self::Watch(_) | Self::Broke(_) | Self::Silent | Self::NoVersion => None,
        }
    }

    /// The API does not serve the kind.
    pub fn is_absent(&self) -> bool {
        self.code() == Some(404)
    }

    /// We are not known, or have no right to it.
    pub fn is_refused(&self) -> bool {
        matches!(self.code(), Some(401 | 403))
    }

    /// The server has forgotten the version, or the list's next page; it answers, and everything is listed again.
    pub fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// There is no going on from the version that we know: the server has forgotten it, or is a restored one that has yet to get there.
    pub(crate) fn needs_list(&self) -> bool {
        matches!(self, Self::NoVersion) || matches!(self.code(), Some(410 | 504))
    }

    fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }
}

/// What went wrong with a request, in one line for a person.
pub fn why(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} ({})", status.message, status.code),
        other => {
            let mut deepest: &dyn std::error::Error = other;
            while let Some(source) = deepest.source() {
                deepest = source;
            }
            deepest.to_string()
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A watch that was answered with this code.
    pub(crate) fn refused(code: u16) -> Failure {
        Failure::Watch(kube::Error::Api(Box::new(Status::failure("no", "").with_code(code))))
    }

    #[test]
    fn what_the_api_said_tells_failures_apart() {
        let of = |code| {
            let failure = refused(code);
            (failure.is_absent(), failure.is_refused(), failure.is_expired())
        };
        assert_eq!(of(404), (true, false, false));
        assert_eq!(of(401), (false, true, false));
        assert_eq!(of(403), (false, true, false));
        assert_eq!(of(410), (false, false, true));
        assert_eq!(of(503), (false, false, false));
        let reported = Failure::Reported(Box::new(Status::failure("too old", "Expired").with_code(410)));
        assert!(reported.is_expired());
        assert!(Failure::Silent.status().is_none());
    }
}
