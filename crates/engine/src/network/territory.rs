//! Whose address is it? All ranges of all members, of the hub and of the balancers in one table that is made when one of them changes,
//! and read by a binary search for every endpoint: no allocation, no walk over members.
//!
//! | an address that | passes |
//! |---|---|
//! | leads nowhere good from anywhere (`network/special.rs`) | never; loopback only where the operator declared it |
//! | is a balancer's, or the hub's | never; the hub's only for whom the operator declared that very address |
//! | is another member's | only if the operator gave it to both, or the stronger claim is the announcer's |
//! | is in none of the announcer's ranges | only while none of its pod networks is known |
//!
//! The stronger claim: the operator's word before what was read at join; of two words of the operator the narrower range, equal ones
//! are shared; of two that were read at join that of the elder member. What a member said later denies nothing to other members.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;

use super::{AddressRefused, Family, Networks, Ranges, Reserved, Use, special};
use crate::names::ClusterId;

/// Who has a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// A member, by its place in the list of members.
    Member(usize),
    Hub,
    Pool,
}

/// How it is known; the stronger is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Learnt,
    Observed,
    Declared,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim {
    owner: Owner,
    origin: Origin,
    used_for: Use,
    /// The length of its prefix.
    bits: u8,
    /// Since when its owner is a member.
    since: i64,
}

impl Claim {
    /// Does it keep the address from an announcer whose best claim is `mine`?
    fn denies(&self, mine: Option<&Self>) -> bool {
        if self.origin == Origin::Learnt {
            return false;
        }
        let Some(mine) = mine.filter(|mine| mine.origin != Origin::Learnt) else { return true };
        match (self.owner, self.origin, mine.origin) {
            (Owner::Pool, _, _) => true,
            (_, Origin::Declared, Origin::Declared) => self.bits > mine.bits,
            (Owner::Hub, _, _) => true,
            (Owner::Member(_), Origin::Observed, Origin::Observed) => {
                (self.since, self.owner) < (mine.since, mine.owner)
            }
            (Owner::Member(_), theirs, ours) => theirs > ours,
        }
    }

    fn refusal(&self) -> AddressRefused {
        match self.owner {
            Owner::Member(_) => AddressRefused::OfAnotherMember(self.used_for),
            Owner::Hub => AddressRefused::OfTheHub,
            Owner::Pool => AddressRefused::OfABalancer,
        }
    }
}

/// Addresses from here to the next segment have these claims.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    from: u128,
    claims: Box<[Claim]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Member {
    id: ClusterId,
    /// Some of its pod networks are known.
    strict: bool,
}

/// All ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Territory {
    members: Vec<Member>,
    four: Vec<Segment>,
    six: Vec<Segment>,
}

/// A range that an address is in, for whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The range.
    pub range: IpNet,
    /// Whose it is.
    pub holder: Holder,
    /// How it is known: `declared`, `observed` or `learnt`.
    pub known: &'static str,
}

/// Whose a range is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A member's, for this use.
    Member(ClusterId, Use),
    /// The hub's.
    Hub,
    /// The balancers'.
    Pool,
}

/// What one member may announce.
#[derive(Debug, Clone, Copy)]
pub struct Border<'a> {
    territory: &'a Territory,
    me: Option<Owner>,
    strict: bool,
}

impl Territory {
    /// Puts it together. The members come in the order of their names.
    pub fn new<'a>(
        members: impl Iterator<Item = (&'a ClusterId, &'a Networks)>,
        reserved: &Reserved,
    ) -> Self {
        let (mut known, mut claims) = (Vec::new(), Vec::new());
        for (id, networks) in members.filter(|(_, networks)| **networks != Networks::default()) {
            let (owner, since) = (Owner::Member(known.len()), networks.since);
            let mut add = |ranges: &[IpNet], origin, used_for| {
                claims.extend(ranges.iter().map(|range| {
                    let bits = range.prefix_len();
                    (*range, Claim { owner, origin, used_for, bits, since })
                }));
            };
            let origins = [
                (Origin::Declared, &networks.declared),
                (Origin::Observed, &networks.observed),
                (Origin::Learnt, &networks.learnt),
            ];
            for (origin, Ranges { pods, nodes, services, api }) in origins {
                add(pods, origin, Use::Pods);
                add(nodes, origin, Use::Nodes);
                add(services, origin, Use::Services);
                add(api, origin, Use::Api);
            }
            add(&networks.endpoints, Origin::Declared, Use::Endpoints);
            known.push(Member { id: id.clone(), strict: networks.knows_pods() });
        }
        for (owner, ranges) in [(Owner::Hub, &reserved.hub), (Owner::Pool, &reserved.pool)] {
            claims.extend(ranges.iter().map(|range| {
                let bits = range.prefix_len();
                (*range, Claim { owner, origin: Origin::Declared, used_for: Use::Nodes, bits, since: 0 })
            }));
        }
        let (four, six) = claims.into_iter().partition(|(range, _)| range.addr().is_ipv4());
        Self { members: known, four: segments(four), six: segments(six) }
    }

    /// What this member may announce.
    pub fn border(&self, id: &ClusterId) -> Border<'_> {
        let place = self.members.binary_search_by(|member| member.id.cmp(id)).ok();
        let strict = place.and_then(|place| self.members.get(place)).is_some_and(|member| member.strict);
        Border { territory: self, me: place.map(Owner::Member), strict }
    }

    /// Every range that an address is in.
    pub fn holders(&self, address: IpAddr) -> impl Iterator<Item = Held> {
        let address = address.to_canonical();
        self.claims(address).iter().filter_map(move |claim| {
            let holder = match claim.owner {
                Owner::Member(place) => Holder::Member(self.members.get(place)?.id.clone(), claim.used_for),
                Owner::Hub => Holder::Hub,
                Owner::Pool => Holder::Pool,
            };
            let known = match claim.origin {
                Origin::Declared => "declared",
                Origin::Observed => "observed",
                Origin::Learnt => "learnt",
            };
            Some(Held { range: IpNet::new(address, claim.bits).ok()?.trunc(), holder, known })
        })
    }

    fn claims(&self, address: IpAddr) -> &[Claim] {
        let (segments, number) = match address {
            IpAddr::V4(four) => (&self.four, u128::from(u32::from(four))),
            IpAddr::V6(six) => (&self.six, u128::from(six)),
        };
        let after = segments.partition_point(|segment| segment.from <= number);
        after.checked_sub(1).and_then(|at| segments.get(at)).map_or(&[], |segment| &segment.claims)
    }
}

