//! Imports that end: what they were when the plan gave them up, so that it can be told once they are gone. Whichever says first that
//! one is gone tells it: the answer to our request, the watch, or a list.

use std::collections::BTreeMap;

use atoll_api::names::event;
use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, ServiceKey, Uid};
use atoll_engine::plan::{ClusterPlan, ImportPlan, SlicesFrom, WhyAbsent};
use atoll_engine::reason::text;

use super::Core;
use super::object::Kind;
use crate::events::Notice;

/// Imports that are about to go. There is no more than one for each import that is held.
pub(super) type Endings = BTreeMap<ServiceKey, Ending>;

/// An import that is about to go.
#[derive(Debug)]
pub(super) struct Ending {
    uid: Uid,
    why: WhyAbsent,
    /// Who exported the service.
    sources: Vec<ClusterId>,
    /// Whether clients had endpoints of it.
    served: bool,
}

impl Core {
    /// A plan has come; `before` is the one that it replaces.
    pub(super) fn note_ending(&mut self, key: &ServiceKey, before: Option<&ClusterPlan>) {
        let why = match self.part(key).map(|part| &part.import) {
            Some(ImportPlan::Absent(why)) => *why,
            Some(ImportPlan::Present { .. }) => {
                self.endings.remove(key);
                return;
            }
            Some(ImportPlan::Untouched(_)) | None => return,
        };
        let Some(held) = self.cache.held.get(key) else { return };
        let Some(import) = held.import.as_ref().filter(|import| !import.copy.version.deleting) else {
            return;
        };
        if let Some(ending) = self.endings.get_mut(key) {
            ending.why = why;
            return;
        }
        let uid = import.copy.version.uid.clone();
        let (sources, served) = match before.map(|before| &before.import) {
            Some(ImportPlan::Present { import, slices }) => {
                (import.clusters.iter().cloned().collect(), slices.values().any(serves))
            }
            Some(ImportPlan::Absent(_) | ImportPlan::Untouched(_)) | None => {
                let slices = held.slices.values();
                (import.sources.clone(), slices.into_iter().any(|slice| slice.intent == Intent::Export))
            }
        };
        self.endings.insert(key.clone(), Ending { uid, why, sources, served });
    }

    /// An import is not there any more: it is told if the plan wanted that.
    pub(super) fn tell_removed(&mut self, key: &ServiceKey) {
        let held = self.cache.held.get(key).and_then(|held| held.import.as_ref());
        let Some(ending) = self.endings.get(key) else { return };
        if held.is_some_and(|held| held.copy.version.uid == ending.uid) {
            return;
        }
        let Some(Ending { uid, why, sources, served }) = self.endings.remove(key) else { return };
        // Nothing is missed by the clients in a namespace that goes with everything.
        let warning = served && why != WhyAbsent::NoNamespace;
        let message = removed(key, why, &sources);
        let about = super::notices::about(Kind::Import, key, key.name.as_str(), Some(uid));
        self.notice(Notice { about, warning, reason: event::import::REMOVED, message });
    }
}

/// Whether there may be an endpoint among them.
fn serves(from: &SlicesFrom) -> bool {
    match from {
        SlicesFrom::Exactly(list, _) => list.iter().any(|slice| !slice.endpoints.is_empty()),
        SlicesFrom::KeepWhatIsThere(_) => true,
        SlicesFrom::Nothing(_) => false,
    }
}

fn removed(key: &ServiceKey, why: WhyAbsent, sources: &[ClusterId]) -> String {
    let by = text::some(sources.iter(), sources.len());
    let said = text::absent(why);
    match why {
        WhyAbsent::NotExported if by.is_empty() => format!(
            "The import was removed with its derived Service: {said}. To import it again, create ServiceExport {key} in a cluster that has the Service."
        ),
        WhyAbsent::NotExported => format!(
            "The import was removed with its derived Service: {said} any more. It was exported by {by}. To import it again, create ServiceExport {key} there again; if it still exists, see its conditions."
        ),
        WhyAbsent::NoNamespace | WhyAbsent::NotAsked | WhyAbsent::Fenced(_) => {
            let next = why.code().next();
            let by = if by.is_empty() { String::new() } else { format!(" It was exported by {by}.") };
            format!("The import was removed with its derived Service: {said}.{by} {next}")
        }
    }
}
