//! One hash for tables and clients: the same on every machine, so that several balancers agree.

use std::net::{IpAddr, SocketAddr};

/// Odd numbers with about as many ones as zeros: digits of the golden ratio and of pi.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const FOLD: u64 = 0x243f_6a88_85a3_08d3 | 1;

/// Multiplies into 128 bits and folds, so that every bit of the input reaches every bit of the outcome.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ STEP) * u128::from(b ^ FOLD);
    let halves = (product as u64, (product >> 64) as u64);
    halves.0 ^ halves.1
}

fn address(seed: u64, ip: IpAddr) -> u64 {
    match ip {
        IpAddr::V4(v4) => mix(seed ^ 4, u64::from(v4.to_bits())),
        IpAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h] = v6.segments().map(u64::from);
            let high = a << 48 | b << 32 | c << 16 | d;
            let low = e << 48 | f << 32 | g << 16 | h;
            mix(mix(seed ^ 6, high), low)
        }
    }
}

/// Of a client's address and port: each connection for itself.
pub fn flow(seed: u64, from: SocketAddr) -> u64 {
    mix(address(seed, from.ip()), u64::from(from.port()) ^ STEP)
}

/// Of a client's address: all its connections alike.
pub fn client(seed: u64, ip: IpAddr) -> u64 {
    mix(address(seed, ip), STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_clients_spread_evenly() {
        // 64 buckets, expected 1024 each: a fair hash stays within five deviations (32 each) of that.
        for bits in [0, 26, 58] {
            let mut buckets = [0_i32; 64];
            for number in 0..65_536_u32 {
                let from = SocketAddr::from((
                    std::net::Ipv4Addr::from_bits(0x0a00_0000 + number / 256),
                    40_000 + (number % 256) as u16,
                ));
                buckets[(flow(7, from) >> bits) as usize % 64] += 1;
            }
            assert!(buckets.iter().all(|count| (count - 1024).abs() < 160), "{bits}: {buckets:?}");
        }
    }

    #[test]
    fn families_seeds_and_ports_differ() {
        let v4: SocketAddr = "0.0.0.1:80".parse().unwrap();
        let v6: SocketAddr = "[::1]:80".parse().unwrap();
        let all = [flow(0, v4), flow(1, v4), flow(0, v6), client(0, v4.ip()), client(0, v6.ip())];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one), "{all:?}");
        }
    }
}