impl Border<'_> {
    /// May traffic of other clusters be pointed at this address, on this member's word?
    pub fn judge(&self, address: IpAddr, family: Family) -> Result<(), AddressRefused> {
        if Family::of(address) != family {
            return Err(AddressRefused::WrongFamily);
        }
        let address = address.to_canonical(); // ::ffff:127.0.0.1 is 127.0.0.1
        let mine = self.mine(address);
        self.never(address, mine)?;
        if let IpAddr::V6(six) = address {
            self.inside(six)?;
        }
        if self.strict && mine.is_none() { Err(AddressRefused::OutsideDeclaredNetworks) } else { Ok(()) }
    }

    /// What is written inside may not lead where it could not lead by itself.
    fn inside(&self, address: Ipv6Addr) -> Result<(), AddressRefused> {
        for inner in special::inside(address) {
            let inner = IpAddr::V4(inner);
            self.never(inner, self.mine(inner))?;
        }
        Ok(())
    }

    /// What is refused whatever the announcer's own ranges are, unless one of them is the stronger claim.
    fn never(&self, address: IpAddr, mine: Option<&Claim>) -> Result<(), AddressRefused> {
        match special::refused(address) {
            Some(AddressRefused::Loopback) if self.own(address).any(|own| own.used_for == Use::Endpoints) => {
            }
            Some(why) => return Err(why),
            None => {}
        }
        let others = self.territory.claims(address).iter().filter(|claim| Some(claim.owner) != self.me);
        let denied = others.filter(|claim| claim.denies(mine)).map(Claim::refusal).min();
        denied.map_or(Ok(()), Err)
    }

    /// The member's own best claim by which it may announce an address.
    fn mine(&self, address: IpAddr) -> Option<&Claim> {
        self.own(address).max_by_key(|claim| (claim.origin, claim.bits))
    }

    fn own(&self, address: IpAddr) -> impl Iterator<Item = &Claim> {
        let claims = self.territory.claims(address).iter();
        claims.filter(|claim| Some(claim.owner) == self.me && claim.used_for.announces())
    }
}

/// Parts the addresses where a claim begins or ends.
fn segments(claims: Vec<(IpNet, Claim)>) -> Vec<Segment> {
    let number = |address: IpAddr| match address {
        IpAddr::V4(four) => u128::from(u32::from(four)),
        IpAddr::V6(six) => u128::from(six),
    };
    // At an address: first those that end before it, then those that begin there.
    let mut edges: Vec<(u128, bool, Claim)> = Vec::with_capacity(claims.len() * 2);
    for (range, claim) in claims {
        edges.push((number(range.network()), true, claim));
        if let Some(after) = number(range.broadcast()).checked_add(1) {
            edges.push((after, false, claim));
        }
    }
    edges.sort_by_key(|(at, begins, _)| (*at, *begins));
    let (mut open, mut segments): (Vec<Claim>, Vec<Segment>) = (Vec::new(), Vec::new());
    for (at, begins, claim) in edges {
        if begins {
            open.push(claim);
        } else if let Some(place) = open.iter().position(|one| *one == claim) {
            open.remove(place);
        }
        match segments.last_mut().filter(|last| last.from == at) {
            Some(last) => last.claims = open.clone().into(),
            None => segments.push(Segment { from: at, claims: open.clone().into() }),
        }
    }
    segments
}
