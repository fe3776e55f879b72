//! Where an exported service is imported, and why not elsewhere: what an export's `Ready` names.

use serde::{Deserialize, Serialize};

use crate::names::ClusterId;

/// How many clusters a condition names; the others are counted.
pub const MOST_NAMED: usize = 8;

/// Which clusters import a service.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reach {
    /// The first of those that import it, by name: one more than are named, since one of them may be the reader.
    pub importers: Vec<ClusterId>,
    /// How many import it.
    pub imported: usize,
    /// The first of those that do not, by name, and why.
    pub without: Vec<(ClusterId, NotImported)>,
    /// How many do not.
    pub lacking: usize,
    /// How many the hub's operator does not let. They are not named to the exporter.
    pub fenced: usize,
    /// Whether a cluster will say in a moment what it has: nothing can be said of it yet.
    pub awaited: bool,
}

/// Why a cluster does not import a service that is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NotImported {
    /// It does not have the namespace.
    NoNamespace,
    /// Its namespace is being deleted.
    NamespaceTerminating,
    /// The hub says where the namespace is imported, and it is not there.
    NotAsked,
    /// It is lost, and was not heard since the hub started.
    NotHeard,
    /// It supports none of the service's families.
    NoFamily,
    /// Services that are not ours have the names of the derived Service.
    NamesTaken,
    /// The service has none of the ports that the hub asks for there.
    NoSuchPort,
}

impl Reach {
    /// Notes one more cluster. Clusters come by name.
    pub fn add(&mut self, cluster: &ClusterId, imports: Result<(), NotImported>) {
        match imports {
            Ok(()) => {
                self.imported += 1;
                if self.importers.len() <= MOST_NAMED {
                    self.importers.push(cluster.clone());
                }
            }
            Err(why) => {
                self.lacking += 1;
                if self.without.len() < MOST_NAMED {
                    self.without.push((cluster.clone(), why));
                }
            }
        }
    }
}
