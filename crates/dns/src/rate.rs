//! How many answers a source gets over UDP. Sources of datagrams can be forged: who is asked for many answers in another's name would send
//! them all to the other. So answers are limited by the network of the source, and an honest resolver behind a limited one is now and then
//! told to come by TCP, where sources cannot be forged.
//!
//! Pure: time is an argument, and so is the hasher, whose keys stay secret. The table has a fixed size, whatever comes: a network
//! that finds no place takes that of the one in its set which has been quiet longest.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::num::NonZero;
use std::time::Duration;

/// Networks in one set of the table: as many as a line of a processor's cache holds.
const WAYS: usize = 4;
/// Sets of the table; with [`WAYS`], 16,384 networks and 256 KiB.
const SETS: usize = 4096;
/// Who has one address of a network can have all of it.
const V4_PREFIX: u32 = 24;
const V6_PREFIX: u32 = 56;

/// How many answers the sources of one network get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// So many in a second.
    pub per_second: NonZero<u32>,
    /// So many at once, after a time without questions.
    pub burst: NonZero<u32>,
    /// Every so many-th answer above that is a short one that says: ask by TCP. None if 0.
    pub slip: u32,
}

impl Default for Rate {
    /// Far above what the resolvers of a network ask, far below what hurts a victim: less than 5 Mbit/s.
    fn default() -> Self {
        let number = |number| NonZero::new(number).unwrap_or(NonZero::<u32>::MIN);
        Self { per_second: number(1000), burst: number(2000), slip: 2 }
    }
}

/// What a question gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Its answer.
    Answer,
    /// An empty answer that is marked as cut off.
    Truncate,
    /// Nothing.
    Drop,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// When all that was answered is paid for, in nanoseconds: the farther ahead of now, the more was asked.
    paid: u64,
    /// Which network; 0 for none.
    tag: u32,
    /// How many questions were not answered.
    limited: u32,
}

/// Counts answers by the networks of sources.
#[derive(Debug)]
pub struct Limiter<H> {
    hasher: H,
    /// What one answer costs, in nanoseconds.
    cost: u64,
    /// So far ahead of now may a network be.
    ahead: u64,
    slip: u32,
    /// Made when it is needed: most servers only ever hear sources that are not counted.
    sets: Vec<[Entry; WAYS]>,
}

impl<H: BuildHasher> Limiter<H> {
    /// Nothing counted yet. The hasher's keys must be random, or networks can be made to share a place on purpose.
    pub fn new(rate: Rate, hasher: H) -> Self {
        let cost = 1_000_000_000 / u64::from(rate.per_second.get());
        let ahead = cost * u64::from(rate.burst.get() - 1);
        Self { hasher, cost, ahead, slip: rate.slip, sets: Vec::new() }
    }

    /// What a question of this source gets, now. `now` is from any beginning on and never goes back.
    pub fn judge(&mut self, source: IpAddr, now: Duration) -> Verdict {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        if self.sets.is_empty() {
            self.sets = vec![[Entry::default(); WAYS]; SETS];
        }
        let hash = self.hasher.hash_one(network(source));
        let (low, high) = split(hash);
        let tag = high.max(1);
        let set = &mut self.sets[low as usize % SETS];
        let place = set.iter().position(|one| one.tag == tag).unwrap_or_else(|| {
            let quietest = (0..WAYS).min_by_key(|way| set[*way].paid).unwrap_or_default();
            set[quietest] = Entry { paid: 0, tag, limited: 0 };
            quietest
        });
        let entry = &mut set[place];
        let from = entry.paid.max(now);
        if from - now <= self.ahead {
            entry.paid = from.saturating_add(self.cost);
            return Verdict::Answer;
        }
        entry.limited = entry.limited.wrapping_add(1);
        match self.slip {
            0 => Verdict::Drop,
            slip if entry.limited.is_multiple_of(slip) => Verdict::Truncate,
            _ => Verdict::Drop,
        }
    }
}

fn split(hash: u64) -> (u32, u32) {
    #[allow(clippy::cast_possible_truncation, reason = "both halves are wanted")]
    (hash as u32, (hash >> 32) as u32)
}

/// The network of an address, and of which family.
fn network(source: IpAddr) -> (bool, u64) {
    match source.to_canonical() {
        IpAddr::V4(v4) => (false, u64::from(v4.to_bits() >> (u32::BITS - V4_PREFIX))),
        IpAddr::V6(v6) => (true, split_network(v6.to_bits())),
    }
}

fn split_network(bits: u128) -> u64 {
    u64::try_from(bits >> (u128::BITS - V6_PREFIX)).unwrap_or_default()
}

/// Ranges of addresses, to be looked through often.
#[derive(Debug, Clone, Default)]
pub struct Ranges {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

impl Ranges {
    /// Those of these networks: an address, and how many of its bits count.
    pub fn new(networks: impl IntoIterator<Item = (IpAddr, u8)>) -> Self {
        let mut all = Self::default();
        for (address, bits) in networks {
            match address {
                IpAddr::V4(v4) => {
                    let mask =
                        u32::MAX.checked_shl(u32::BITS.saturating_sub(bits.into())).unwrap_or_default();
                    all.v4.push((v4.to_bits() & mask, mask));
                }
                IpAddr::V6(v6) => {
                    let mask =
                        u128::MAX.checked_shl(u128::BITS.saturating_sub(bits.into())).unwrap_or_default();
                    all.v6.push((v6.to_bits() & mask, mask));
                }
            }
        }
        all
    }

