//! What is asked of the clusterset.
//!
//! An intent decides four things; all else is common to every kind of it: who provides ([`crate::services::recall`]), who
//! consumes ([`crate::services::plan`], in its last step), which Service of a consumer the endpoints are attached to, and how the
//! slices there are called. A `MultiClusterService` is to be the second variant: providers and consumers from its spec, the
//! Service's own name as target, `<provider>-<original>` as slice name; each `match` on [`Intent`] shows where it has to say so.

use crate::names::{ClusterId, ServiceKey, SliceName};
use crate::services::naming;
use crate::world::World;

/// What is asked of the clusterset, for one service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    /// KEP-1645: a ServiceExport offers, and every cluster with the namespace imports.
    Export,
}

impl Intent {
    /// How a consumer calls the slice that `source` calls `original`.
    pub(crate) fn slice_name(self, world: &World, source: &ClusterId, original: &SliceName) -> SliceName {
        match self {
            Self::Export => naming::slice("imported-", source, original, &world.clusters),
        }
    }

    /// Which Services of a consumer the endpoints can be attached to.
    pub(crate) fn targets(self, key: &ServiceKey) -> naming::Candidates {
        match self {
            Self::Export => naming::derived(key),
        }
    }
}
