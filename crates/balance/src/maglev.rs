//! Maglev hashing with weights: a table in which each backend has its share, and keeps nearly all of it when another comes or goes.
//!
//! Each backend walks the table in an order of its own, made of its address alone, and takes the next free place when it is its turn.
//! Turns come as often as the weight says.

use std::net::SocketAddr;

use crate::hash::{self, mix};

/// Places for up to 160 backends: shares are then within a hundredth of what the weights say. A prime, so that every step walks all.
const SMALL: usize = 16_381;
const LARGE: usize = 65_521;
const MOST_IN_SMALL: usize = 160;
const FREE: u16 = u16::MAX;

/// The table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maglev {
    places: Vec<u16>,
}

impl Maglev {
    /// The table of backends with these weights. A weight of 0 gets no place. What counts is the order in which they are given only
    /// for the numbers that [`Maglev::lookup`] gives back.
    pub fn new(seed: u64, backends: &[(SocketAddr, u32)]) -> Self {
        let size = if backends.len() <= MOST_IN_SMALL { SMALL } else { LARGE };
        Self::of_size(seed, backends, size)
    }

    /// As [`Maglev::new`], with so many places: a prime, and many times the number of backends.
    pub fn of_size(seed: u64, backends: &[(SocketAddr, u32)], size: usize) -> Self {
        let heaviest = backends.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
        if heaviest == 0 || backends.len() >= usize::from(FREE) || size < 2 {
            return Self::default();
        }
        let mut walkers: Vec<Walker> = backends
            .iter()
            .enumerate()
            .filter(|(_, (_, weight))| *weight > 0)
            .map(|(number, (address, weight))| Walker::new(seed, number, *address, *weight, size))
            .collect();
        // Whoever comes first must not depend on how they were listed.
        walkers.sort_unstable_by_key(|walker| (walker.order, backends[walker.number].0));
        let mut places = vec![FREE; size];
        let mut free = size;
        while free > 0 {
            for walker in &mut walkers {
                walker.credit += u64::from(walker.weight);
                if walker.credit < u64::from(heaviest) {
                    continue;
                }
                walker.credit -= u64::from(heaviest);
                let place = walker.next_free(&places);
                let number = walker.number as u16;
                places[place] = number;
                free -= 1;
                if free == 0 {
                    break;
                }
            }
        }
        Self { places }
    }

    /// Whose turn it is for `hash`; none if no backend has a place.
    pub fn lookup(&self, hash: u64) -> Option<usize> {
        self.from(hash).next()
    }

    /// All places, beginning with that of `hash`: where to look if the first does not answer.
    pub fn from(&self, hash: u64) -> impl Iterator<Item = usize> {
        let start = self.start(hash);
        self.places[start..].iter().chain(&self.places[..start]).map(|number| usize::from(*number))
    }

    fn start(&self, hash: u64) -> usize {
        // The upper half of a product: as even as a remainder, without a division.
        let scaled = (u128::from(hash) * self.places.len() as u128) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }

    /// The places, by number of backend.
    pub fn places(&self) -> &[u16] {
        &self.places
    }
}

struct Walker {
    number: usize,
    order: u64,
    weight: u32,
    credit: u64,
    next: usize,
    step: usize,
}

impl Walker {
    fn new(seed: u64, number: usize, address: SocketAddr, weight: u32, size: usize) -> Self {
        let hash = hash::flow(seed ^ 0x6d61_676c_6576, address);
        let size_64 = size as u64;
        let (next, step) = ((mix(hash, 1) % size_64) as usize, (mix(hash, 2) % (size_64 - 1)) as usize + 1);
        Self { number, order: hash, weight, credit: 0, next, step }
    }

    fn next_free(&mut self, places: &[u16]) -> usize {
        loop {
            let place = self.next;
            self.next = (self.next + self.step) % places.len();
            if places[place] == FREE {
                return place;
            }
        }
    }
}
