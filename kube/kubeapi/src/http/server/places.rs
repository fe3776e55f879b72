//! Who may be connected: so many in all, so many of each user, and so many whose user is not known yet. Of those,
//! the oldest of the address with the most makes room for a new one: who shows who they are does so within moments. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

/// How many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Connections in all.
    pub(super) all: usize,
    /// Those whose user is not known yet.
    pub(super) unknown: usize,
    /// Those of one user.
    pub(super) per_user: usize,
    /// How long an unknown one may stay in any case.
    pub(super) grace: Duration,
}

/// Which connection.
pub(super) type Id = u64;

/// Is there room for one more?
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// If this one goes.
    Instead(Id),
    /// Not before this moment, or before a connection ends.
    Later(Option<Duration>),
}

/// The connections there are. Moments are durations since any beginning.
#[derive(Debug)]
pub(super) struct Places {
    limits: Limits,
    ids: Id,
    unknown: BTreeMap<Id, (IpAddr, Duration)>,
    by_address: HashMap<IpAddr, BTreeSet<Id>>,
    /// The user, where there is one who is counted.
    known: HashMap<Id, Option<String>>,
    users: HashMap<String, usize>,
}

impl Places {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ids: 0,
            unknown: BTreeMap::new(),
            by_address: HashMap::new(),
            known: HashMap::new(),
            users: HashMap::new(),
        }
    }

    pub(super) fn room(&self, now: Duration) -> Room {
        let all = self.unknown.len() + self.known.len();
        if all < self.limits.all && self.unknown.len() < self.limits.unknown {
            return Room::Free;
        }
        let greediest = self.by_address.values().max_by_key(|own| own.len());
        let Some(oldest) = greediest.and_then(BTreeSet::first) else { return Room::Later(None) };
        let Some((_, since)) = self.unknown.get(oldest) else { return Room::Later(None) };
        let free = *since + self.limits.grace;
        if free <= now { Room::Instead(*oldest) } else { Room::Later(Some(free)) }
    }

    pub(super) fn arrive(&mut self, from: IpAddr, now: Duration) -> Id {
        self.ids += 1;
        self.unknown.insert(self.ids, (from, now));
        self.by_address.entry(from).or_default().insert(self.ids);
        self.ids
    }

    /// It is known now whose connection this is; `user` is who counts it, if any. `false` when they have too many.
    pub(super) fn belongs_to(&mut self, id: Id, user: Option<&str>) -> bool {
        if let Some(user) = user {
            let own = self.users.get(user).copied().unwrap_or_default();
            if own >= self.limits.per_user {
                return false;
            }
        }
        if !self.forget_unknown(id) {
            return true;
        }
        if let Some(user) = user {
            *self.users.entry(user.to_owned()).or_default() += 1;
        }
        self.known.insert(id, user.map(str::to_owned));
        true
    }

    pub(super) fn leave(&mut self, id: Id) {
        self.forget_unknown(id);
        if let Some(Some(user)) = self.known.remove(&id)
            && let Some(count) = self.users.get_mut(&user)
        {
            *count -= 1;
            if *count == 0 {
                self.users.remove(&user);
            }
        }
    }

    fn forget_unknown(&mut self, id: Id) -> bool {
        let Some((from, _)) = self.unknown.remove(&id) else { return false };
        if let Some(own) = self.by_address.get_mut(&from) {
            own.remove(&id);
            if own.is_empty() {
                self.by_address.remove(&from);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const LIMITS: Limits = Limits { all: 6, unknown: 4, per_user: 2, grace: Duration::from_secs(1) };

    fn from(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn stalled_connections_make_room_and_the_greediest_address_first() {
        let mut places = Places::new(LIMITS);
        let honest = places.arrive(from(1), at(0));
        let stalled: Vec<Id> = (0..3).map(|_| places.arrive(from(2), at(0))).collect();
        assert_eq!(places.room(at(0)), Room::Later(Some(at(1))), "none is older than the grace");
        assert_eq!(places.room(at(5)), Room::Instead(stalled[0]));
        places.leave(stalled[0]);
        places.arrive(from(2), at(5));
        assert_eq!(places.room(at(5)), Room::Instead(stalled[1]));
        assert!(places.belongs_to(honest, Some("joe")));
        assert_eq!(places.room(at(5)), Room::Free, "who is known takes no unknown place");
    }

    #[test]
    fn one_user_does_not_take_all_connections() {
        let mut places = Places::new(LIMITS);
        let ids: Vec<Id> = (0..3).map(|_| places.arrive(from(1), at(0))).collect();
        let told: Vec<bool> = ids.iter().map(|id| places.belongs_to(*id, Some("joe"))).collect();
        assert_eq!(told, [true, true, false]);
        places.leave(ids[2]);
        let other = places.arrive(from(1), at(0));
        assert!(places.belongs_to(other, Some("ann")));
        places.leave(ids[0]);
        let again = places.arrive(from(1), at(0));
        assert!(places.belongs_to(again, Some("joe")));
    }

    #[test]
    fn nothing_is_left_of_who_has_left() {
        let mut places = Places::new(LIMITS);
        for round in 0..100 {
            let id = places.arrive(from(1), at(round));
            if round % 2 == 0 {
                assert!(places.belongs_to(id, (round % 4 == 0).then_some("joe")));
            }
            places.leave(id);
        }
        assert!(places.unknown.is_empty() && places.by_address.is_empty());
        assert!(places.known.is_empty() && places.users.is_empty());
    }

    #[test]
    fn known_users_fill_the_server_but_not_beyond() {
        let mut places = Places::new(LIMITS);
        for user in ["a", "a", "b", "b", "c", "c"] {
            let id = places.arrive(from(1), at(0));
            assert!(places.belongs_to(id, Some(user)));
        }
        assert_eq!(places.room(at(9)), Room::Later(None));
    }
}
