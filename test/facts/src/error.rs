//! Why facts could not be read.

use std::path::Path;

/// The result of reading facts.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why facts could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder can't be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Which one.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The API server did not give its schemas.
    #[error("cannot read the schemas of {group_version}: {error}")]
    Schemas {
        /// Of which group and version.
        group_version: String,
        /// What the client said.
        error: Box<kube::Error>,
    },
    /// A case can't be read, or its request can't be sent.
    #[error("{what}: {why}\n  hint: correct the case")]
    Case {
        /// The file or the case.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// The sources could not be found.
    #[error(transparent)]
    Lab(#[from] atoll_lab::Error),
}

/// Names the file or folder that could not be read.
pub(crate) trait Reading<T> {
    fn reading(self, path: &Path) -> Result<T>;
}

impl<T> Reading<T> for std::io::Result<T> {
    fn reading(self, path: &Path) -> Result<T> {
        self.map_err(|error| Error::Read { path: path.display().to_string(), error })
    }
}
