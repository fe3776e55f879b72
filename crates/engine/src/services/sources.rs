//! Each source's slices, made once for all importers and kept while nothing that they are made of has changed: an importer
//! more costs a pointer, and a changed slice is recognised by its address.

use std::sync::Arc;

use litemap::LiteMap;

use super::slices::{self, Rules, Way};
use crate::facts::SliceFact;
use crate::few;
use crate::intent::Intent;
use crate::names::{ClusterId, ServiceKey, SliceName};
use crate::network::territory::Territory;
use crate::network::{AddressRefused, Family};
use crate::plan::Slice;
use crate::reason::SliceNote;
use crate::world::World;

type List = Arc<[Arc<Slice>]>;

/// The slices of all heard sources of a service.
#[derive(Debug, Default)]
pub struct Sources {
    made: LiteMap<ClusterId, LiteMap<SliceName, Made>>,
    lists: LiteMap<(ClusterId, bool, Vec<Family>), List>,
}

#[derive(Debug)]
struct Made {
    fact: Arc<SliceFact>,
    territory: Arc<Territory>,
    own: Arc<Slice>,
    foreign: Arc<Slice>,
}

impl Sources {
    /// Brings the slices up to date. Of each source: the rules by which its slices go, and whether they are those of the last time.
    pub fn refresh<'a>(
        &mut self,
        world: &World,
        key: &ServiceKey,
        intent: Intent,
        sources: impl Iterator<Item = (&'a ClusterId, Rules<'a>, bool)>,
    ) {
        let mut before = std::mem::take(&mut self.made);
        for (source, rules, same_rules) in sources {
            let heard = world.clusters.get(source).filter(|cluster| cluster.heard.is_some());
            let (Some(_), Some(holding)) = (heard, world.holding(key, source)) else { continue };
            let border = world.territory.border(source);
            let mut old = before.remove(source).unwrap_or_default();
            let mut made = LiteMap::with_capacity(holding.slices.len());
            for (original, fact) in &holding.slices {
                let name = intent.slice_name(world, source, original);
                let old = old.remove(original).filter(|old| {
                    same_rules
                        && Arc::ptr_eq(&old.fact, fact)
                        && Arc::ptr_eq(&old.territory, &world.territory)
                        && old.own.name == name
                });
                let fresh = || {
                    let way = |own| Way { source, original, name: &name, rules, border, own };
                    Made {
                        fact: Arc::clone(fact),
                        territory: Arc::clone(&world.territory),
                        own: Arc::new(slices::render(fact, way(true))),
                        foreign: Arc::new(slices::render(fact, way(false))),
                    }
                };
                made.insert(original.clone(), old.unwrap_or_else(fresh));
            }
            few::make_room(&mut self.made, 1);
            self.made.insert(source.clone(), made);
        }
        let made = &self.made;
        self.lists.retain(|(source, ..), _| made.contains_key(source));
    }

    /// The slices of a source in these families, as the source itself (`own`) or as others hold them.
    pub fn list(&mut self, source: &ClusterId, own: bool, families: &[Family]) -> List {
        let made = self.made.get(source).into_iter().flat_map(LiteMap::values);
        let wanted = made
            .map(|made| if own { &made.own } else { &made.foreign })
            .filter(|slice| families.contains(&slice.family));
        few::make_room(&mut self.lists, 2); // the source's own, and that of all other clusters
        let slot = self.lists.entry((source.clone(), own, families.to_vec())).or_default();
        if !wanted.clone().map(Arc::as_ptr).eq(slot.iter().map(Arc::as_ptr)) {
            *slot = wanted.cloned().collect();
        }
        Arc::clone(slot)
    }

    /// A reason for which some of a source's endpoints may not cross, if there is one; the first in order, so that it does not flicker.
    pub fn refused(&self, source: &ClusterId) -> Option<AddressRefused> {
        let made = self.made.get(source).into_iter().flat_map(LiteMap::values);
        let notes = made.flat_map(|made| &made.own.notes);
        notes
            .filter_map(|note| match note {
                SliceNote::AddressRefused { why, .. } => Some(*why),
                SliceNote::PortRenamed { .. } | SliceNote::PortDropped { .. } => None,
            })
            .min()
    }

    /// How many endpoints of a source pass, and whether any was refused.
    pub fn tally(&self, source: &ClusterId) -> Tally {
        let mut tally = Tally::default();
        for made in self.made.get(source).into_iter().flat_map(LiteMap::values) {
            tally.passing += made.own.endpoints.len();
            tally.ready += made.own.endpoints.iter().filter(|e| e.conditions.is_ready()).count();
        }
        tally.refused = self.refused(source);
        tally
    }
}

/// A source's endpoints, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Those that may cross.
    pub passing: usize,
    /// Those of them that are ready.
    pub ready: usize,
    /// A reason for which some may not; the first in order, so that it does not flicker.
    pub refused: Option<AddressRefused>,
}
