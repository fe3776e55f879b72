//! What a consumer holds from one source: the two signals of liveness, what is known, and what stands in the way. The same for
//! every kind of intent, and for balancers.

use super::sources::Sources;
use super::withdraw::{self, Probe, Verdict};
use crate::facts::{Contact, Liveness};
use crate::names::ClusterId;
use crate::network::Family;
use crate::plan::{SlicesFrom, StaleMark, Unknown, WhyNothing};
use crate::reason::Kept;
use crate::world::World;

/// A source of a service, as one consumer sees it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The source.
    pub id: &'a ClusterId,
    /// Its own word on what happens when it is lost, if there is one.
    pub policy: Option<Liveness>,
    /// Whether its slices are known.
    pub known: bool,
    /// Whether the consumer is the source itself. To itself a cluster is never lost.
    pub own: bool,
}

/// Whether what a source has stays.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// Whether it stays, and why.
    pub verdict: Verdict,
    /// Whether it may be out of date.
    pub stale: Option<StaleMark>,
}

/// Judges a source. `all` are the clusters that have the service: the last endpoints of a service are kept longest.
pub fn judge<'a>(
    world: &World,
    source: Source<'_>,
    all: impl IntoIterator<Item = &'a ClusterId>,
    sources: &Sources,
) -> Judged {
    let contact = |id: &ClusterId| world.clusters.get(id).map(|cluster| cluster.contact);
    let lost = contact(source.id).and_then(Contact::lost).filter(|_| !source.own);
    let elsewhere = || {
        let others = all.into_iter().filter(|other| *other != source.id);
        let alive = others.filter(|other| contact(other).is_some_and(|contact| contact.lost().is_none()));
        alive.map(|other| sources.tally(other).passing).sum()
    };
    let policy = source.policy.unwrap_or(world.settings.liveness);
    let alive_elsewhere = if lost.is_some() { elsewhere() } else { 0 };
    // There is no prober yet: `Probe` keeps what is lost.
    let verdict = withdraw::judge(policy, lost, Probe::NotRun, alive_elsewhere);
    let stale = match (verdict, lost) {
        (Verdict::Keep(_), Some(since)) => Some(StaleMark::Since(since)),
        (Verdict::Keep(_), None) if !source.known => Some(StaleMark::AsItWas),
        (Verdict::Keep(_) | Verdict::Withdraw(_), _) => None,
    };
    Judged { verdict, stale }
}

/// What the consumer holds of a source that was judged: slices of these families, but for what is refused.
pub fn from(
    source: Source<'_>,
    verdict: Verdict,
    refused: Option<WhyNothing>,
    families: &[Family],
    sources: &mut Sources,
) -> SlicesFrom {
    match (verdict, refused) {
        (Verdict::Withdraw(why), _) => SlicesFrom::Nothing(WhyNothing::Withdrawn(why)),
        (Verdict::Keep(Kept::Alive), _) if !source.known => SlicesFrom::KeepWhatIsThere(Unknown::NotHeard),
        (Verdict::Keep(kept), _) if !source.known => SlicesFrom::KeepWhatIsThere(Unknown::LostUnheard(kept)),
        (Verdict::Keep(_), Some(why)) => SlicesFrom::Nothing(why),
        (Verdict::Keep(kept), None) => {
            SlicesFrom::Exactly(sources.list(source.id, source.own, families), kept)
        }
    }
}
