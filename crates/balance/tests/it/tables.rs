//! Maglev's table: shares as the weights say, and a change moves little more than it must.

use std::net::SocketAddr;

use balance::Maglev;
use proptest::prelude::*;

fn address(number: usize) -> SocketAddr {
    SocketAddr::from(([10, 1, (number / 256) as u8, (number % 256) as u8], 8080))
}

fn backends(weights: &[u32]) -> Vec<(SocketAddr, u32)> {
    weights.iter().enumerate().map(|(number, weight)| (address(number), *weight)).collect()
}

/// Each place's owner, by address.
fn owners(table: &Maglev, backends: &[(SocketAddr, u32)]) -> Vec<SocketAddr> {
    table.places().iter().map(|number| backends[usize::from(*number)].0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn everybody_has_the_share_of_its_weight(weights in prop::collection::vec(0_u32..=100, 1..40), seed: u64) {
        let all = backends(&weights);
        let table = Maglev::new(seed, &all);
        let sum: u32 = weights.iter().sum();
        if sum == 0 {
            prop_assert!(table.lookup(seed).is_none());
            return Ok(());
        }
        let size = table.places().len() as f64;
        for (number, weight) in weights.iter().enumerate() {
            let places = table.places().iter().filter(|owner| usize::from(**owner) == number).count() as f64;
            let want = size * f64::from(*weight) / f64::from(sum);
            // A turn more or less than the others had when the table was full.
            prop_assert!((places - want).abs() <= 2.0, "{number} of {weights:?}: {places}, not {want}");
        }
    }

    #[test]
    fn the_order_of_the_list_does_not_matter(
        weights in prop::collection::vec(1_u32..=9, 2..20),
        by in 1_usize..19,
        seed: u64,
    ) {
        let all = backends(&weights);
        let mut turned = all.clone();
        turned.rotate_left(by % all.len());
        let (one, other) = (Maglev::new(seed, &all), Maglev::new(seed, &turned));
        prop_assert_eq!(owners(&one, &all), owners(&other, &turned));
    }

    #[test]
    fn a_removal_moves_hardly_anybody_else(count in 2_usize..30, which in 0_usize..30, seed: u64) {
        let all = backends(&vec![1; count]);
        let gone = all[which % count].0;
        let rest: Vec<_> = all.iter().copied().filter(|(address, _)| *address != gone).collect();
        let (before, after) = (Maglev::new(seed, &all), Maglev::new(seed, &rest));
        let (before, after) = (owners(&before, &all), owners(&after, &rest));
        prop_assert!(!after.contains(&gone));
        let moved = before.iter().zip(&after).filter(|(b, a)| **b != gone && b != a).count();
        let kept = before.iter().filter(|owner| **owner != gone).count();
        // A plain remainder would move nearly all of them.
        prop_assert!(moved * 100 <= kept * 15, "{moved} of {kept} moved with {count} backends");
    }
}
