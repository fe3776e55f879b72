//! What a cluster holds of each source: every address, in or out, and the fact that decided it.

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_api::explain::{Candidate, Endpoints, Remark, Source};
use atoll_api::names::code::Code;
use atoll_engine::facts::EndpointConditions;
use atoll_engine::names::{ClusterId, PortName, ServiceKey};
use atoll_engine::network::Family;
use atoll_engine::plan::{Slice, SlicesFrom, Unknown, WhyNothing};
use atoll_engine::reason::{Kept, PortDropped, SliceNote, Withdrawn, text};
use atoll_engine::world::Holding;
use litemap::LiteMap;

use super::known::{Known, remark, rfc3339};
use super::service::Scope;

/// Addresses of one source that are listed, at most.
const MOST: usize = 200;

/// Where what is listed stops, in one answer.
pub(super) struct Room {
    left: usize,
}

impl Room {
    pub(super) fn of(scope: &Scope) -> Self {
        Self { left: scope.candidates }
    }

    fn take(&mut self, listed: usize) -> bool {
        let room = listed < MOST && self.left > 0;
        self.left -= usize::from(room);
        room
    }
}

/// What `target` holds, by source, and how many endpoints these are. `families`: those that it takes.
pub(super) fn sources(
    known: &Known<'_>,
    key: &ServiceKey,
    target: &ClusterId,
    slices: &LiteMap<ClusterId, SlicesFrom>,
    families: &[Family],
    (scope, room): (&Scope, &mut Room),
) -> (Vec<Source>, Endpoints) {
    let (mut all, mut sum) = (Vec::new(), Endpoints::default());
    for (id, from) in slices {
        let mut part =
            Part { cluster: id, key, source: Source::default(), listed: 0, count: Endpoints::default() };
        part.source.cluster = id.to_string();
        match from {
            SlicesFrom::Exactly(list, kept) => {
                part.kept(*kept);
                part.exactly(known, list, room);
                part.other_families(known.world().holding(key, id), families, list, room);
                let unconfirmed = |slice: &&Arc<Slice>| {
                    target != id && known.brain.is_awaited(key, id, &slice.original, target)
                };
                if list.iter().any(|slice| unconfirmed(&slice)) {
                    part.source.remarks.push(remark(
                        Code::WaitsForMember,
                        Code::WaitsForMember.meaning(),
                        key,
                        id,
                    ));
                }
            }
            SlicesFrom::Nothing(why) => {
                part.nothing(*why);
                part.out(known.world().holding(key, id), why.code(), text::nothing(*why), room);
            }
            SlicesFrom::KeepWhatIsThere(unknown) => {
                let mut told = remark(unknown.code(), text::unknown(*unknown), key, id);
                if let Unknown::LostUnheard(kept) = unknown {
                    told = since(told, *kept);
                }
                part.source.remarks.push(told);
            }
        }
        let Endpoints { ready, not_ready, refused } = part.count;
        sum.ready += ready;
        sum.not_ready += not_ready;
        sum.refused += refused;
        if scope.from.as_ref().is_none_or(|from| from == id) {
            all.push(part.source);
        }
    }
    (all, sum)
}

struct Part<'a> {
    cluster: &'a ClusterId,
    key: &'a ServiceKey,
    source: Source,
    listed: usize,
    count: Endpoints,
}

