//! What can go wrong, said so that a person knows what to do.

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A kubeconfig can't be used.
    #[error("the kubeconfig of {cluster} cannot be used: {why}")]
    Kubeconfig {
        /// Whose.
        cluster: String,
        /// What is wrong.
        why: String,
    },
    /// An API refused or could not be reached.
    #[error("cannot {action}: {source}")]
    Api {
        /// What was asked.
        action: String,
        /// What the client said.
        source: Box<kube::Error>,
    },
    /// A namespace that the benchmark would fill was made by another program.
    #[error(
        "namespace `{namespace}` of {cluster} was not made by the benchmark\n  hint: delete or rename it; the \
         benchmark fills and empties namespaces of this name"
    )]
    NamespaceTaken {
        /// Where.
        cluster: String,
        /// Which.
        namespace: &'static str,
    },
    /// The CRDs of the MCS API are not installed.
    #[error(
        "{cluster} does not know ServiceImports and ServiceExports\n  hint: join it first: `atoll join`, or \
         `atoll crds | kubectl apply -f -`"
    )]
    NoCrds {
        /// Where.
        cluster: String,
    },
    /// Something was not seen in time.
    #[error("{what} did not happen within {seconds} s; missing: {missing}")]
    Deadline {
        /// What was awaited.
        what: String,
        /// How long.
        seconds: u64,
        /// What was still missing.
        missing: String,
    },
    /// A hook of the environment failed.
    #[error("cannot {action}: {why}")]
    Hook {
        /// What was tried.
        action: &'static str,
        /// What it said.
        why: String,
    },
    /// The options make no sense together.
    #[error("{what}\n  hint: {hint}")]
    Refused {
        /// What is wrong.
        what: String,
        /// What to do.
        hint: String,
    },
}

/// Names what was tried when a request fails.
pub(crate) trait Doing<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, kube::Error> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Api { action: action(), source: Box::new(source) })
    }
}
