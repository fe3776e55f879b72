//! What one importer gets of a merged service.

use std::collections::BTreeMap;

use litemap::LiteMap;
use std::sync::Arc;

use super::families;
use super::merge::Merged;
use super::naming::Derived;
use super::sources::Sources;
use super::supply::{self, Source};
use crate::facts::{
    Capabilities, InternalTrafficPolicy, Locality, ServicePort, SlicePort, TrafficDistribution,
};
use crate::fences::Fence;
use crate::intent::imports::ImportPort;
use crate::names::ClusterId;
use crate::plan::{
    DerivedService, Import, ImportPlan, ImportSpec, Slice, SlicesFrom, StaleMark, Unknown, WhyNothing,
};
use crate::reason::{ImportNote, ImportReady};
use crate::world::World;

/// The importer.
#[derive(Debug, Clone, Copy)]
pub struct Here<'a> {
    /// Its name.
    pub id: &'a ClusterId,
    /// What it can do.
    pub capabilities: &'a Capabilities,
    /// What the derived Service is called.
    pub name: &'a Derived,
    /// The ports that are asked for; all of them if there are none.
    pub ports: &'a [ImportPort],
    /// Whose exports count.
    pub fence: &'a Fence<'a>,
}

/// Plans the import of `merged`.
pub fn import(world: &World, merged: &Merged, sources: &mut Sources, here: &Here<'_>) -> ImportPlan {
    let Here { id, capabilities, name, .. } = *here;
    let mut notes = Vec::new();
    let (families, left_out) = families::cut(&merged.families, &capabilities.families);
    let spec = with_ports(&merged.spec, here.ports, &mut notes);
    let (ready, named) = if families.is_empty() {
        (ImportReady::IpFamilyNotSupported { wanted: merged.families.clone() }, None)
    } else if spec.ports.is_empty() && !merged.spec.ports.is_empty() {
        notes.clear(); // the condition says it of all ports together
        (ImportReady::NoPortAsked { asked: here.ports.to_vec() }, None)
    } else {
        match name {
            Derived::Plain(name) | Derived::TooLong(name) => (ImportReady::Ready, Some(name)),
            Derived::PlainTaken { hashed, plain } => {
                notes.push(ImportNote::PlainNameTaken { plain: plain.clone() });
                (ImportReady::Ready, Some(hashed))
            }
            Derived::BothTaken { hashed, plain } => {
                (ImportReady::NamesTaken { plain: plain.clone(), hashed: hashed.clone() }, None)
            }
        }
    };
    let derived = named.map(|name| {
        if !left_out.is_empty() {
            notes.push(ImportNote::FamiliesLeftOut(left_out));
        }
        let wanted = merged.spec.traffic_distribution;
        let known = wanted.and_then(|wanted| known_to(wanted, capabilities.kubernetes_minor));
        if let (Some(wanted), None) = (wanted, known) {
            notes.push(ImportNote::TrafficDistributionLeftOut(wanted));
        }
        DerivedService { name: name.clone(), families: families.clone(), traffic_distribution: known }
    });
    let own = sources.tally(id);
    if merged.spec.internal_traffic_policy == InternalTrafficPolicy::Local && own.passing == 0 {
        notes.push(ImportNote::LocalWithoutOwnEndpoints);
    }
    let locality = merged.locality.unwrap_or(world.settings.locality);
    let rule = SourceRule {
        derived: derived.is_some(),
        local_only: locality == Locality::LocalFirst && own.ready > 0,
        families: &families,
    };
    let (mut slices, stale) = from_each(world, merged, sources, here, &rule);
    if spec.ports.len() < merged.spec.ports.len() {
        slices.iter_mut().for_each(|(_, from)| keep_ports(from, &spec));
    }
    let import = Import {
        spec,
        families: if families.is_empty() { merged.families.clone() } else { families },
        derived,
        clusters: Arc::clone(&merged.clusters),
        ready,
        notes,
        stale,
    };
    ImportPlan::Present { import: Arc::new(import), slices: Arc::new(slices) }
}