    /// Whether one of them has the address, in whichever form it came.
    pub fn contain(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.iter().any(|(network, mask)| v4.to_bits() & mask == *network),
            IpAddr::V6(v6) => self.v6.iter().any(|(network, mask)| v6.to_bits() & mask == *network),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::RandomState;

    use super::*;
    use proptest::prelude::*;

    fn rate(per_second: u32, burst: u32, slip: u32) -> Rate {
        Rate { per_second: NonZero::new(per_second).unwrap(), burst: NonZero::new(burst).unwrap(), slip }
    }

    fn limiter(rate: Rate) -> Limiter<RandomState> {
        Limiter::new(rate, RandomState::new())
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_network_gets_a_burst_then_its_rate_and_every_second_of_the_rest_is_sent_to_tcp() {
        let mut limiter = limiter(rate(10, 3, 2));
        let mut ask = |source: &str, at: u32| limiter.judge(source.parse().unwrap(), MS * at);
        use Verdict::{Answer, Drop, Truncate};
        let first: Vec<_> = (0..7).map(|_| ask("192.0.2.1", 0)).collect();
        assert_eq!(first, [Answer, Answer, Answer, Drop, Truncate, Drop, Truncate]);
        // A neighbour is of the same network, in whichever form; others are not.
        assert_eq!((ask("192.0.2.200", 0), ask("::ffff:192.0.2.7", 0)), (Drop, Truncate));
        assert_eq!((ask("192.0.3.1", 0), ask("2001:db8::1", 0)), (Answer, Answer));
        assert_eq!(
            (ask("192.0.2.1", 99), ask("192.0.2.1", 100), ask("192.0.2.1", 101)),
            (Drop, Answer, Truncate)
        );
        let later: Vec<_> = (0..4).map(|_| ask("192.0.2.1", 10_000)).collect();
        assert_eq!(later, [Answer, Answer, Answer, Drop], "never more than a burst");
    }

    #[test]
    fn networks_of_ipv6_are_as_long_as_customers_get_them() {
        let mut limiter = limiter(rate(1, 1, 0));
        let mut ask = |source: &str| limiter.judge(source.parse().unwrap(), Duration::ZERO);
        assert_eq!(ask("2001:db8:1:100::1"), Verdict::Answer);
        assert_eq!(ask("2001:db8:1:1ff:ffff::1"), Verdict::Drop);
        assert_eq!(ask("2001:db8:1:200::1"), Verdict::Answer);
    }

    #[test]
    fn ranges_have_what_is_in_them() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let ranges = Ranges::new([(ip("10.1.2.3"), 8), (ip("fd00::1"), 8), (ip("192.0.2.1"), 32)]);
        for (address, want) in [
            ("10.255.0.1", true),
            ("::ffff:10.0.0.1", true),
            ("11.0.0.1", false),
            ("192.0.2.1", true),
            ("192.0.2.2", false),
            ("fdff::1", true),
            ("fe00::1", false),
        ] {
            assert_eq!(ranges.contain(ip(address)), want, "{address}");
        }
        let all = Ranges::new([(ip("0.0.0.0"), 0)]);
        assert!(all.contain(ip("203.0.113.9")) && !all.contain(ip("::1")));
        assert!(!Ranges::default().contain(ip("127.0.0.1")));
    }

    proptest! {
        /// Attack: questions in a victim's name, among any others, at any pace.
        #[test]
        fn a_victim_gets_no_more_than_the_rate_whatever_is_asked_in_its_name(
            questions in prop::collection::vec((0_u64..40, 0_u8..4), 1..600),
            per_second in 1_u32..200, burst in 1_u32..50,
        ) {
            let mut limiter = limiter(rate(per_second, burst, 3));
            let (mut now, mut answered) = (Duration::from_secs(1), 0_u64);
            for (pause, other) in &questions {
                now += MS * u32::try_from(*pause).unwrap();
                let source = IpAddr::from([198, 51, 100, *other]);
                answered += u64::from(limiter.judge(source, now) == Verdict::Answer);
                limiter.judge(IpAddr::from([10, 0, *other, 1]), now);
            }
            let lasted = now - Duration::from_secs(1);
            let most = u64::from(burst) + lasted.as_millis() as u64 * u64::from(per_second) / 1000 + 1;
            prop_assert!(answered <= most, "{answered} of {}, at the most {most}", questions.len());
        }

        /// Attack: so many forged networks that the table overflows.
        #[test]
        fn an_honest_source_is_always_answered_and_the_table_does_not_grow(
            seed: u32, flood in 1_usize..30_000,
        ) {
            let mut limiter = limiter(rate(100, 10, 2));
            let honest = IpAddr::from([203, 0, 113, 53]);
            let mut now = Duration::from_secs(1);
            for round in 0..20_u32 {
                now += MS * 10; // exactly its rate
                prop_assert_eq!(limiter.judge(honest, now), Verdict::Answer, "round {}", round);
                for number in 0..flood / 20 {
                    let forged = seed.wrapping_mul(2_654_435_761).wrapping_add(number as u32).wrapping_mul(round + 1);
                    let forged = IpAddr::from((forged | 1 << 31).to_be_bytes());
                    if network(forged) != network(honest) {
                        limiter.judge(forged, now);
                    }
                }
            }
            prop_assert_eq!((limiter.sets.len(), limiter.sets.capacity()), (SETS, SETS));
        }
    }
}