impl Part<'_> {
    fn list(&mut self, room: &mut Room, candidate: impl FnOnce() -> Candidate) {
        if room.take(self.listed) {
            self.listed += 1;
            self.source.candidates.push(candidate());
        } else {
            self.source.more = true;
        }
    }

    /// Of a lost source: why it stays all the same.
    fn kept(&mut self, kept: Kept) {
        if let Some(code) = kept.code() {
            let told = remark(code, text::kept(kept), self.key, self.cluster);
            self.source.remarks.push(since(told, kept));
        }
    }

    fn nothing(&mut self, why: WhyNothing) {
        let told = remark(why.code(), text::nothing(why), self.key, self.cluster);
        let told = match why {
            WhyNothing::Withdrawn(Withdrawn::LeaseEnded { at }) => told.since(rfc3339(at)),
            WhyNothing::Withdrawn(Withdrawn::ProbeFailed { lost }) => told.since(rfc3339(lost)),
            WhyNothing::LocalFirst | WhyNothing::NoDerivedService => told,
        };
        self.source.remarks.push(told);
    }

    fn exactly(&mut self, known: &Known<'_>, list: &[Arc<Slice>], room: &mut Room) {
        let mut ports: BTreeSet<(Code, String)> = BTreeSet::new();
        for slice in list {
            for endpoint in &slice.endpoints {
                let ready = endpoint.conditions.is_ready();
                for address in &endpoint.addresses {
                    let of = if ready { &mut self.count.ready } else { &mut self.count.not_ready };
                    *of += 1;
                    self.list(room, || Candidate {
                        address: address.to_string(),
                        slice: slice.original.to_string(),
                        used: ready,
                        remark: state(endpoint.conditions),
                        detail: None,
                    });
                }
            }
            for note in &slice.notes {
                match note {
                    SliceNote::AddressRefused { address, why } => {
                        self.count.refused += 1;
                        let (key, cluster) = (self.key, self.cluster);
                        self.list(room, || Candidate {
                            address: address.to_string(),
                            slice: slice.original.to_string(),
                            used: false,
                            remark: remark(note.code(), text::address_refused(*why), key, cluster),
                            detail: Some(why.as_str().to_owned()),
                        });
                    }
                    SliceNote::PortDropped { name, why: PortDropped::NameClash { winner } } => {
                        let message = self.clash(known, name, winner);
                        ports.insert((note.code(), message.unwrap_or_else(|| text::slice_note(note))));
                    }
                    SliceNote::PortRenamed { .. }
                    | SliceNote::PortDropped {
                        why: PortDropped::NotOfTheService | PortDropped::NotAsked,
                        ..
                    } => {
                        ports.insert((note.code(), text::slice_note(note)));
                    }
                }
            }
        }
        for (code, message) in ports.into_iter().take(MOST) {
            self.source.remarks.push(remark(code, &message, self.key, self.cluster));
        }
    }

    /// Which port is left out, and which one has its name.
    fn clash(&self, known: &Known<'_>, name: &PortName, winner: &ClusterId) -> Option<String> {
        let merged = known.engine().merged(self.key)?;
        let of = |id: &ClusterId| {
            let (_, offer) = merged.exports.iter().find(|(one, _)| one == id)?;
            let port = offer.ports.iter().find(|port| port.name == *name)?;
            Some(format!("{name} {}/{}", port.port, port.protocol.as_str()))
        };
        let (its, others) = (of(self.cluster)?, of(winner)?);
        Some(format!("port {its} of {} is ignored: {winner} has {others}", self.cluster))
    }

    /// Addresses of families that the cluster does not take.
    fn other_families(
        &mut self,
        holding: Option<&Holding>,
        families: &[Family],
        list: &[Arc<Slice>],
        room: &mut Room,
    ) {
        for (original, fact) in holding.into_iter().flat_map(|holding| &holding.slices) {
            let listed = || list.binary_search_by(|slice| slice.original.cmp(original)).is_ok();
            if families.contains(&fact.family) || listed() {
                continue;
            }
            for address in fact.endpoints.iter().flat_map(|endpoint| &endpoint.addresses) {
                let message = format!("the cluster does not import {} endpoints", fact.family.as_str());
                let (key, cluster) = (self.key, self.cluster);
                self.list(room, || Candidate {
                    address: address.to_string(),
                    slice: original.to_string(),
                    used: false,
                    remark: remark(Code::FamiliesLeftOut, &message, key, cluster),
                    detail: None,
                });
            }
        }
    }

    /// All that a source has, for one reason.
    fn out(&mut self, holding: Option<&Holding>, code: Code, why: &str, room: &mut Room) {
        for (original, fact) in holding.into_iter().flat_map(|holding| &holding.slices) {
            for address in fact.endpoints.iter().flat_map(|endpoint| &endpoint.addresses) {
                let (key, cluster) = (self.key, self.cluster);
                self.list(room, || Candidate {
                    address: address.to_string(),
                    slice: original.to_string(),
                    used: false,
                    remark: remark(code, why, key, cluster),
                    detail: None,
                });
            }
        }
    }
}

fn state(conditions: EndpointConditions) -> Remark {
    match (conditions.is_ready(), conditions.terminating) {
        (true, _) => Remark::of(Code::Used),
        (false, Some(true)) => {
            Remark::new(Code::NotReady, "The pod is terminating, and gets no new connections.")
        }
        (false, Some(false) | None) => Remark::of(Code::NotReady),
    }
}

fn since(remark: Remark, kept: Kept) -> Remark {
    match kept {
        Kept::PolicyRetains { since } => remark.since(rfc3339(since)),
        Kept::Alive | Kept::Answers | Kept::NotProbed | Kept::LastOfService => remark,
    }
}