/// What the import says, with the ports that are asked for and no others.
fn with_ports(spec: &Arc<ImportSpec>, asked: &[ImportPort], notes: &mut Vec<ImportNote>) -> Arc<ImportSpec> {
    if asked.is_empty() {
        return Arc::clone(spec);
    }
    let missing = asked.iter().filter(|asked| !spec.ports.iter().any(|port| asked.means(port)));
    notes.extend(missing.cloned().map(ImportNote::NoSuchPort));
    let meant = |port: &&ServicePort| asked.iter().any(|asked| asked.means(port));
    if spec.ports.iter().all(|port| meant(&port)) {
        return Arc::clone(spec);
    }
    let ports = spec.ports.iter().filter(meant).cloned().collect();
    Arc::new(ImportSpec { ports, ..ImportSpec::clone(spec) })
}

/// A slice has no port that its Service does not have.
fn keep_ports(from: &mut SlicesFrom, spec: &ImportSpec) {
    let SlicesFrom::Exactly(list, _) = from else { return };
    let of_spec = |port: &SlicePort| spec.ports.iter().any(|known| known.name == port.name);
    *list = list
        .iter()
        .map(|slice| match slice.ports.iter().all(of_spec) {
            true => Arc::clone(slice),
            false => {
                let mut fewer = Slice::clone(slice);
                fewer.ports.retain(of_spec);
                Arc::new(fewer)
            }
        })
        .collect();
}

struct SourceRule<'a> {
    derived: bool,
    local_only: bool,
    families: &'a [crate::network::Family],
}

type FromEach = (LiteMap<ClusterId, SlicesFrom>, BTreeMap<ClusterId, StaleMark>);

/// What the importer holds from each source. Whoever has not been heard from is listed, exporter or not: the hub can't know.
fn from_each(
    world: &World,
    merged: &Merged,
    sources: &mut Sources,
    here: &Here<'_>,
    rule: &SourceRule<'_>,
) -> FromEach {
    let id = here.id;
    let mut stale = BTreeMap::new();
    let mut slices: LiteMap<_, _> = world
        .unheard()
        .filter(|source| here.fence.export(source).is_ok())
        .map(|source| (source.clone(), SlicesFrom::KeepWhatIsThere(Unknown::NotHeard)))
        .collect();
    for (source, offer) in &merged.exports {
        let Some(cluster) = world.clusters.get(source) else { continue };
        let refused = if !rule.derived {
            Some(WhyNothing::NoDerivedService)
        } else {
            (rule.local_only && source != id).then_some(WhyNothing::LocalFirst)
        };
        let known = cluster.heard.is_some();
        let seen = Source { id: source, policy: offer.liveness, known, own: source == id };
        let judged = supply::judge(world, seen, merged.clusters.iter(), sources);
        stale.extend(judged.stale.map(|mark| (source.clone(), mark)));
        let from = supply::from(seen, judged.verdict, refused, rule.families, sources);
        slices.insert(source.clone(), from);
    }
    (slices, stale)
}

/// What an API server of this version takes for a traffic distribution: the field is on by default from 1.31, the names
/// other than `PreferClose` from 1.34.
fn known_to(wanted: TrafficDistribution, kubernetes_minor: u16) -> Option<TrafficDistribution> {
    match kubernetes_minor {
        0..=30 => None,
        31..=33 => Some(TrafficDistribution::PreferClose),
        34.. => Some(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traffic_distribution_that_an_api_does_not_know_is_left_out_or_said_the_old_way() {
        use TrafficDistribution::{PreferClose, PreferSameNode, PreferSameZone};
        for (wanted, minor, want) in [
            (PreferClose, 30, None),
            (PreferClose, 31, Some(PreferClose)),
            (PreferSameZone, 33, Some(PreferClose)),
            (PreferSameNode, 33, Some(PreferClose)),
            (PreferSameZone, 34, Some(PreferSameZone)),
            (PreferSameNode, 36, Some(PreferSameNode)),
        ] {
            assert_eq!(known_to(wanted, minor), want, "{wanted:?} 1.{minor}");
        }
    }
}
