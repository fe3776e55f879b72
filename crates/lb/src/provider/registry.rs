//! Providers by name: those that are linked in, and those at the end of a URL.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::place::Place;
use super::{Access, Provider, Remote, RemoteError};

/// How long a remote provider may take for one call.
const DEADLINE: Duration = Duration::from_secs(30);

/// Providers by name.
#[derive(Default, Clone)]
pub struct Registry {
    linked: BTreeMap<String, Arc<dyn Provider>>,
}

/// Why there is no such provider.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// None has this name.
    #[error("unknown provider `{name}`; known are: {}, unix:///PATH and grpcs://HOST:PORT", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Who there is.
        known: Vec<String>,
    },
    /// The URL is none.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

impl Registry {
    /// Adds one that is linked in.
    #[must_use]
    pub fn with(mut self, name: &str, provider: impl Provider) -> Self {
        self.linked.insert(name.to_owned(), Arc::new(provider));
        self
    }

    /// The provider of this name or address, spoken to as `access` says. A remote one is not called yet: it may start later than we do.
    pub fn find(&self, name: &str, access: &Access) -> Result<Arc<dyn Provider>, RegistryError> {
        if Place::is_address(name) {
            return Ok(Arc::new(Remote::new(name, access, DEADLINE)?));
        }
        self.linked.get(name).cloned().ok_or_else(|| RegistryError::Unknown {
            name: name.to_owned(),
            known: self.linked.keys().cloned().collect(),
        })
    }
}
