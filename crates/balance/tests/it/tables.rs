//! Maglev's table: shares as the weights say, and a change moves little more than it must.

use std::net::SocketAddr;

use atoll_balance::Maglev;
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

/// Turns are counted in whole ones. When the table is full, a backend of weight w of a sum W has had its turns rounded down, maybe one
/// round sooner than the others, so it lacks less than 2; what all n lost by rounding is shared out by weight, so it has at most n·w/W
/// more than its share, and one for the last round.
fn shares_are_fair(weights: &[u32], seed: u64) -> Result<(), TestCaseError> {
    let all = backends(weights);
    let table = Maglev::new(seed, &all);
    let sum: u32 = weights.iter().sum();
    if sum == 0 {
        prop_assert!(table.lookup(seed).is_none());
        return Ok(());
    }
    let size = table.places().len() as f64;
    let takers = weights.iter().filter(|weight| **weight > 0).count() as f64;
    for (number, weight) in weights.iter().enumerate() {
        let places = table.places().iter().filter(|owner| usize::from(**owner) == number).count() as f64;
        let share = f64::from(*weight) / f64::from(sum);
        let over = places - size * share;
        let fair = -2.0 < over && over <= 1.0 + takers * share;
        prop_assert!(fair, "{number} of {weights:?}: {places} places, {over:+} from its share");
    }
    Ok(())
}

/// The heaviest gains what many others lose by rounding: more than two places here.
#[test]
fn what_is_lost_by_rounding_is_shared_by_weight() {
    shares_are_fair(&[87, 50, 56, 24, 21, 21, 41, 89, 29, 72, 11], 5_693_527_624_978_587_412).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn everybody_has_the_share_of_its_weight(weights in prop::collection::vec(0_u32..=100, 1..40), seed: u64) {
        shares_are_fair(&weights, seed)?;
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
