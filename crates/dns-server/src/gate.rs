//! Who asks, and how he is answered over UDP: those whom we know in full, strangers in short and not too often.

use std::collections::hash_map::RandomState;
use std::net::IpAddr;
use std::time::Instant;

use atoll_dns::{Limiter, Ranges, Transport, Verdict};

use crate::options::RateLimit;

/// One thread's own.
pub(crate) struct Gate {
    /// None: all clients are answered.
    limits: Option<(Limiter<RandomState>, Ranges)>,
    start: Instant,
}

impl Gate {
    pub(crate) fn new(limit: Option<&RateLimit>) -> Self {
        let limits = limit.map(|limit| {
            let exempt = limit.exempt.iter().map(|range| (range.addr(), range.prefix_len()));
            (Limiter::new(limit.rate, RandomState::new()), Ranges::new(exempt))
        });
        Self { limits, start: Instant::now() }
    }

    /// How this source is answered now.
    pub(crate) fn judge(&mut self, source: IpAddr, now: Instant) -> (Transport, Verdict) {
        match &mut self.limits {
            None => (Transport::Udp, Verdict::Answer),
            Some((_, known)) if known.contain(source) => (Transport::Udp, Verdict::Answer),
            Some((limiter, _)) => {
                (Transport::UdpOfStranger, limiter.judge(source, now.duration_since(self.start)))
            }
        }
    }
}
