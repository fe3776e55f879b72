//! What can go wrong, said so that a person knows what to do.

use crate::requirements::Missing;
use std::path::PathBuf;

/// The lab's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the lab could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or process operation of ours failed.
    #[error("cannot {action}: {error}")]
    Io {
        /// What was tried.
        action: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// A command that we ran ended badly.
    #[error("`{command}` failed ({status}): {output}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// The last of what it printed.
        output: String,
    },
    /// A component did not come up, or went away.
    #[error("{component} of {cluster} {what}\n  its log ends: {tail}\n  hint: the whole log is {}", log.display())]
    Component {
        /// Which cluster.
        cluster: String,
        /// Which program.
        component: &'static str,
        /// What happened.
        what: String,
        /// The end of its log.
        tail: String,
        /// Where the log is.
        log: PathBuf,
    },
    /// Something did not come true in time.
    #[error("{what} did not happen within {seconds} s; last seen: {last}")]
    Deadline {
        /// What was awaited.
        what: String,
        /// How long.
        seconds: u64,
        /// The last thing seen on the way.
        last: String,
    },
    /// The Kubernetes API refused or could not be reached.
    #[error("cannot {action}: {error}")]
    Api {
        /// What was asked.
        action: String,
        /// What the client said.
        error: Box<kube::Error>,
    },
    /// The request makes no sense.
    #[error("{what}\n  hint: {hint}")]
    Refused {
        /// What is wrong.
        what: String,
        /// What to do.
        hint: String,
    },
    /// Real clusters can't run on this machine.
    #[error("real clusters can't run here: {0}")]
    CannotRun(Missing),
    /// Labs can't be looked at or removed on this machine.
    #[error("labs can't be managed here: {0}")]
    CannotManage(Missing),
    /// Certificates or keys could not be made or read.
    #[error("cannot make certificates: {0}")]
    Certificates(String),
}

impl From<rcgen::Error> for Error {
    fn from(error: rcgen::Error) -> Self {
        Self::Certificates(error.to_string())
    }
}

impl Error {
    pub(crate) fn refused(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), hint: hint.into() }
    }
}

/// Names what was tried when an I/O operation fails.
pub(crate) trait Doing<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Doing<T> for std::io::Result<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Io { action: action(), error })
    }
}

impl<T> Doing<T> for std::result::Result<T, kube::Error> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Api { action: action(), error: Box::new(error) })
    }
}
