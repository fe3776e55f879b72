//! What an export is told: `Valid`, `Ready`, `Conflict`. Conflicts are told to every constituent, the winner included.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::merge::Merged;
use super::sources::{Sources, Tally};
use crate::names::{ClusterId, ServiceKey};
use crate::plan::ExportStatus;
use crate::reason::reach::Reach;
use crate::reason::{ExportFailed, ExportReady, Invalid};
use crate::world::World;

/// The conditions of the export of `id`, if it has one and has been heard from.
pub fn export(
    world: &World,
    key: &ServiceKey,
    id: &ClusterId,
    invalid: &BTreeMap<ClusterId, Invalid>,
    merged: Option<&Merged>,
    sources: &Sources,
    reach: Option<&Arc<Reach>>,
) -> Option<ExportStatus> {
    world.clusters.get(id)?.heard.as_ref()?;
    let (export, _) = world.holding(key, id)?.export.as_ref()?;
    let uid = export.uid.clone();
    if let Some(&why) = invalid.get(id) {
        let ready = match why {
            Invalid::NoService => ExportReady::Pending(why),
            Invalid::ExternalName
            | Invalid::DerivedService
            | Invalid::KubernetesApi
            | Invalid::Fenced(_)
            | Invalid::TooMuch(_) => ExportReady::Failed(ExportFailed::Invalid(why)),
        };
        return Some(ExportStatus {
            uid,
            valid: Err(why),
            ready,
            conflicts: None,
            refused_keys: Vec::new(),
            reach: None,
        });
    }
    let ready = match sources.tally(id) {
        Tally { passing: 0, refused: Some(why), .. } => {
            ExportReady::Failed(ExportFailed::AllEndpointsRefused(why))
        }
        Tally { refused, .. } => ExportReady::Exported { refused },
    };
    let conflicts = merged.map(|merged| Arc::clone(&merged.conflicts));
    let refused_keys = merged.and_then(|merged| merged.refused_keys.get(id).cloned()).unwrap_or_default();
    Some(ExportStatus { uid, valid: Ok(()), ready, conflicts, refused_keys, reach: reach.cloned() })
}
