//! What a consumer holds from one source: the two signals of liveness, what is known, and what stands in the way. The same for
//! every kind of intent.

use super::sources::Sources;
use super::withdraw::{self, Probe, Verdict};
use crate::facts::Liveness;
use crate::names::ClusterId;
use crate::network::Family;
use crate::plan::{SlicesFrom, StaleMark, Unknown, WhyNothing};
use crate::reason::Kept;
use crate::time::Time;

/// How it is with a source, as one consumer sees it.
#[derive(Debug, Clone, Copy)]
pub struct Supply<'a> {
    /// What happens when it is lost.
    pub policy: Liveness,
    /// Since when it is lost, if it is. To itself a cluster is never lost.
    pub lost: Option<Time>,
    /// Whether its slices are known.
    pub known: bool,
    /// How many endpoints the service has in other clusters that are not lost.
    pub alive_elsewhere: usize,
    /// Why the consumer takes nothing, if it takes nothing.
    pub refused: Option<WhyNothing>,
    /// Whether the consumer is the source itself.
    pub own: bool,
    /// The families that the consumer takes.
    pub families: &'a [Family],
}

/// What the consumer holds, and whether that may be out of date.
pub fn from(
    source: &ClusterId,
    supply: Supply<'_>,
    sources: &mut Sources,
) -> (SlicesFrom, Option<StaleMark>) {
    // Nobody probes yet, so that `Probe` keeps what is lost.
    let verdict = withdraw::judge(supply.policy, supply.lost, Probe::NotRun, supply.alive_elsewhere);
    let from = match (verdict, supply.refused) {
        (Verdict::Withdraw(why), _) => SlicesFrom::Nothing(WhyNothing::Withdrawn(why)),
        (Verdict::Keep(Kept::Alive), _) if !supply.known => SlicesFrom::KeepWhatIsThere(Unknown::NotHeard),
        (Verdict::Keep(kept), _) if !supply.known => SlicesFrom::KeepWhatIsThere(Unknown::LostUnheard(kept)),
        (Verdict::Keep(_), Some(why)) => SlicesFrom::Nothing(why),
        (Verdict::Keep(kept), None) => {
            SlicesFrom::Exactly(sources.list(source, supply.own, supply.families), kept)
        }
    };
    let stale = match (verdict, supply.lost) {
        (Verdict::Keep(_), Some(since)) => Some(StaleMark::Since(since)),
        (Verdict::Keep(_), None) if !supply.known => Some(StaleMark::AsItWas),
        (Verdict::Keep(_) | Verdict::Withdraw(_), _) => None,
    };
    (from, stale)
}
