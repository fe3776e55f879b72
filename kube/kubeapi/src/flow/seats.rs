//! Who may run next: so many seats, a queue per user, and the queues take turns. Pure: no clock, no lock.

use std::collections::{HashMap, VecDeque};

/// How many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Seats for all.
    pub(crate) seats: usize,
    /// Seats that one user may have at once.
    pub(crate) per_user: usize,
    /// How many of one user may wait.
    pub(crate) queued_per_user: usize,
    /// How many may wait in all.
    pub(crate) queued: usize,
}

/// Which of those that wait.
pub(crate) type Ticket = u64;

/// What became of one who came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Seated,
    Waits(Ticket),
    /// The queue is full.
    Refused,
}

/// Seats, and those who wait; `W` is how one who waits is called.
#[derive(Debug)]
pub(crate) struct Seats<W> {
    limits: Limits,
    taken: usize,
    waiting: usize,
    tickets: Ticket,
    users: HashMap<String, Line<W>>,
    /// Users with a request waiting, each once: whose turn it is stands first.
    turns: VecDeque<String>,
}

#[derive(Debug)]
struct Line<W> {
    seated: usize,
    waiting: VecDeque<(Ticket, W)>,
}

impl<W> Default for Line<W> {
    fn default() -> Self {
        Self { seated: 0, waiting: VecDeque::new() }
    }
}

