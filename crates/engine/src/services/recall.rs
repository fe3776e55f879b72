//! Who exports the service: facts for a cluster that has been heard from, memory for one that has not.

use std::collections::BTreeMap;
use std::sync::Arc;

use litemap::LiteMap;

use super::{precedence, validity};
use crate::facts::{ExportFact, ServiceFact};
use crate::fences::Fence;
use crate::few;
use crate::limits;
use crate::memory::{Incumbent, Offer, RememberedExport, ServiceMemory};
use crate::names::{ClusterId, ServiceKey};
use crate::reason::Invalid;
use crate::time::Time;
use crate::world::{Holding, World};

/// The verdicts on exports, kept while their facts are the same.
#[derive(Debug, Default)]
pub struct Verdicts(LiteMap<ClusterId, Verdict>);

#[derive(Debug)]
struct Verdict {
    export: Arc<ExportFact>,
    service: Option<Arc<ServiceFact>>,
    offer: Result<Arc<Offer>, Invalid>,
}

/// What is known of a service's exports.
#[derive(Debug)]
pub struct Recalled {
    /// The valid exports, in order of precedence.
    pub constituents: Vec<(ClusterId, Arc<Offer>)>,
    /// The exports that are not valid, of heard clusters.
    pub invalid: BTreeMap<ClusterId, Invalid>,
    /// What is to be remembered; none when nothing is known.
    pub memory: Option<ServiceMemory>,
    /// Whether nothing is known although a cluster, not heard from yet, may know something.
    pub in_the_dark: bool,
}

/// Brings memory up to date with the facts, and puts the exports in order.
pub fn recall(
    world: &World,
    key: &ServiceKey,
    fence: &Fence<'_>,
    verdicts: &mut Verdicts,
    now: Time,
) -> Recalled {
    let remembered = world.memory.get(key);
    let mut memory = remembered.cloned().unwrap_or_default();
    // What the operator fences in goes, whether its cluster is heard or not.
    memory.exports.retain(|id, _| world.clusters.contains_key(id) && fence.export(id).is_ok());
    memory.hashed_in.retain(|id| world.clusters.contains_key(id));
    let mut invalid = BTreeMap::new();
    for (id, cluster) in &world.clusters {
        if cluster.heard.is_none() {
            continue;
        }
        let holding = world.holding(key, id);
        let Some((holding, (export, sight))) = holding.and_then(|h| Some((h, h.export.as_ref()?))) else {
            memory.exports.remove(id);
            verdicts.0.remove(id);
            continue;
        };
        let known = remembered.is_some_and(|memory| memory.exports.contains_key(id));
        let offer = match outer(world, fence, id, holding, known) {
            Ok(()) => verdicts.of(key, id, holding, export),
            Err(why) => Err(why),
        };
        if let Err(why) = offer {
            invalid.insert(id.clone(), why);
            if !why.is_remembered() {
                memory.exports.remove(id);
                continue;
            }
        }
        let offer = offer.ok();
        match memory.exports.get_mut(id).filter(|known| known.uid == export.uid) {
            Some(known) => {
                if known.offer != offer {
                    known.offer = offer;
                }
            }
            None => {
                let credited = precedence::credit(export.created, *sight, now);
                let (uid, created) = (export.uid.clone(), export.created);
                let seen = RememberedExport { uid, created, first_seen: now, credited, offer };
                memory.exports.insert(id.clone(), seen);
            }
        }
    }

    let mut exports: Vec<(&ClusterId, &RememberedExport, &Arc<Offer>)> =
        memory.exports.iter().filter_map(|(id, export)| Some((id, export, export.offer.as_ref()?))).collect();
    precedence::order(&mut exports, memory.incumbent.as_ref(), |(id, export, _)| (id, export));
    let constituents: Vec<_> =
        exports.iter().map(|(id, _, offer)| ((*id).clone(), Arc::clone(offer))).collect();
    let incumbent =
        exports.first().map(|(id, export, _)| Incumbent { cluster: (*id).clone(), uid: export.uid.clone() });
    memory.incumbent = incumbent;

    let all_heard = world.unheard().next().is_none();
    let in_the_dark = remembered.is_none() && constituents.is_empty() && !all_heard;
    let nothing_left = memory.exports.is_empty() && all_heard;
    let memory = if in_the_dark || nothing_left { None } else { Some(memory) };
    Recalled { constituents, invalid, memory, in_the_dark }
}

/// What stands in the way of an export, whatever it says itself.
fn outer(
    world: &World,
    fence: &Fence<'_>,
    id: &ClusterId,
    holding: &Holding,
    known: bool,
) -> Result<(), Invalid> {
    fence.export(id).map_err(Invalid::Fenced)?;
    limits::of_slices(holding).map_err(Invalid::TooMuch)?;
    fence.endpoints(holding).map_err(Invalid::TooMuch)?;
    if known {
        return Ok(()); // who was first stays: see ADR 3
    }
    fence.room(id, &world.exports).map_err(Invalid::TooMuch)
}

impl Verdicts {
    fn of(
        &mut self,
        key: &ServiceKey,
        id: &ClusterId,
        holding: &Holding,
        export: &Arc<ExportFact>,
    ) -> Result<Arc<Offer>, Invalid> {
        let same = |verdict: &&Verdict| {
            let same_service = match (&verdict.service, &holding.service) {
                (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            same_service && Arc::ptr_eq(&verdict.export, export)
        };
        if let Some(verdict) = self.0.get(id).filter(same) {
            return verdict.offer.clone();
        }
        let offer = validity::judge(key, export, holding.service.as_deref()).map(Arc::new);
        let (export, service) = (Arc::clone(export), holding.service.clone());
        few::make_room(&mut self.0, 1);
        self.0.insert(id.clone(), Verdict { export, service, offer: offer.clone() });
        offer
    }
}