impl<W> Seats<W> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, taken: 0, waiting: 0, tickets: 0, users: HashMap::new(), turns: VecDeque::new() }
    }

    /// A request of `user` came; `caller` is asked for only if it has to wait.
    pub(crate) fn arrive(&mut self, user: &str, caller: impl FnOnce() -> W) -> Arrival {
        let Limits { seats, per_user, queued_per_user, queued } = self.limits;
        if !self.users.contains_key(user) {
            self.users.insert(user.to_owned(), Line::default());
        }
        let Some(line) = self.users.get_mut(user) else { return Arrival::Refused };
        // Those who wait though a seat is free are of users who have all that they may have.
        if self.taken < seats && line.seated < per_user {
            self.taken += 1;
            line.seated += 1;
            return Arrival::Seated;
        }
        if line.waiting.len() >= queued_per_user || self.waiting >= queued {
            self.forget(user);
            return Arrival::Refused;
        }
        if line.waiting.is_empty() {
            self.turns.push_back(user.to_owned());
        }
        self.tickets += 1;
        self.waiting += 1;
        line.waiting.push_back((self.tickets, caller()));
        Arrival::Waits(self.tickets)
    }

    /// A seat of `user` is free again. Who is seated now is returned, to be called.
    pub(crate) fn leave(&mut self, user: &str) -> Option<W> {
        if let Some(line) = self.users.get_mut(user)
            && line.seated > 0
        {
            line.seated -= 1;
            self.taken -= 1;
        }
        self.forget(user);
        self.seat_next()
    }

    /// One who waited went away. `false` when they had been seated already.
    pub(crate) fn give_up(&mut self, user: &str, ticket: Ticket) -> bool {
        let Some(line) = self.users.get_mut(user) else { return false };
        let Some(at) = line.waiting.iter().position(|(waits, _)| *waits == ticket) else { return false };
        line.waiting.remove(at);
        self.waiting -= 1;
        if line.waiting.is_empty() {
            self.turns.retain(|turn| turn != user);
        }
        self.forget(user);
        true
    }

    fn seat_next(&mut self) -> Option<W> {
        if self.taken >= self.limits.seats {
            return None;
        }
        for _ in 0..self.turns.len() {
            let user = self.turns.pop_front()?;
            let Some(line) = self.users.get_mut(&user) else { continue };
            if line.seated >= self.limits.per_user {
                self.turns.push_back(user);
                continue;
            }
            let Some((_, caller)) = line.waiting.pop_front() else { continue };
            line.seated += 1;
            self.taken += 1;
            self.waiting -= 1;
            if !line.waiting.is_empty() {
                self.turns.push_back(user);
            }
            return Some(caller);
        }
        None
    }

    /// A user with nothing here costs nothing.
    fn forget(&mut self, user: &str) {
        if self.users.get(user).is_some_and(|line| line.seated == 0 && line.waiting.is_empty()) {
            self.users.remove(user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FEW: Limits = Limits { seats: 3, per_user: 2, queued_per_user: 4, queued: 6 };

    fn seats(limits: Limits) -> Seats<String> {
        Seats::new(limits)
    }

    fn arrives(seats: &mut Seats<String>, user: &str) -> Arrival {
        seats.arrive(user, || user.to_owned())
    }

    #[test]
    fn one_user_at_full_speed_leaves_a_seat_to_others() {
        let mut seats = seats(FEW);
        for want in [true, true, false, false] {
            assert_eq!(arrives(&mut seats, "greedy") == Arrival::Seated, want);
        }
        assert_eq!(arrives(&mut seats, "honest"), Arrival::Seated);
    }

    #[test]
    fn who_came_last_is_not_served_last_where_another_has_a_queue() {
        let limits = Limits { seats: 1, per_user: 1, queued_per_user: 50, queued: 100 };
        let mut seats = seats(limits);
        for _ in 0..40 {
            arrives(&mut seats, "greedy");
        }
        assert!(matches!(arrives(&mut seats, "honest"), Arrival::Waits(_)));
        let mut running = "greedy".to_owned();
        let served: Vec<String> = (0..3)
            .map(|_| {
                running = seats.leave(&running).unwrap();
                running.clone()
            })
            .collect();
        assert_eq!(served, ["greedy", "honest", "greedy"]);
    }

    #[test]
    fn a_queue_is_bounded_for_each_user_and_for_all() {
        let mut seats = seats(FEW);
        let arrivals: Vec<Arrival> = (0..7).map(|_| arrives(&mut seats, "a")).collect();
        assert_eq!(arrivals.iter().filter(|one| matches!(one, Arrival::Waits(_))).count(), 4);
        assert_eq!(arrivals.last(), Some(&Arrival::Refused));
        let others: Vec<Arrival> =
            ["b", "c", "d", "e"].iter().map(|user| arrives(&mut seats, user)).collect();
        assert_eq!(others.first(), Some(&Arrival::Seated));
        assert_eq!(others.last(), Some(&Arrival::Refused), "six wait in all");
    }

    #[test]
    fn who_gives_up_is_not_seated() {
        let limits = Limits { seats: 1, per_user: 1, queued_per_user: 5, queued: 5 };
        let mut seats = seats(limits);
        arrives(&mut seats, "a");
        let Arrival::Waits(ticket) = arrives(&mut seats, "b") else { panic!() };
        arrives(&mut seats, "c");
        assert!(seats.give_up("b", ticket));
        assert_eq!(seats.leave("a").as_deref(), Some("c"));
        assert!(!seats.give_up("c", ticket + 1), "seated already");
    }

    proptest! {
        /// Whatever happens in whatever order: no limit is broken, no request is lost, and none waits where it could sit.
        #[test]
        fn limits_hold_and_no_request_is_forgotten(steps in prop::collection::vec((0u8..4, 0usize..5), 1..300)) {
            let mut seats = seats(FEW);
            let mut seated: HashMap<String, usize> = HashMap::new();
            let mut waiting: Vec<(String, Ticket)> = Vec::new();
            for (step, user) in steps {
                let user = format!("user-{user}");
                match step {
                    0 | 1 => match arrives(&mut seats, &user) {
                        Arrival::Seated => *seated.entry(user).or_default() += 1,
                        Arrival::Waits(ticket) => waiting.push((user, ticket)),
                        Arrival::Refused => {
                            let own = waiting.iter().filter(|(name, _)| *name == user).count();
                            prop_assert!(own >= FEW.queued_per_user || waiting.len() >= FEW.queued);
                        }
                    },
                    2 if seated.get(&user).is_some_and(|count| *count > 0) => {
                        *seated.get_mut(&user).unwrap() -= 1;
                        if let Some(next) = seats.leave(&user) {
                            let at = waiting.iter().position(|(name, _)| *name == next).unwrap();
                            waiting.remove(at);
                            *seated.entry(next).or_default() += 1;
                        }
                    }
                    3 => if let Some(at) = waiting.iter().position(|(name, _)| *name == user) {
                        let (name, ticket) = waiting.remove(at);
                        prop_assert!(seats.give_up(&name, ticket));
                    },
                    _ => {}
                }
                let taken: usize = seated.values().sum();
                prop_assert!(taken <= FEW.seats);
                prop_assert!(seated.values().all(|count| *count <= FEW.per_user));
                prop_assert_eq!(seats.taken, taken);
                prop_assert_eq!(seats.waiting, waiting.len());
                let idle = waiting.iter().filter(|(name, _)| seated.get(name).is_none_or(|count| *count < FEW.per_user));
                prop_assert!(taken == FEW.seats || idle.count() == 0);
            }
        }

        /// Users who always want more get the same, however many of each wait.
        #[test]
        fn users_who_always_want_more_are_served_alike(queues in prop::collection::vec(20usize..60, 2..6)) {
            let limits = Limits { seats: 1, per_user: 1, queued_per_user: 100, queued: 1000 };
            let mut seats = seats(limits);
            arrives(&mut seats, "first");
            for (user, length) in queues.iter().enumerate() {
                for _ in 0..*length {
                    arrives(&mut seats, &user.to_string());
                }
            }
            let mut served: HashMap<String, usize> = HashMap::new();
            let mut running = "first".to_owned();
            for _ in 0..queues.len() * 20 {
                running = seats.leave(&running).unwrap();
                *served.entry(running.clone()).or_default() += 1;
            }
            prop_assert!(served.values().all(|count| *count == 20), "{served:?}");
        }
    }
}
